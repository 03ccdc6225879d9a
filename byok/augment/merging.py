"""Merge byok's models into the official service's reply of /get-models.

byok announces what byok serves: its models, and each flag that makes a client use a
group of endpoints, or not, where that group does not go to the service.
"""

import contextlib
import math
from collections.abc import Collection, Iterable
from typing import Any

from byok.augment import flags
from byok.augment.body import mapping, objects, text
from byok.chat import Json
from byok.errors import UpstreamGarbled
from byok.routing import EndpointGroup
from byok.wire.json_body import parse_json, write_json

_BY_NAME = ("additional_chat_models", "model_registry")  # display name -> id
_BY_ID = "model_info_registry"
_OURS = ("enable_model_registry", "elo_model_configuration")
_FLAGS: dict[EndpointGroup, tuple[str, ...]] = {
    EndpointGroup.TELEMETRY: (
        "enable_sentry",
        "cli_enable_sentry",
        "beachhead_enable_sentry",
        "enable_hindsight",
        "agent_report_streamed_chat_every_chunk",
    ),
    EndpointGroup.CHAT: (*flags.CHAT, *flags.SUMMARY, *flags.GUIDELINES),
    EndpointGroup.EDIT: (*flags.EDITING,),
    EndpointGroup.COMPLETION: (*flags.COMPLETION,),
    EndpointGroup.CONTEXT: (*flags.CONTEXT,),
    EndpointGroup.AGENTS: (
        "vscode_background_agents_min_version",
        "enable_tenant_level_tool_permissions",
    ),
    EndpointGroup.ACCOUNT: ("notification_polling_interval_ms",),
}
_TELEMETRY_WORDS = ("sentry", "telemetry", "hindsight")


def merge_models(official: Json, ours: Json, groups: Collection[EndpointGroup]) -> Json:
    """Merge both replies; `groups` are those that the service answers.

    If the service answers chats, its models are listed behind byok's; otherwise nobody
    could serve them. For what it does not mention, byok's values count.

    Raises:
        UpstreamGarbled: the reply is not one of /get-models.
    """
    if not isinstance(official.get("feature_flags"), dict):
        raise UpstreamGarbled("its reply is not a list of models.")
    with_theirs = EndpointGroup.CHAT in groups
    names = {model["name"] for model in ours["models"]}
    theirs = objects(official, "models") if with_theirs else []
    kept = [m for m in theirs if text(m, "name") and text(m, "name") not in names]
    merged = _flags(official["feature_flags"], ours["feature_flags"], groups)
    if with_theirs:
        merged |= _registries(official["feature_flags"], ours["feature_flags"])
    return {
        **ours,
        **official,
        "default_model": ours["default_model"],
        "models": [*ours["models"], *kept],
        "feature_flags": merged,
    }


def _flags(
    theirs: Json, ours: Json, groups: Collection[EndpointGroup]
) -> dict[str, Any]:
    """Take the service's flags except those that byok sets."""
    left_out = {*_BY_NAME, _BY_ID, *_OURS}
    left_out.update(*(_FLAGS[group] for group in _FLAGS if group not in groups))
    if EndpointGroup.TELEMETRY not in groups:
        left_out |= {name for name in theirs if _reports(name)}
    return {**ours, **{n: flag for n, flag in theirs.items() if n not in left_out}}


def _reports(name: str) -> bool:
    return any(word in name for word in _TELEMETRY_WORDS)


def _registries(theirs: Json, ours: Json) -> dict[str, str]:
    """Append the service's models; a name that byok uses too gets a suffix."""
    joined: dict[str, str] = {}
    for flag in _BY_NAME:
        mine = _object(ours, flag)
        others = {
            _apart(name, mine): model
            for name, model in _object(theirs, flag).items()
            if model not in mine.values()
        }
        joined[flag] = _text({**mine, **others})
    mine, shown = _object(ours, _BY_ID), _object(ours, _BY_NAME[0])
    others = {
        model: _behind(info, shown, priority)
        for priority, (model, info) in enumerate(
            _by_priority(_object(theirs, _BY_ID), but=mine), len(mine) + 1
        )
    }
    joined[_BY_ID] = _text({**mine, **others})
    return joined


def _by_priority(infos: Json, but: Json) -> Iterable[tuple[str, dict[str, Any]]]:
    found = [
        (model, info)
        for model, info in infos.items()
        if isinstance(info, dict) and model not in but
    ]
    return sorted(found, key=lambda pair: _number(pair[1].get("priority")))


def _number(value: Any) -> float:
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    with contextlib.suppress(OverflowError):  # int() accepts any length
        return float(value) if known else math.inf
    return math.inf


def _behind(info: dict[str, Any], shown: Json, priority: int) -> dict[str, Any]:
    names = {
        field: _apart(info[field], shown)
        for field in ("displayName", "shortName", "humanName")
        if isinstance(info.get(field), str)
    }
    return {**info, **names, "priority": priority, "isDefault": False}


def _apart(name: str, taken: Json) -> str:
    return f"{name} (official)" if name in taken else name


def _object(flags: Json, name: str) -> dict[str, Any]:
    """Read a flag that holds JSON; an unreadable one counts as {}."""
    try:
        return mapping({"flag": parse_json(text(flags, name).encode())}, "flag")
    except (ValueError, RecursionError):
        return {}


def _text(value: Json) -> str:
    return write_json(value).decode()
