"""Checks of models: those that the settings name exist, and their windows suffice."""

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress

from byok.config import chosen_models
from byok.dialects.model_facts import FactSource
from byok.dialects.refusals import window_cure
from byok.doctor.addresses import expect_address
from byok.doctor.results import (
    CannotCheck,
    CheckResult,
    doubtful,
    good,
    skip,
    wrong,
)
from byok.doctor.surroundings import Surroundings
from byok.doctor.upstream_access import (
    default_id,
    list_models,
    model_of,
    open_upstream,
    section_of,
)
from byok.errors import ByokError
from byok.model_ids import split_id
from byok.upstream.model_table import known_table

_DEFAULT = "default"
_LONGEST, _MOST_COMPARED = 100, 500
_LATEST = ":latest"  # Ollama's name for a model without a tag
# Tokens: the instructions and tools of an agent alone take about 12,000.
_TOO_SMALL, _SMALL = 16_384, 32_768


async def model_uses(around: Surroundings) -> Sequence[str]:
    """Return what models are chosen for, the default first."""
    return [*await _models_by_use(around)]


async def _models_by_use(around: Surroundings) -> Mapping[str, tuple[str, str]]:
    """Return upstream and model for each use, where both are known."""
    settings = await around.settings()
    upstreams = await around.upstreams()
    uses = [(use, wanted) for use, wanted in chosen_models(settings) if wanted]
    found: dict[str, tuple[str, str]] = {}
    for use, wanted in [(_DEFAULT, await default_id(around)), *uses]:
        whole = settings.routing.aliases.get(wanted.removeprefix("byok:"), wanted)
        name, model = split_id(whole) or (next(iter(upstreams), ""), whole)
        if name in upstreams and model and model != _DEFAULT:
            found.setdefault(use, (name, model))
    if _DEFAULT not in found and upstreams:
        first = next(iter(upstreams))
        found = {_DEFAULT: (first, ""), **found}
    return found


async def check_model(around: Surroundings, use: str) -> CheckResult:
    """Check that its upstream has the model that is chosen for something."""
    name, model = (await _models_by_use(around))[use]
    model = model or await model_of(around, name)
    section = await section_of(around, name)
    try:
        listed = await list_models(around, name)
    except (CannotCheck, ByokError):
        return skip(f"{model}: the list of {name} is not known")
    if _is_there(model, listed):
        return good(f"{model} of {name}")
    vendor = (await open_upstream(around, name)).spec.vendor
    if model in section.models or model in known_table().models_of(vendor):
        return good(f"{model} of {name}, which does not list it")
    if not listed:
        return skip(f"{model}: {name} lists no models")
    close = difflib.get_close_matches(model[:_LONGEST], _comparable(listed), n=1)
    guess = f"; did you mean {close[0]}?" if close else ""
    key = _key_of(use, name, in_section=section.model == model)
    return wrong(
        f"{name} has no model {model}{guess}",
        f"byok models shows all; correct {key} in the settings",
    )


def _comparable(listed: Sequence[str]) -> list[str]:
    """Return some of the names, so that a server cannot make comparing them slow."""
    return [name for name in listed if len(name) <= _LONGEST][:_MOST_COMPARED]


def _key_of(use: str, name: str, *, in_section: bool) -> str:
    if use != _DEFAULT:
        return f"{use} under [routing]"
    return f"model under [upstreams.{name}]" if in_section else "routing.default"


def _is_there(model: str, listed: Sequence[str]) -> bool:
    """Tell whether a list has a model, or a dated one for which the name stands."""
    names = {name.removeprefix("models/") for name in listed}
    plain = model.removeprefix("models/")
    dated = (name.startswith(f"{plain}-20") for name in names)
    return plain in names or f"{plain}{_LATEST}" in names or any(dated)


async def check_window(around: Surroundings, name: str) -> CheckResult:
    """Check that the window of an upstream's default model is known and large enough.

    The server of a local model may have loaded it with a small part of its window.
    """
    upstream = await open_upstream(around, name)
    model = await model_of(around, name)
    await expect_address(around, name)
    with suppress(ByokError):  # a list may know the window, and need not
        await list_models(around, name)
    window = await upstream.window(model)
    known, spec = upstream.known.sourced_facts(model), upstream.spec
    if not window:
        return doubtful(
            f"that of {model} is unknown, so long conversations are not shortened",
            f"context_window = TOKENS under [upstreams.{name}]",
        )
    dialect = spec.api.dialect
    said = f"{window:,} tokens of {model}, by the {known.sources.get('window', 'list')}"
    is_loaded = known.sources.get("window") is FactSource.LOADED
    if dialect.loads_window and window < min(known.facts.window, _SMALL):
        said = f"num_ctx cuts that of {model} to {window:,} of {known.facts.window:,}"
    elif is_loaded and not dialect.loads_window and window < _SMALL:
        said = f"its server cuts that of {model} to {window:,} tokens, without a word"
    if window >= _SMALL:
        return good(said)
    judge = wrong if window < _TOO_SMALL else doubtful
    return judge(
        f"{said}: too small for an agent", window_cure(spec.vendor, dialect.name)
    )
