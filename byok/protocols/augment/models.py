"""The reply of /get-models: models, languages, feature flags, user."""

import contextlib
import math
import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from byok.core.chat import Json
from byok.core.errors import UpstreamGarbled
from byok.core.routing import SUMMARY_HOLDS, EndpointGroup, ListedModel
from byok.core.wire.json_body import write_json
from byok.core.wire.json_fields import parse_object
from byok.protocols.augment.body import objects, text

Flag: TypeAlias = bool | int | str

PREFIX_CHARS = 8000
SUFFIX_CHARS = 4000
COMPLETION_TIMEOUT_MS = 5000
# Old clients replace every ' by " before they parse a registry, so names have neither.
_INVALID_CHARS = re.compile(r"['\"\\\x00-\x1f\x7f]")
ON, OFF = "0.0.0", ""

# The feature flags, with the types that clients expect: a single value of a wrong type
# may make a client discard all flags. A version gate is a string: "" is off, "0.0.0"
# always on. A flag is on if byok serves its feature; comments say why others are off.
# If the official service answers some endpoints, a table counts only for the endpoints
# that byok serves; APPEARANCE and CLIENT_TOOLS concern the client alone.
CHAT: dict[str, Flag] = {
    "enable_chat": True,
    "enable_chat_with_tools": True,
    "vscode_chat_with_tools_min_version": ON,
    "enable_agent_mode": True,
    "vscode_agent_mode_min_version": ON,
    "vscode_agent_mode_min_stable_version": ON,
    "enable_agent_auto_mode": True,
    "vscode_support_tool_use_start_min_version": ON,
    "enable_parallel_tools": True,
    "beachhead_enable_parallel_tool_execution": True,
    "beachhead_enable_sub_agent_tool": True,
    "vscode_task_list_min_version": ON,
    "agent_max_iterations": 200,
    "agent_chat_model": "",
    "retry_chat_stream_timeouts": True,
    "enable_editable_history": True,
    "vscode_editable_history_min_version": ON,
    "enable_chat_multimodal": True,
    "vscode_chat_multimodal_min_version": ON,
    "vscode_chat_stable_prefix_truncation_min_version": ON,
    "show_thinking_summary": True,
    "vscode_show_thinking_summary_min_version": ON,
    "vscode_personalities_min_version": OFF,
    "enable_summary_titles": True,
    "vscode_share_min_version": OFF,  # a share link would need a server
    "enable_exchange_storage": True,
    "enable_tool_use_state_storage": True,
    "enable_prompt_enhancer": True,  # newer clients enhance through a silent chat
    "vscode_sources_min_version": OFF,
    "vscode_external_sources_in_chat_min_version": OFF,
    "enable_context_canvas": False,
    "vscode_rich_checkpoint_info_min_version": ON,
}
APPEARANCE: dict[str, Flag] = {
    "vscode_min_version": OFF,
    "enable_grouped_tools": True,
    "vscode_new_threads_menu_min_version": ON,
    "enable_new_threads_list": True,
    "enable_bulk_delete_threads": True,
    "vscode_design_system_rich_text_editor_min_version": ON,
    "enable_intersection_observer_manager": True,
}
SUMMARY: dict[str, Flag] = {
    "history_summary_min_version": ON,
    "history_summary_params": write_json(
        {
            # Some clients send it unchanged, so it must not be empty.
            "prompt": "Please write a clear and concise summary of our conversation "
            f"so far, from which the work can go on. {SUMMARY_HOLDS} Write plain text, "
            "call no tool, and do not go on with the work itself.",
            "history_tail_size_tokens_to_exclude": 10_000,
            "max_history_chars": 400_000,
            "input_budget_trigger_ratio": 0.7,
        }
    ).decode(),
}
EDITING: dict[str, Flag] = {
    "enable_instructions": True,
    "enable_smart_paste": True,
    "enable_smart_paste_min_version": ON,
    "smart_paste_precompute_mode": "off",
    "vscode_direct_apply_min_version": ON,
    "vscode_next_edit_min_version": OFF,  # see pauses()
    "vscode_next_edit_bottom_panel_min_version": OFF,
    "vscode_generate_commit_message_min_version": ON,
}
COMPLETION: dict[str, Flag] = {
    "enable_chat_input_inline_completion": False,
    "enable_completion_file_edit_events": True,
    "bypass_language_filter": True,
}
CLIENT_TOOLS: dict[str, Flag] = {
    "agent_edit_tool_enable_fuzzy_matching": True,
    "agent_edit_tool_show_result_snippet": True,
    "agent_edit_tool_instructions_reminder": True,
    "agent_save_file_tool_instructions_reminder": True,
    "agent_edit_tool_max_lines": 200,
    "enable_apply_patch_tool": False,
    "grep_search_tool_enable": True,
    "grep_search_tool_timelimit_sec": 10,
    "grep_search_tool_output_chars_limit": 5000,
    "enable_agent_git_tracker": False,
}
CONTEXT: dict[str, Flag] = {
    "small_sync_threshold": 15,
    "big_sync_threshold": 1000,
    "max_upload_size_bytes": 1_048_576,
    "max_trackable_file_count": 250_000,
    "max_trackable_file_count_without_permission": 150_000,
    "min_uploaded_percentage_without_permission": 90,
    "use_checkpoint_manager_context_min_version": ON,
    "vscode_use_checkpoint_manager_context_min_version": ON,
    "enable_commit_indexing": False,
    "enable_context_engine": True,
    "context_engine_enabled": True,
    "enable_codebase_indexing": True,
    "codebase_indexing_enabled": True,
    "enable_workspace_index": True,
}
GUIDELINES: dict[str, Flag] = {
    "enable_guidelines": True,
    "enable_shared_guidelines": True,
    "enable_rules": True,
    "enable_hierarchical_rules": True,
    "enable_custom_commands": True,
    "enable_memory_retrieval": True,
    "memories_text_editor_enabled": True,
    "memories_params": '{"upper_bound_size":10000}',
}
QUIET: dict[str, Flag] = {
    "enable_sentry": False,
    "cli_enable_sentry": False,
    "beachhead_enable_sentry": False,
    "enable_hindsight": False,
    "agent_report_streamed_chat_every_chunk": 0,
    "fraud_sign_endpoints": False,
    "vscode_background_agents_min_version": OFF,
    "enable_tenant_level_tool_permissions": False,
    "allow_client_feature_flag_overrides": False,
    "notification_polling_interval_ms": 86_400_000,
}


