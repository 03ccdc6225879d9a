"""Settings for display, with every value that could be a secret masked."""

import re
from typing import Any

from byok.config.settings import Settings

_USER = re.compile(r"(?<=://)[^/\s@]*@")


def mask_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings as JSON, without secrets."""
    shown = settings.model_dump(mode="json")
    for section in (*shown.values(), *shown["upstreams"].values()):
        for field in {"headers", "extra_body"} & section.keys():
            section[field] = dict.fromkeys(section[field], "***")
    for upstream in shown["upstreams"].values():
        upstream["query"] = {name: "***" for name in upstream["query"]}
        upstream["api_key_cmd"] = upstream["api_key_cmd"][:1]
    masked: dict[str, Any] = _without_users(shown)
    return masked


def _without_users(shown: Any, name: str = "") -> Any:
    """Drop user and password of every address, wherever it stands in the settings."""
    match shown:
        case dict():
            return {key: _without_users(value, key) for key, value in shown.items()}
        case list():
            return [_without_users(value) for value in shown]
        case str() if name == "proxy":  # only there a password may have any character
            scheme, found, rest = shown.partition("://")
            return f"{scheme}{found}{rest.rpartition('@')[2]}"
        case str():
            return _USER.sub("", shown)
        case _:
            return shown
