"""The endpoints for byok's own commands: status, settings, models, keys, reload, stop.

A command without a daemon calls the same functions on services of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import date

from msgspec import Struct, to_builtins

from byok import __version__
from byok.core.chat import Json
from byok.core.errors import NO_UPSTREAM, BadRequest, ConfigError
from byok.core.routing import OFFICIAL, ListedModel, Purpose, Service
from byok.dialects.model_facts import write_facts
from byok.features.running import Features
from byok.protocols.augment.body import first_text
from byok.protocols.augment.models import get_models, pauses
from byok.search.vectors.service import EmbeddingService
from byok.server.control import Control
from byok.server.openai_api import model_list, one_model
from byok.settings import Settings, mask_settings
from byok.settings.values import is_alias
from byok.upstream.catalog import Catalog
from byok.upstream.model_table import known_table
from byok.upstream.moments import BY_CLIENT, BY_DEFAULT, BY_PURPOSE, RULES
from byok.upstream.router import PLACEHOLDER, Router
from byok.wiring.apis import base_url_of
from byok.wiring.key_sources import key_lookup, list_keys, official_key_lookup
from byok.wiring.services import Services

_LIST_SECONDS = 15.0  # for the model lists of all upstreams
_FIRST_LIST_SECONDS = 0.25
_OFFICIAL_SECONDS = 12.0
_MAX_NAME_CHARS = 80
_JOBS = (Purpose.COMMIT, Purpose.TITLE, Purpose.COMPLETION, Purpose.NEXT_EDIT)
_JSON = {"Content-Type": "application/json"}


async def catalog(services: Services) -> Json:
    """Fetch and return the model lists of all upstreams, and which of them failed."""
    services.catalog.refresh(anew=True)
    await services.catalog.settle(_LIST_SECONDS)
    return known_catalog(services)


def known_catalog(services: Services) -> Json:
    """Return the model lists as far as they are known; no upstream is asked."""
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
        "jobs": _models_by_job(services),
        "models": [_model_row(services, model) for model in listed],
        "failures": failures,
        "substitutes": [
            _substitute_row(services.redactor(name), model)
            for name, model in services.router.substitutes.items()
        ],
        "table": {
            "source": table.source,
            "date": table.day.isoformat(),
            "stale": table.is_stale(date.today()),
        },
    }


def _models_by_job(services: Services) -> Mapping[str, str]:
    """Return the models of jobs for which clients name no model, by purpose."""
    model_settings = services.settings.routing.models
    return {
        purpose.value: services.router.resolve(model_settings.for_purpose(purpose))
        or services.router.default_for(purpose).id
        for purpose in _JOBS
    }


def _substitute_row(name: str, model: str) -> Json:
    """Return the model that answers for an unknown one, and an alias that fixes it."""
    alias = f'"{name}" = "{model}"' if is_alias(name) else ""
    return {"asked": name[:_MAX_NAME_CHARS], "model": model, "alias": alias}


def _model_row(services: Services, model: ListedModel) -> Json:
    sourced = services.catalog.facts_of(model.upstream, model.model)
    return {
        "id": model.id,
        "upstream": model.upstream,
        "model": model.model,
        "facts": write_facts(sourced.facts),
        "sources": {name: source.value for name, source in sourced.sources.items()},
    }


def choices(services: Services) -> Json:
    """Return the rules that choose the model of a chat, in order, and recent choices.

    This is the answer to `byok models why`.
    """
    model_settings, router = services.settings.routing.models, services.router
    moments = services.moments
    rules = [
        (rule.moment, moments.models.get(rule.moment, ""), rule.why) for rule in RULES
    ]
    usual = [
        (BY_CLIENT.rule, "", BY_CLIENT.why),
        (BY_PURPOSE.rule, model_settings.chat, BY_PURPOSE.why),
        (BY_DEFAULT.rule, router.default().id, BY_DEFAULT.why),
    ]
    return {
        "rules": [
            {"rule": rule, "model": router.resolve(model), "why": why}
            for rule, model, why in (*rules, *usual)
        ],
        "vision": router.resolve(model_settings.vision or model_settings.image),
        "choices": [
            {**to_builtins(choice), "model": services.redactor(choice.model)}
            for choice in moments.memory.choices()
        ],
    }


def daemon_handlers(
    services: Services,
    control: Control,
    features: Features,
    admit_to_dashboard: Callable[[Json], Json],
) -> Mapping[str, Callable[[Json], Awaitable[Json]]]:
    """Return the handlers of commands about the daemon itself, by service.

    `admit_to_dashboard` makes a login code for `byok dashboard`.
    """

    async def daemon(body: Json) -> Json:
        choice = services.selection
        first = next(iter(choice.upstreams))
        return {
            "version": __version__,
            "upstream": first,
            "base_url": base_url_of(choice.upstreams[first]),
            "reason": choice.reason,
            "model": services.router.default().id,
            "settings": control.status(),
            "features": await features.status(),
        }

    async def settings(body: Json) -> Json:
        return mask_settings(services.settings)

    async def reload(body: Json) -> Json:
        services.forget_keys()
        await control.reload()
        return control.status()

    async def stop(body: Json) -> Json:
        again = body.get("again") is True
        await control.stop(first_text(body, "instance"), again=again)
        return {"again": again}

    async def list_choices(body: Json) -> Json:
        return choices(services)

    async def dashboard_code(body: Json) -> Json:
        return admit_to_dashboard(body)

    return {
        **features.handlers,
        Service.DAEMON: daemon,
        Service.SETTINGS: settings,
        Service.CATALOG: lambda body: catalog(services),
        Service.CHOICES: list_choices,
        Service.KEYS: lambda body: keys(services),
        Service.KEY_TEST: lambda body: try_key(services, first_text(body, "upstream")),
        Service.RELOAD: reload,
        Service.STOP: stop,
        Service.DASHBOARD_CODE: dashboard_code,
    }


async def keys(services: Services) -> Json:
    """Return where the key of each upstream comes from; a keyring may ask the user."""
    upstreams, ladder = services.selection.upstreams, services.ladder
    return await asyncio.to_thread(list_keys, services.settings, upstreams, ladder)


async def try_key(services: Services, name: str) -> Json:
    """Send a request with its current key to an upstream or the official service.

    `with_key` in the result tells whether the upstream was sent a key: some list their
    models without one.

    Raises:
        BadRequest: there is no such upstream.
        ByokError: the upstream needs no key, or refuses it.
    """
    if name != OFFICIAL and name not in services.upstreams:
        raise BadRequest(f"Unknown upstream {name!r}.", code=NO_UPSTREAM, status=422)
    lookup = (
        official_key_lookup(services.settings)
        if name == OFFICIAL
        else key_lookup(name, services.selection.upstreams[name])
    )
    if not lookup.base_url:
        raise ConfigError(f"{name} needs no key: it has no address.")
    services.keys[name].forget()
    if name != OFFICIAL:
        models = await services.catalog.fetch(name)
        with_key = bool(await services.keys[name].get())
        return {"origin": lookup.origin, "models": len(models), "with_key": with_key}
    answer = services.official.ask("/get-models", b"{}", _JSON, _OFFICIAL_SECONDS)
    async with answer:
        # The service began to answer, so it accepted the token.
        return {"origin": lookup.origin}


def embed_handlers(
    control: EmbeddingService,
) -> Mapping[str, Callable[[Json], Awaitable[Json]]]:
    """Return the handlers of `byok embed`; each answers with the status afterwards."""

    async def status(body: Json) -> Json:
        answer: Json = to_builtins(await control.status())
        return answer

    async def estimate(body: Json) -> Json:
        answer: Json = to_builtins(await control.estimate())
        return answer

    async def enable(body: Json) -> Json:
        """Store the consent to the host and model that the user was shown."""
        await control.enable(first_text(body, "host"), first_text(body, "model"))
        return await status(body)

    def with_status(
        act: Callable[[], Awaitable[object]], count: str = ""
    ) -> Callable[[Json], Awaitable[Json]]:
        """Make a handler: act, then return the status and the result, under `count`."""

        async def answer(body: Json) -> Json:
            result = await act()
            return {**({count: result} if count else {}), **await status(body)}

        return answer

    return {
        Service.EMBED_STATUS: status,
        Service.EMBED_ESTIMATE: estimate,
        Service.EMBED_ENABLE: enable,
        Service.EMBED_DISABLE: with_status(control.disable),
        Service.EMBED_PAUSE: with_status(control.pause),
        Service.EMBED_RESUME: with_status(control.resume),
        Service.EMBED_CLEAR: with_status(control.clear, "removed"),
        Service.EMBED_PUSH: with_status(control.push, "pushed"),
        Service.EMBED_PULL: with_status(control.pull, "pulled"),
    }


class ModelLists(Struct, frozen=True):
    """Answers with the known models; if none is known, it waits a moment for a list."""

    catalog: Catalog
    router: Router
    settings: Settings

    async def for_editor(self, body: Json) -> Json:
        """Return the answer to `/get-models`; the body has nothing that matters."""
        await self._refresh()
        completion, models = self.settings.completion, self.settings.routing.models
        next_edit = completion.next_edit
        if next_edit is None:
            is_free = not models.edit and self.router.edits_here()
            next_edit = bool(models.next_edit) or is_free
        flags = pauses(chat_input=completion.chat_input, next_edit=next_edit)
        return get_models(self.router.list_models(), self.router.default(), flags)

    async def for_openai(self, name: str, *, is_for_codex: bool = False) -> Json:
        """Return the answer to `GET /v1/models`, or with a `name` about one model.

        Raises:
            BadRequest: 404, no such model is known.
        """
        await self._refresh()
        listed = self.router.list_models()
        if name:
            return one_model(listed, name)
        return model_list(listed, is_for_codex=is_for_codex)

    async def _refresh(self) -> None:
        """Refresh old lists in the background; wait a moment if no model is known."""
        self.catalog.refresh()
        if not self.catalog.list_models():
            await self.catalog.settle(_FIRST_LIST_SECONDS)
