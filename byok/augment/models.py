"""The reply of /get-models: models, languages, flags, user."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import orjson

from byok.augment.flags import FLAGS, Flag
from byok.augment.languages import LANGUAGES
from byok.model_ids import ListedModel

PREFIX_CHARS = 8000
SUFFIX_CHARS = 4000
COMPLETION_TIMEOUT_MS = 5000
# Old clients turn every ' into " before parsing a registry, so names hold neither.
_UNFIT = re.compile(r"['\"\\\x00-\x1f\x7f]")


def get_models(
    models: Iterable[ListedModel],
    default: ListedModel,
    wanted: Mapping[str, Flag] = MappingProxyType({}),
) -> dict[str, Any]:
    """Write the reply; a default model that is not listed is added in front.

    `wanted` are the flags that the user's settings change.
    """
    listed = [m for m in dict.fromkeys(models) if not _UNFIT.search(m.id)]
    if default not in listed:
        listed.insert(0, default)
    named = [m for m in listed if not _UNFIT.search(m.id)]
    names = _display_names(named)
    return {
        "default_model": default.id,
        "models": [_model(m) for m in listed],
        "languages": LANGUAGES,
        "feature_flags": {**FLAGS, **wanted, **_registry(named, names, default)},
        "user_tier": "ENTERPRISE_TIER",
        **_account(),
    }


def _account() -> dict[str, Any]:
    """Return the fields about the user, which clients expect to be there."""
    return {
        "user": {
            "id": "byok",
            "email": "byok@localhost",
            "tenant_id": "byok",
            "tenant_name": "byok",
        },
        "bootstrap_settings": {
            "repository_allowlist_settings": {
                "repository_urls": [],
                "is_deny_list": False,
            }
        },
    }


def _model(model: ListedModel) -> dict[str, Any]:
    return {
        "name": model.id,
        "internal_name": model.id,
        "suggested_prefix_char_count": PREFIX_CHARS,
        "suggested_suffix_char_count": SUFFIX_CHARS,
        "completion_timeout_ms": COMPLETION_TIMEOUT_MS,
    }


def _display_names(models: list[ListedModel]) -> dict[str, str]:
    """Give each model a short name, with the upstream if two would be equal."""
    counts: dict[str, int] = {}
    for model in models:
        counts[model.label] = counts.get(model.label, 0) + 1
    names: dict[str, str] = {}
    for m in models:
        short = m.label if counts[m.label] == 1 else f"{m.label} ({m.upstream})"
        names[m.id] = m.id if short in names.values() else short
    return names


def _registry(
    models: list[ListedModel], names: dict[str, str], default: ListedModel
) -> dict[str, Any]:
    """Fill the three registries that model pickers of different versions read."""
    by_name = {names[m.id]: m.id for m in models}
    info = {
        m.id: {
            "displayName": names[m.id],
            "shortName": names[m.id],
            "humanName": names[m.id],
            "description": f"through {m.upstream}",
            "disabled": False,
            "priority": priority,
            "isDefault": m == default,
        }
        for priority, m in enumerate(models, 1)
    }
    return {
        "enable_model_registry": True,
        "additional_chat_models": _text(by_name),
        "model_registry": _text(by_name),
        "model_info_registry": _text(info),
        "elo_model_configuration": _text(
            {
                "highPriorityModels": [],
                "regularBattleModels": [],
                "highPriorityThreshold": 0,
            }
        ),
    }


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()
