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
from byok.wiring.key_sources import key_wanted, list_keys, official_wanted
from byok.wiring.services import Services

# The answer to `byok models`: models, what is known of each, and what they are for.


_SECONDS = 15.0  # for the lists
_LONGEST_NAME = 80
_JOBS = (Purpose.COMMIT, Purpose.TITLE, Purpose.COMPLETION, Purpose.NEXT_EDIT)


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


# The answer to `byok models why`: the rules for chats in their order, the last choices.


def choices(services: Services) -> Json:
    """List the rules that choose the model of a chat, and what they chose last."""
    chosen, router = services.settings.routing.models, services.router
    moments = services.moments
    rules = [
        (rule.moment, moments.models.get(rule.moment, ""), rule.why) for rule in RULES
    ]
    usual = [
        (BY_CLIENT.rule, "", BY_CLIENT.why),
        (BY_PURPOSE.rule, chosen.chat, BY_PURPOSE.why),
        (BY_DEFAULT.rule, router.default().id, BY_DEFAULT.why),
    ]
    return {
        "rules": [
            {"rule": rule, "model": router.resolve(model), "why": why}
            for rule, model, why in (*rules, *usual)
        ],
        "vision": router.resolve(chosen.vision or chosen.image),
        "choices": [
            {**to_builtins(choice), "model": services.redactor(choice.model)}
            for choice in moments.memory.choices()
        ],
    }


_OFFICIAL_SECONDS = 12.0
_JSON = {"Content-Type": "application/json"}


def daemon_handlers(
    services: Services,
    control: Control,
    features: Features,
    admit_to_dashboard: Callable[[Json], Json],
) -> Mapping[str, Callable[[Json], Awaitable[Json]]]:
    """Return what answers commands about the daemon itself.

    `admit_to_dashboard` answers `byok dashboard`.
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
    """Tell for each upstream where its key comes from; looking may ask the user."""
    upstreams, ladder = services.selection.upstreams, services.ladder
    return await asyncio.to_thread(list_keys, services.settings, upstreams, ladder)


async def try_key(services: Services, name: str) -> Json:
    """Ask an upstream, or the official service, with its key as it is now.

    `with_key` tells whether an upstream was sent one: some list their models without.

    Raises:
        BadRequest: there is no such upstream here.
        ByokError: it needs no key, or does not take it.
    """
    if name != OFFICIAL and name not in services.upstreams:
        raise BadRequest(f"Unknown upstream {name!r}.", code=NO_UPSTREAM, status=422)
    wanted = (
        official_wanted(services.settings)
        if name == OFFICIAL
        else key_wanted(name, services.selection.upstreams[name])
    )
    if not wanted.base_url:
        raise ConfigError(f"{name} needs no key: it has no address.")
    services.keys[name].forget()
    if name != OFFICIAL:
        models = await services.catalog.fetch(name)
        with_key = bool(await services.keys[name].get())
        return {"origin": wanted.origin, "models": len(models), "with_key": with_key}
    asked = services.official.ask("/get-models", b"{}", _JSON, _OFFICIAL_SECONDS)
    async with asked:
        return {"origin": wanted.origin}  # it began to answer, so it took the token


# The endpoints of `byok embed`: what vectors there are, and who may make them.


def embed_handlers(
    control: EmbeddingService,
) -> Mapping[str, Callable[[Json], Awaitable[Json]]]:
    """Return what answers about vectors; each answer has the status afterwards."""

    async def status(body: Json) -> Json:
        told: Json = to_builtins(await control.status())
        return told

    async def estimate(body: Json) -> Json:
        told: Json = to_builtins(await control.estimate())
        return told

    async def enable(body: Json) -> Json:
        """Consent to what the user was shown, which the body repeats."""
        await control.enable(first_text(body, "host"), first_text(body, "model"))
        return await status(body)

    def after(
        act: Callable[[], Awaitable[object]], count: str = ""
    ) -> Callable[[Json], Awaitable[Json]]:
        """Tell the status after an act, and with `count` how many it was done to."""

        async def answer(body: Json) -> Json:
            done = await act()
            return {**({count: done} if count else {}), **await status(body)}

        return answer

    return {
        Service.EMBED_STATUS: status,
        Service.EMBED_ESTIMATE: estimate,
        Service.EMBED_ENABLE: enable,
        Service.EMBED_DISABLE: after(control.disable),
        Service.EMBED_PAUSE: after(control.pause),
        Service.EMBED_RESUME: after(control.resume),
        Service.EMBED_CLEAR: after(control.clear, "removed"),
        Service.EMBED_PUSH: after(control.push, "pushed"),
        Service.EMBED_PULL: after(control.pull, "pulled"),
    }


# The lists of models: for the editor's clients, and for OpenAI's.


_FIRST_LIST_SECONDS = 0.25


class ModelLists(Struct, frozen=True):
    """Writes what is known of the models; unknown lists are waited for a moment."""

    catalog: Catalog
    router: Router
    settings: Settings

    async def for_editor(self, body: Json) -> Json:
        """Return the answer of `/get-models`; its body says nothing that counts."""
        await self._refresh()
        own, chosen = self.settings.completion, self.settings.routing.models
        next_edit = own.next_edit
        if next_edit is None:
            is_free = not chosen.edit and self.router.edits_here()
            next_edit = bool(chosen.next_edit) or is_free
        flags = pauses(chat_input=own.chat_input, next_edit=next_edit)
        return get_models(self.router.list_models(), self.router.default(), flags)

    async def for_openai(self, wanted: str, *, is_for_codex: bool = False) -> Json:
        """Return the answer of `GET /v1/models`, or of one model if it is wanted.

        Raises:
            BadRequest: 404, no such model is known.
        """
        await self._refresh()
        listed = self.router.list_models()
        if wanted:
            return one_model(listed, wanted)
        return model_list(listed, is_for_codex=is_for_codex)

    async def _refresh(self) -> None:
        """Use what is known of the models; wait a moment where that is nothing."""
        self.catalog.refresh()
        if not self.catalog.list_models():
            await self.catalog.settle(_FIRST_LIST_SECONDS)
