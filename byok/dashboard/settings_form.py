"""The settings as a form: what may be changed, what the file says, what applies."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from byok.client_settings.setting import MISSING, SettingPath, find_value
from byok.config import Settings
from byok.config.sources import variable_of
from byok.dashboard.editable import (
    UPSTREAMS,
    Editable,
    editable_settings,
    plain_value,
    upstream_settings,
)
from byok.dialects.presets import PRESETS

# What the page neither shows nor changes, by its last name, wherever it stands.
FOR_THE_FILE = (
    "api_key_cmd",
    "api_key_env",
    "headers",
    "extra_body",
    "query",
    "proxy",
    "ca_file",
    "allow_insecure_http",
    "allow_secret",
)
_LONGEST = 20_000  # characters of a value that is shown


class SettingsState(NamedTuple):
    """What a form is made of.

    `given` is what the file says, `environment` what variables say, both as tables;
    `options` are those of the command line, by the settings that they outrank.
    """

    current: Settings
    given: Mapping[str, Any]
    environment: Mapping[str, Any]
    options: Mapping[str, str]
    needs_restart: Callable[[SettingPath], bool]
    redact: Callable[[str], str]


def make_form(state: SettingsState) -> dict[str, Any]:
    """Return the groups of fields, the upstreams, and what is for the file alone."""
    return {
        "groups": [
            {"name": name, "fields": [_field(state, (), row) for row in rows]}
            for name, rows in editable_settings().items()
        ],
        "upstreams": [_upstream(state, name) for name in _upstream_names(state)],
        "upstream_fields": [_describe(row) for row in upstream_settings()],
        "presets": [
            {"name": name, "address": preset.base_url, "local": preset.local}
            for name, preset in PRESETS.items()
        ],
        "hidden": [*_find_hidden(state.given, ())],
    }


def _upstream_names(state: SettingsState) -> Iterable[str]:
    given = state.given.get(UPSTREAMS)
    named = given if isinstance(given, dict) else {}
    return dict.fromkeys((*named, *state.current.upstreams))


def _upstream(state: SettingsState, name: str) -> dict[str, Any]:
    path = (UPSTREAMS, name)
    return {
        "name": name,
        "in_file": find_value(state.given, path) is not MISSING,
        "key_names": [*state.current.upstreams[name].key_names]
        if name in state.current.upstreams
        else [],
        "fields": [_field(state, path, row) for row in upstream_settings()],
    }


def _describe(row: Editable) -> dict[str, Any]:
    """Return what is known of a setting without its value."""
    return {
        "path": list(row.path),
        "kind": row.kind.value,
        "description": row.field.description or "",
        "default": row.default,
        "choices": list(row.choices),
        **row.limits,
    }


def _field(state: SettingsState, above: SettingPath, row: Editable) -> dict[str, Any]:
    path = (*above, *row.path)
    field = {
        **_describe(row),
        "path": list(path),
        "value": _value(state, path, row),
        "restart": state.needs_restart(path),
    }
    if (given := find_value(state.given, path)) is not MISSING:
        field |= _show(given, state.redact)
    if by := _other_source(state, path):
        field["fixed"] = by
    return field


def _value(state: SettingsState, path: SettingPath, row: Editable) -> Any:
    """Return the effective value."""
    if path[0] == UPSTREAMS:
        upstream = state.current.upstreams.get(path[1])
        found = getattr(upstream, path[2]) if upstream else row.default
    else:
        found = state.current
        for name in path:
            found = getattr(found, name)
    return plain_value(found)


def _other_source(state: SettingsState, path: SettingPath) -> str:
    """Return the option or variable that takes precedence over the file."""
    if option := state.options.get(".".join(path)):
        return option
    if find_value(state.environment, path) is MISSING:
        return ""
    return variable_of(path) or "BYOK_*"


def _show(given: Any, redact: Callable[[str], str]) -> dict[str, Any]:
    """Return a value of the file; one that may not be shown is locked.

    A value may be anything: the file can be edited by hand, and wrong.
    """
    if isinstance(given, bool | int) and abs(given) < 2**53:
        return {"given": given}
    if isinstance(given, float) and given - given == 0:  # neither infinite nor NaN
        return {"given": given}
    if isinstance(given, list) and all(isinstance(part, str) for part in given):
        is_locked = hides_secret(given, redact)
        return {"given": [], "locked": True} if is_locked else {"given": list(given)}
    if isinstance(given, str) and len(given) <= _LONGEST:
        is_locked = hides_secret(given, redact)
        return {"given": "", "locked": True} if is_locked else {"given": given}
    return {"given": str(type(given).__name__), "odd": True}


def hides_secret(value: Any, redact: Callable[[str], str]) -> bool:
    """Tell whether a text has a secret in it, such as the password of an address.

    Of a list it is one of its parts.
    """
    if isinstance(value, list):
        return any(hides_secret(part, redact) for part in value)
    text = value if isinstance(value, str) else ""
    head, found, rest = text.partition("://")
    has_user = bool(found) and " " not in head and "@" in rest.partition("/")[0]
    return has_user or redact(text) != text


def _find_hidden(given: Mapping[str, Any], path: SettingPath) -> Iterator[list[str]]:
    """Give the names of what the file sets and the page does not show."""
    for name, value in given.items():
        if name in FOR_THE_FILE:
            yield list((*path, name))
        elif isinstance(value, dict) and len(path) < 3:
            yield from _find_hidden(value, (*path, name))
