"""Sources of model facts that need no request: settings, profiles, names, the table."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from byok.dialects.families import family_facts
from byok.dialects.model_facts import (
    FREE,
    FactSource,
    ModelFacts,
    combine_facts,
)
from byok.upstream.model_table import known_table
from byok.upstream.profiles import Profiles
from byok.upstream.spec import UpstreamSpec

# What a source knows about a model, by its id.
Lookup: TypeAlias = tuple[FactSource, Callable[[str], ModelFacts]]


def fact_sources(spec: UpstreamSpec, profiles: Profiles | None) -> tuple[Lookup, ...]:
    """Return the sources for the models of one upstream."""

    def set_by_user(model: str) -> ModelFacts:
        own, common = (spec.facts.get(name) for name in (model, ""))
        layers = [(FactSource.USER, facts) for facts in (own, common) if facts]
        return combine_facts(model, layers).facts

    found: tuple[Lookup, ...] = (
        (FactSource.USER, set_by_user),
        (FactSource.FAMILY, family_facts),
        (FactSource.TABLE, lambda model: known_table().facts(spec.vendor, model)),
    )
    if spec.is_local:
        # A server here may pass questions on, so whoever names a price counts more.
        free = partial(ModelFacts, price=FREE)
        found = (*found, (FactSource.LOCAL, free))
    if profiles is None:
        return found
    key = spec.key
    return (*found, (FactSource.PROBE, lambda model: profiles.facts(key, model)))
