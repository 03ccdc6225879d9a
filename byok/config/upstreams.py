"""Which upstream `--upstream` means: of the settings, of the presets, or a URL."""

from collections.abc import Iterable

from byok.config.sections import UpstreamSettings
from byok.config.settings import Settings
from byok.dialects.presets import DEMO, PRESETS
from byok.errors import ConfigError

CUSTOM = "custom"


def upstream_named(wanted: str, settings: Settings) -> tuple[str, UpstreamSettings]:
    """Read `--upstream`: a name of the settings, a preset, or a URL.

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
            hint="Add base_url under [upstreams.azure] in the file that "
            "byok config path names.",
        )
    if wanted == DEMO or (wanted in PRESETS and PRESETS[wanted].base_url):
        return wanted, UpstreamSettings(type=wanted)
    known = ", ".join(upstream_names(settings.upstreams))
    raise ConfigError(
        f"There is no upstream {wanted!r}.",
        hint=f"Known are: {known}; or give a URL.",
    )


def upstream_names(own: Iterable[str]) -> list[str]:
    """Return the names that `--upstream` takes, the user's own first."""
    return list(dict.fromkeys((*own, *PRESETS, DEMO)))


def _custom(url: str) -> UpstreamSettings:
    try:
        return Settings(upstreams={CUSTOM: {"base_url": url}}).upstreams[CUSTOM]
    except ValueError as error:
        raise ConfigError(
            "The upstream's URL cannot be used: it must look like https://host/v1.",
            hint="For plain http to another machine write a section in the settings, "
            "with allow_insecure_http = true.",
        ) from error
