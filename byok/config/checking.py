"""Validation beyond types: files, models and upstreams that the settings name."""

from collections.abc import Collection, Iterator
from pathlib import Path

from byok.config.settings import Settings
from byok.config.upstreams import upstream_named
from byok.dialects.presets import DEMO, PRESETS
from byok.errors import ConfigError

_FALLBACK = " fallback"


def check_settings(settings: Settings, upstream: str = "", model: str = "") -> None:
    """Check everything that `byok serve` would refuse, without asking an upstream.

    `upstream` and `model` are the options of `byok serve`.

    Raises:
        ConfigError: names the key, or the upstream that is not configured.
    """
    check_files(settings)
    if settings.embeddings.on:
        upstream_named(settings.embeddings.upstream, settings)
    named = [upstream_named(upstream, settings)[0]] if upstream else []
    # If no upstream is chosen, byok may pick any preset at start.
    check_models(settings, [*named, *settings.upstreams] or [*PRESETS, DEMO], model)


def check_files(settings: Settings) -> None:
    """Check that the files named in the settings exist.

    Raises:
        ConfigError: names the key.
    """
    named = {
        "network.ca_file": settings.network.ca_file,
        "embeddings.team.ca_file": settings.embeddings.team.ca_file,
    }
    for name, upstream in settings.upstreams.items():
        named[f"upstreams.{name}.ca_file"] = upstream.ca_file
    for key, file in named.items():
        if file and not Path(file).is_file():
            raise ConfigError(f"{key}: the file {file} does not exist.")


def check_models(settings: Settings, upstreams: Collection[str], model: str) -> None:
    """Check that the models chosen in the settings belong to these upstreams.

    Raises:
        ConfigError: a model names another upstream, or a fallback none.
    """
    routing = settings.routing
    for what, wanted in chosen_models(settings, model):
        wanted = routing.aliases.get(wanted.removeprefix("byok:"), wanted)
        if not wanted.startswith("byok:"):
            if what.endswith(_FALLBACK):
                raise ConfigError(
                    f"The {what} model {wanted!r} is no alias.",
                    hint="Add it to [routing.aliases], or write byok:<upstream>:"
                    "<model>.",
                )
            continue
        from byok.model_ids import split_id

        name, _ = split_id(wanted) or ("", "")
        if name not in upstreams:
            known = ", ".join(dict.fromkeys(upstreams))
            raise ConfigError(
                f"The {what} model {wanted!r} names an upstream that is not "
                "configured.",
                hint=f"Add [upstreams.{name or 'NAME'}] to the settings, or choose a "
                f"model of one of these: {known}.",
            )


def chosen_models(settings: Settings, model: str = "") -> Iterator[tuple[str, str]]:
    """Give the models that the settings name, each with what it is for.

    `model` stands for the default one of the settings.
    """
    routing = settings.routing
    yield "default", model or routing.default
    yield from routing.models
    for name, wanted in routing.aliases.items():
        yield name, wanted
    for purpose, models in routing.fallback:
        for wanted in models:
            yield f"{purpose}{_FALLBACK}", wanted
