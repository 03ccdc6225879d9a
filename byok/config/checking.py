"""Validation beyond types: files, models and upstreams that the settings name."""

from collections.abc import Collection, Iterator
from pathlib import Path

from byok.config.routing_sections import ModelSettings
from byok.config.section import SettingsClash
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
        _find_upstream(settings.embeddings.upstream, settings)
    named = [_find_upstream(upstream, settings)] if upstream else []
    # If no upstream is chosen, byok may pick any preset at start.
    check_models(settings, [*named, *settings.upstreams] or [*PRESETS, DEMO], model)


def _find_upstream(wanted: str, settings: Settings) -> str:
    try:
        return upstream_named(wanted, settings)[0]
    except ConfigError as error:
        places = (("embeddings", "upstream"), ("upstreams", wanted))
        raise error from SettingsClash(str(error), *places)


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
            raise ConfigError(
                f"{key}: the file {file} does not exist."
            ) from SettingsClash(key, tuple(key.split(".")))


def check_models(settings: Settings, upstreams: Collection[str], model: str) -> None:
    """Check that the models chosen in the settings belong to these upstreams.

    Raises:
        ConfigError: a model names another upstream, or a fallback none.
    """
    routing = settings.routing
    for what, given in chosen_models(settings, model):
        wanted = routing.aliases.get(given.removeprefix("byok:"), given)
        if not wanted.startswith("byok:"):
            if what.endswith(_FALLBACK):
                raise ConfigError(
                    f"The {what} model {wanted!r} is no alias.",
                    hint="Add it to [routing.aliases], or write byok:<upstream>:"
                    "<model>.",
                ) from SettingsClash(wanted, _path_of(what))
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
            ) from SettingsClash(wanted, _path_of(what), ("upstreams", name))


def _path_of(what: str) -> tuple[str, ...]:
    """Return the setting that names a model for something."""
    purpose = what.removesuffix(_FALLBACK)
    if purpose != what:
        return ("routing", "fallback", purpose)
    if what == "default":
        return ("routing", "default")
    table = "models" if what in ModelSettings.model_fields else "aliases"
    return ("routing", table, what)


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
