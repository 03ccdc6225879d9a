"""Composition of the server: each part is given the services that it uses."""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from byok.core.language import language_in_force, translator_into
from byok.core.late import late_function
from byok.core.platform.installation import find_command, make_pasteable, make_plain
from byok.core.routing import Service
from byok.features.running import Features
from byok.protocols.v1.recent_answers import RecentAnswers
from byok.server.admission import Admission, Conversations
from byok.server.code_endpoints import CodeEndpoints
from byok.server.completions import Completer
from byok.server.control import Control
from byok.server.daemon_endpoints import ModelLists, daemon_handlers, embed_handlers
from byok.server.dashboard.endpoint import MakeHandlers
from byok.server.dashboard.sessions import Sessions
from byok.server.endpoints import Endpoints, Handlers, LocalHandler
from byok.server.generate import Generator, Grounding, ModelChooser
from byok.server.http.deadlines import Timing
from byok.server.http.gate import Gate
from byok.server.http.guard import Guard
from byok.server.http.stream import EVENT_HEADERS, LINE_HEADERS, LineStream
from byok.server.mcp.endpoint import DaemonCode, ToolEndpoint
from byok.server.model_answer import AnswerTools
from byok.server.official import Relay
from byok.server.translate import Translator
from byok.wiring.services import Services

_MAKE_PAGE = late_function("byok.server.dashboard.api:make_page_handlers")


class LastingParts(Struct, frozen=True):
    """Parts that outlive the services: a reload of the settings replaces only these.

    `sessions` are those of the dashboard, `clock` gives seconds since 1970.
    """

    guard: Guard
    gate: Gate
    conversations: Conversations
    control: Control
    timing: Timing
    features: Features
    sessions: Sessions
    clock: Callable[[], float]
    recent: RecentAnswers


def make_endpoints(
    services: Services, lasting: LastingParts
) -> tuple[Endpoints, MakeHandlers]:
    """Build the endpoints for clients and commands, and the page's handler factory."""
    settings, gate, timing = services.settings, lasting.gate, lasting.timing
    official = settings.routing.official
    models = ModelLists(services.catalog, services.router, settings)
    relay = Relay(services.official, official, gate, timing.official)
    grounding = Grounding(
        services.context, settings.chat, keeps_uploads=services.keeps_uploads
    )
    admission = Admission(gate, lasting.conversations)
    chooser = ModelChooser(
        settings.routing.models,
        services.router,
        services.fallbacks,
        services.moments,
        services.decoding,
    )
    tools = AnswerTools(
        settings.tools,
        services.provider_data,
        services.redactor,
        lasting.features.own_tools,
    )
    admit = lasting.features.admit
    local: dict[str, LocalHandler] = {
        Service.MODELS: models.for_editor,
        Service.OFFICIAL: relay.status,
        **CodeEndpoints(services.context, lasting.features.recall).handlers,
        **embed_handlers(services.embeddings),
        **daemon_handlers(
            services, lasting.control, lasting.features, lasting.sessions.admit
        ),
    }
    translate, command = translator_into(language_in_force()), find_command()
    generator = Generator(
        chooser,
        services.defaults,
        services.context,
        grounding,
        tools,
        admission,
        partial(LineStream, headers=LINE_HEADERS, timing=timing),
        services.chat_places,
        admit,
        lambda text: make_pasteable(translate(make_plain(text)), command),
    )
    handlers = Handlers(
        generator,
        Completer(generator, gate, settings.completion),
        Translator(
            services.router,
            tools,
            admission,
            partial(LineStream, headers=EVENT_HEADERS, timing=timing),
            admit,
            services.moments,
            lasting.recent,
        ),
        models,
        local,
        services.chat_places,
        ToolEndpoint(DaemonCode(local, lasting.features)),
    )
    gap = timing.body_gap
    endpoints = Endpoints(lasting.guard, official, handlers, relay, body_gap=gap)
    control, features, clock = lasting.control, lasting.features, lasting.clock
    return endpoints, partial(_MAKE_PAGE, local, services, control, features, clock)
