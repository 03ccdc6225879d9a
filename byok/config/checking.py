"""What is wrong with settings that can be read: for `byok config check` and `serve`."""

from collections.abc import Collection
from pathlib import Path

from byok.config.settings import Settings
from byok.config.upstreams import upstream_named
from byok.dialects.presets import DEMO, PRESETS
from byok.errors import ConfigError


def check_settings(settings: Settings, upstream: str = "", model: str = "") -> None:
    """Find what `byok serve` refuses, as far as nothing has to be asked for that.

    `upstream` and `model` are its options.

    Raises:
        ConfigError: names the key, or the upstream that is not there.
    """
    check_files(settings)
    named = [upstream_named(upstream, settings)[0]] if upstream else []
    # Where nobody chose one, any preset may turn out to be the one.
    check_models(settings, [*named, *settings.upstreams] or [*PRESETS, DEMO], model)


def check_files(settings: Settings) -> None:
    """Check that the files which the settings name are there.

    Raises:
        ConfigError: names the key.
    """
    named = {"network.ca_file": settings.network.ca_file}
    for name, upstream in settings.upstreams.items():
        named[f"upstreams.{name}.ca_file"] = upstream.ca_file
    for key, file in named.items():
        if file and not Path(file).is_file():
            raise ConfigError(f"{key} names no file: {file}.")


def check_models(settings: Settings, upstreams: Collection[str], model: str) -> None:
    """Check that the models which the settings choose are of these upstreams.

    Raises:
        ConfigError: one is of another.
    """
    chosen = {"default": model or settings.routing.default}
    chosen |= dict(settings.routing.models)
    for what, wanted in chosen.items():
        if not wanted.startswith("byok:"):
            continue
        from byok.model_ids import split_id

        name, _ = split_id(wanted) or ("", "")
        if name not in upstreams:
            known = ", ".join(dict.fromkeys(upstreams))
            raise ConfigError(
                f"The {what} model {wanted!r} names no configured upstream.",
                hint=f"Add [upstreams.{name or 'NAME'}] to the settings, or name a "
                f"model of one of these: {known}.",
            )