FLAGS: dict[str, Flag] = {
    **CHAT, **APPEARANCE, **SUMMARY, **EDITING, **COMPLETION, **CLIENT_TOOLS, **CONTEXT,
    **GUIDELINES, **QUIET,
}  # fmt: skip


# The languages for which the editor offers completion: name, VS Code's name, suffixes.
_ROWS = """
Bash shellscript .sh .bash
C c .c .h
C++ cpp .cpp .cc .cxx .hpp .hh
C# csharp .cs
CSS css .css
Dart dart .dart
Dockerfile dockerfile .dockerfile
Elixir elixir .ex .exs
Go go .go
GraphQL graphql .graphql .gql
Groovy groovy .groovy .gradle
Haskell haskell .hs
HTML html .html .htm
Java java .java
JavaScript javascript .js .mjs .cjs
JavaScriptReact javascriptreact .jsx
JSON json .json
Julia julia .jl
Kotlin kotlin .kt .kts
Less less .less
Lua lua .lua
Markdown markdown .md
Objective-C objective-c .m
OCaml ocaml .ml .mli
Perl perl .pl .pm
PHP php .php
PowerShell powershell .ps1
Protobuf proto3 .proto
Python python .py .pyi
R r .r
Ruby ruby .rb
Rust rust .rs
Scala scala .scala
SCSS scss .scss
SQL sql .sql
Svelte svelte .svelte
Swift swift .swift
Terraform terraform .tf
TOML toml .toml
TypeScript typescript .ts .mts .cts
TypeScriptReact typescriptreact .tsx
Vue vue .vue
XML xml .xml
YAML yaml .yaml .yml
Zig zig .zig
"""


# Flags with a registry of models: ids by display name, and facts by id.
_BY_NAME = ("additional_chat_models", "model_registry")
_BY_ID = "model_info_registry"
_OUR_FLAGS = ("enable_model_registry", "elo_model_configuration")
_GROUP_FLAGS: dict[EndpointGroup, tuple[str, ...]] = {
    EndpointGroup.TELEMETRY: ("agent_report_streamed_chat_every_chunk",),
    EndpointGroup.CHAT: (*CHAT, *SUMMARY, *GUIDELINES),
    EndpointGroup.EDIT: (*EDITING,),
    EndpointGroup.COMPLETION: (*COMPLETION,),
    EndpointGroup.CONTEXT: (*CONTEXT,),
    EndpointGroup.AGENTS: (
        "vscode_background_agents_min_version",
        "enable_tenant_level_tool_permissions",
    ),
    EndpointGroup.ACCOUNT: ("notification_polling_interval_ms",),
}
# Parts of the names of other flags about telemetry.
_TELEMETRY_WORDS = ("sentry", "telemetry", "hindsight")


def _language(row: str) -> dict[str, Any]:
    name, vscode_name, *extensions = row.split()
    return {"name": name, "vscode_name": vscode_name, "extensions": extensions}


LANGUAGES: list[dict[str, Any]] = [_language(row) for row in _ROWS.strip().splitlines()]


