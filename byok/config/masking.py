"""Settings for display, with every value that could be a secret masked."""

from typing import Any

from byok.config.settings import Settings


def mask_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings as JSON, without secrets."""
    shown = settings.model_dump(mode="json")
    for section in (shown["chat"], *shown["upstreams"].values()):
        for field in ("headers", "extra_body"):
            section[field] = {name: "***" for name in section[field]}
    shown["otel"]["headers"] = dict.fromkeys(shown["otel"]["headers"], "***")
    for section in (shown["network"], *shown["upstreams"].values()):
        section["proxy"] = _without_user(section["proxy"])
    for upstream in shown["upstreams"].values():
        upstream["query"] = {name: "***" for name in upstream["query"]}
        upstream["api_key_cmd"] = upstream["api_key_cmd"][:1]
    return shown


def _without_user(url: str) -> str:
    """Drop the user and password of a proxy's address."""
    scheme, found, rest = url.partition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2]}"
