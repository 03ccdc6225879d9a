"""The answer to `byok models`: models, what is known of each, and what they are for."""

from collections.abc import Mapping
from datetime import date

from byok.chat import Json
from byok.config.values import is_alias
from byok.dialects.model_facts import write_facts
from byok.model_ids import ListedModel
from byok.purposes import Purpose
from byok.upstream.model_table import known_table
from byok.upstream.router import PLACEHOLDER
from byok.wiring.services import Services

_SECONDS = 15.0  # for the lists
_LONGEST_NAME = 80
_JOBS = (Purpose.COMMIT, Purpose.TITLE, Purpose.COMPLETION)


async def catalog(services: Services) -> Json:
    """List the models of every upstream, asked for now; and what failed."""
    services.catalog.refresh(anew=True)
    await services.catalog.settle(_SECONDS)
    return known_catalog(services)


def known_catalog(services: Services) -> Json:
    """List the models as far as they are known; nothing is asked."""
    default = services.router.default()
    listed = services.catalog.list_models()
    if default not in listed and default.model != PLACEHOLDER:
        listed.insert(0, default)
    failures = {
        name: services.redactor(failure)
        for name in services.upstreams
        if (failure := services.catalog.state_of(name).failure)
    }
    table = known_table()
    return {
        "default": default.id,
        "jobs": _jobs(services),
        "models": [_row(services, model) for model in listed],
        "failures": failures,
        "substitutes": [
            _substitute(services.redactor(name), model)
            for name, model in services.router.substitutes.items()
        ],
        "table": {
            "source": table.source,
            "date": table.day.isoformat(),
            "stale": table.is_stale(date.today()),
        },
    }


def _jobs(services: Services) -> Mapping[str, str]:
    """Return the models that do jobs where a client names none, by purpose."""
    chosen = services.settings.routing.models
    return {
        purpose.value: services.router.resolve(chosen.for_purpose(purpose))
        or services.router.default_for(purpose).id
        for purpose in _JOBS
    }


def _substitute(name: str, model: str) -> Json:
    """Say who answers instead of an unknown model, and how to choose that oneself."""
    alias = f'"{name}" = "{model}"' if is_alias(name) else ""
    return {"asked": name[:_LONGEST_NAME], "model": model, "alias": alias}


def _row(services: Services, model: ListedModel) -> Json:
    known = services.catalog.facts_of(model.upstream, model.model)
    return {
        "id": model.id,
        "upstream": model.upstream,
        "model": model.model,
        "facts": write_facts(known.facts),
        "sources": {name: source.value for name, source in known.sources.items()},
    }
