"""Resolve `--upstream`: a name from the settings, a preset, or a URL."""

import re
from collections.abc import Iterable

from pydantic import ValidationError

from byok.config.faults import fault_message, fault_rows
from byok.config.sections import UpstreamSettings
from byok.config.settings import Settings
from byok.dialects.presets import DEMO, PRESETS
from byok.errors import ConfigError

CUSTOM = "custom"
_ADDRESS = re.compile(r"[\w.-]+:\d{1,5}(/[\w./-]*)?", re.ASCII)  # without http://


def upstream_named(wanted: str, settings: Settings) -> tuple[str, UpstreamSettings]:
    """Return the name and section of an upstream given by name, preset or URL.

    Raises:
        ConfigError: it is none of these.
    """
    if wanted in settings.upstreams:
        return wanted, settings.upstreams[wanted]
    if "://" in wanted:
        return CUSTOM, _custom(wanted)
    if wanted == "azure":
        raise ConfigError(
            "azure needs the address of your resource.",
            hint="Set base_url under [upstreams.azure] in your settings file "
            "(byok config path).",
        )
    if wanted == DEMO or (wanted in PRESETS and PRESETS[wanted].base_url):
        return wanted, UpstreamSettings(type=wanted)
    known = ", ".join(upstream_names(settings.upstreams))
    hint = f"Use one of {known}, or a URL."
    if _ADDRESS.fullmatch(wanted):
        hint = f"A URL begins with http:// or https://, such as http://{wanted}"
    raise ConfigError(f"Unknown upstream {wanted!r}.", hint=hint)


def upstream_names(own: Iterable[str]) -> list[str]:
    """Return the names that `--upstream` takes, the user's own first."""
    return list(dict.fromkeys((*own, *PRESETS, DEMO)))


def _custom(url: str) -> UpstreamSettings:
    try:
        return Settings(upstreams={CUSTOM: {"base_url": url}}).upstreams[CUSTOM]
    except ValidationError as error:
        row = fault_rows(error)[0]
        if row["loc"][-1:] == ("base_url",):
            raise ConfigError(f"The upstream's URL {fault_message(row)}.") from error
        raise ConfigError(
            "The upstream's URL is plain http to another machine.",
            hint="Use https, or add a section to the settings with "
            "allow_insecure_http = true.",
        ) from error
