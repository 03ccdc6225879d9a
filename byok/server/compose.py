"""Composition of the server: each part gets what it uses of the services."""

from functools import partial

from byok.routing import Service
from byok.server.admission import Admission
from byok.server.code_endpoints import CodeEndpoints
from byok.server.completions import Completer
from byok.server.control import Control
from byok.server.conversations import Conversations
from byok.server.daemon_endpoints import DaemonEndpoints
from byok.server.endpoints import Endpoints
from byok.server.forward import Forwarder
from byok.server.generate import Generator
from byok.server.grounding import Grounding
from byok.server.handlers import Handlers, LocalHandler
from byok.server.http.deadlines import Timing
from byok.server.http.gate import Gate
from byok.server.http.guard import Guard
from byok.server.http.stream import LineStream
from byok.server.model_answer import AnswerTools
from byok.server.model_lists import ModelLists
from byok.server.official import Relay
from byok.server.target import ModelChooser
from byok.wiring.services import Services


def make_endpoints(
    services: Services,
    guard: Guard,
    gate: Gate,
    conversations: Conversations,
    control: Control,
    timing: Timing,
) -> Endpoints:
    """Build the endpoints for one set of services."""
    settings, router, patience = services.settings, services.router, timing.patience
    chooser = ModelChooser(settings.routing.models, router)
    tools = AnswerTools(settings.tools, services.provider_data, services.redactor)
    grounding = Grounding(
        services.context, settings.chat, keeps_uploads=services.keeps_uploads
    )
    stream = partial(
        LineStream, beat=timing.beat, head_after=timing.head_after, patience=patience
    )
    generator = Generator(
        chooser,
        services.defaults,
        services.context,
        grounding,
        tools,
        Admission(gate, conversations),
        stream,
    )
    completer = Completer(
        chooser,
        services.defaults,
        services.context,
        grounding,
        tools,
        gate,
        settings.completion,
    )
    forwarder = Forwarder(router, services.redactor, gate, patience=patience)
    models = ModelLists(services.catalog, router, settings.completion)
    official = settings.routing.official
    relay = Relay(services.official, official, gate, timing.official, patience=patience)
    local = _local_handlers(services, control, models, relay)
    handlers = Handlers(generator, completer, forwarder, models, local)
    return Endpoints(guard, official, handlers, models, relay, body_gap=timing.body_gap)


def _local_handlers(
    services: Services, control: Control, models: ModelLists, relay: Relay
) -> dict[Service, LocalHandler]:
    """Return what answers each service of the daemon."""
    return {
        Service.MODELS: models.for_editor,
        Service.OFFICIAL: relay.status,
        **CodeEndpoints(services.context).handlers,
        **DaemonEndpoints(services, control).handlers,
    }
