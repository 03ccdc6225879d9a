"""Composition of the server: each part gets what it uses of the services."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from byok.caps.keeper import CapKeeper
from byok.dashboard.live import LiveRequests
from byok.journal.journal import Journal
from byok.routing import Service
from byok.server.admission import Admission
from byok.server.code_endpoints import CodeEndpoints
from byok.server.completions import Completer
from byok.server.control import Control
from byok.server.conversations import Conversations
from byok.server.daemon_endpoints import DaemonEndpoints
from byok.server.dashboard.endpoint import MakeHandlers, PageHandler
from byok.server.embed_endpoints import EmbedEndpoints
from byok.server.endpoints import Endpoints
from byok.server.forward import Forwarder
from byok.server.generate import Generator
from byok.server.grounding import Grounding
from byok.server.handlers import Handlers, LocalHandler
from byok.server.http.deadlines import Timing
from byok.server.http.exchange import HttpExchange
from byok.server.http.gate import Gate
from byok.server.http.guard import Guard
from byok.server.http.stream import EVENTS, LINES, LineStream
from byok.server.model_answer import AnswerTools
from byok.server.model_lists import ModelLists
from byok.server.official import Relay
from byok.server.target import ModelChooser
from byok.server.translate import Translator
from byok.wiring.services import Services


class EndpointSet(NamedTuple):
    """What answers clients and commands, and what makes the handlers of the page."""

    endpoints: Endpoints
    make_page: MakeHandlers


def make_endpoints(
    services: Services,
    guard: Guard,
    gate: Gate,
    conversations: Conversations,
    control: Control,
    timing: Timing,
    caps: CapKeeper,
    live: LiveRequests,
    journal: Journal,
    make_code: Callable[[], str],
) -> EndpointSet:
    """Build what answers requests with one set of services."""
    settings = services.settings
    official = settings.routing.official
    models = ModelLists(services.catalog, services.router, settings.completion)
    relay = Relay(
        services.official, official, gate, timing.official, patience=timing.patience
    )
    grounding = Grounding(
        services.context, settings.chat, keeps_uploads=services.keeps_uploads
    )
    admission = Admission(gate, conversations)
    own = DaemonEndpoints(services, control, caps, journal, make_code)
    local: dict[Service, LocalHandler] = {
        Service.MODELS: models.for_editor,
        Service.OFFICIAL: relay.status,
        **CodeEndpoints(services.context).handlers,
        **EmbedEndpoints(services.embeddings).handlers,
        **own.handlers,
    }
    handlers = Handlers(
        _make_generator(services, grounding, admission, timing, caps),
        _make_completer(services, grounding, gate, caps),
        _make_translator(services, gate, admission, timing, caps),
        models,
        local,
        services.chat_places,
    )
    gap = timing.body_gap
    endpoints = Endpoints(guard, official, handlers, models, relay, body_gap=gap)

    def make_page() -> Mapping[str, PageHandler]:
        from byok.server.dashboard.api import make_page_handlers

        return make_page_handlers(local, services, control, live)

    return EndpointSet(endpoints, make_page)


def _make_generator(
    services: Services,
    grounding: Grounding,
    admission: Admission,
    timing: Timing,
    caps: CapKeeper,
) -> Generator:
    return Generator(
        _make_chooser(services),
        services.defaults,
        services.context,
        grounding,
        _make_tools(services),
        admission,
        _stream_opener(timing, LINES),
        services.shown,
        services.chat_places,
        caps,
    )


def _make_translator(
    services: Services,
    gate: Gate,
    admission: Admission,
    timing: Timing,
    caps: CapKeeper,
) -> Translator:
    return Translator(
        services.router,
        Forwarder(services.redactor, gate, patience=timing.patience),
        _make_tools(services),
        admission,
        _stream_opener(timing, EVENTS),
        caps,
    )


def _stream_opener(
    timing: Timing, headers: Mapping[str, str]
) -> Callable[[HttpExchange], LineStream]:
    return partial(
        LineStream,
        headers=headers,
        beat=timing.beat,
        head_after=timing.head_after,
        late_head_after=timing.late_head_after,
        patience=timing.patience,
    )


def _make_completer(
    services: Services, grounding: Grounding, gate: Gate, caps: CapKeeper
) -> Completer:
    return Completer(
        _make_chooser(services),
        services.defaults,
        services.context,
        grounding,
        _make_tools(services),
        gate,
        services.settings.completion,
        caps,
    )


def _make_chooser(services: Services) -> ModelChooser:
    return ModelChooser(
        services.settings.routing.models, services.router, services.fallbacks
    )


def _make_tools(services: Services) -> AnswerTools:
    return AnswerTools(
        services.settings.tools, services.provider_data, services.redactor
    )