def pauses(*, chat_input: bool, next_edit: bool) -> dict[str, Flag]:
    """Return the flags of features that ask a model after every pause in typing.

    They cost tokens even if nobody looks at the result, so the user's settings decide.
    """
    return {
        "enable_chat_input_inline_completion": chat_input,
        "vscode_next_edit_min_version": ON if next_edit else OFF,
    }


def get_models(
    models: Iterable[ListedModel],
    default: ListedModel,
    changed_flags: Mapping[str, Flag] = MappingProxyType({}),
) -> dict[str, Any]:
    """Write the reply; a default model that is not listed is added in front.

    `changed_flags` are those that the user's settings change.
    """
    listed = [m for m in dict.fromkeys(models) if not _INVALID_CHARS.search(m.id)]
    if default not in listed:
        listed.insert(0, default)
    named = [m for m in listed if not _INVALID_CHARS.search(m.id)]
    names = _display_names(named)
    return {
        "default_model": default.id,
        "models": [_model(m) for m in listed],
        "languages": LANGUAGES,
        "feature_flags": {**FLAGS, **changed_flags, **_registry(named, names, default)},
        "user_tier": "ENTERPRISE_TIER",
        # The fields about the user, which clients expect to be there.
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
    """Return a short name for each model id, with the upstream if two are equal."""
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
    """Return the three registries that model pickers of different versions read."""
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
    return write_json(value).decode()


def merge_models(official: Json, ours: Json, groups: Collection[EndpointGroup]) -> Json:
    """Merge byok's reply into the official service's; `groups` are the service's.

    byok's models count, and byok's flags for the endpoints that byok serves. If the
    service answers chats, its models are listed after byok's; otherwise nobody could
    serve them. For fields that the service does not mention, byok's values count.

    Raises:
        UpstreamGarbled: the service's reply is not one of /get-models.
    """
    if not isinstance(official.get("feature_flags"), dict):
        raise UpstreamGarbled("its reply is not a list of models.")
    with_theirs = EndpointGroup.CHAT in groups
    names = {model["name"] for model in ours["models"]}
    theirs = objects(official, "models") if with_theirs else []
    added = [m for m in theirs if text(m, "name") and text(m, "name") not in names]
    flags = _merge_flags(official["feature_flags"], ours["feature_flags"], groups)
    if with_theirs:
        flags |= _merge_registries(official["feature_flags"], ours["feature_flags"])
    return {
        **ours,
        **official,
        "default_model": ours["default_model"],
        "models": [*ours["models"], *added],
        "feature_flags": flags,
    }


def _merge_flags(
    theirs: Json, ours: Json, groups: Collection[EndpointGroup]
) -> dict[str, Any]:
    """Return the service's flags, except those that byok sets."""
    left_out = {*_BY_NAME, _BY_ID, *_OUR_FLAGS}
    left_out.update(
        *(_GROUP_FLAGS[group] for group in _GROUP_FLAGS if group not in groups)
    )
    if EndpointGroup.TELEMETRY not in groups:
        words = _TELEMETRY_WORDS
        left_out |= {name for name in theirs if any(word in name for word in words)}
    return {**ours, **{n: flag for n, flag in theirs.items() if n not in left_out}}


def _merge_registries(theirs: Json, ours: Json) -> dict[str, str]:
    """Append the service's models; a name that byok uses too gets a suffix."""
    joined: dict[str, str] = {}
    for flag in _BY_NAME:
        mine = _object(ours, flag)
        others = {
            _mark_if_taken(name, mine): model
            for name, model in _object(theirs, flag).items()
            if model not in mine.values()
        }
        joined[flag] = _text({**mine, **others})
    mine, names = _object(ours, _BY_ID), _object(ours, _BY_NAME[0])
    rows = [
        (model, info)
        for model, info in _object(theirs, _BY_ID).items()
        if isinstance(info, dict) and model not in mine
    ]
    rows.sort(key=lambda row: _number(row[1].get("priority")))
    for priority, (model, info) in enumerate(rows, len(mine) + 1):
        marked = {
            field: _mark_if_taken(info[field], names)
            for field in ("displayName", "shortName", "humanName")
            if isinstance(info.get(field), str)
        }
        mine[model] = {**info, **marked, "priority": priority, "isDefault": False}
    joined[_BY_ID] = _text(mine)
    return joined


def _number(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    with contextlib.suppress(OverflowError):  # a JSON integer has any length
        return float(value) if is_number else math.inf
    return math.inf


def _mark_if_taken(name: str, taken: Json) -> str:
    return f"{name} (official)" if name in taken else name


def _object(flags: Json, name: str) -> dict[str, Any]:
    """Return the object in a flag with JSON; {} if it cannot be read."""
    return parse_object(text(flags, name)) or {}
