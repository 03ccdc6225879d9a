"""Composition of the server: each part is given the services that it uses."""

from collections.abc import Callable
from functools import partial

from byok.core.language import language_in_force, translator_into
from byok.core.late import late_function
from byok.core.platform.installation import find_command, make_pasteable, make_plain
from byok.core.routing import Service
from byok.features.running import Features
from byok.protocols.v1.recent_answers import RecentAnswers
from byok.server.admission import Admission
from byok.server.app import App
from byok.server.code_endpoints import CodeEndpoints
from byok.server.completions import Completer
from byok.server.control import Control
from byok.server.daemon_endpoints import ModelLists, daemon_handlers, embed_handlers
from byok.server.dashboard.endpoint import DashboardEndpoint
from byok.server.endpoints import Endpoints, LocalHandler
from byok.server.generate import Generator, Grounding, ModelChooser
from byok.server.http.stream import EVENT_HEADERS, LINE_HEADERS, LineStream
from byok.server.mcp.endpoint import DaemonCode, ToolEndpoint
from byok.server.model_answer import AnswerTools
from byok.server.official import Relay
from byok.server.translate import Translator
from byok.wiring.services import Services

_MAKE_PAGE = late_function("byok.server.dashboard.api:make_page_handlers")


class Composer:
    """Puts the endpoints together from services, at the start and at each reload.

    Conversations outlive the services, so that their turns keep their order, and so do
    the recent answers to which clients refer.
    """

    def __init__(
        self,
        app: App,
        dashboard: DashboardEndpoint,
        features: Features,
        control: Control,
        clock: Callable[[], float],
    ) -> None:
        """`clock` gives seconds since 1970."""
        self._app = app
        self._dashboard = dashboard
        self._features = features
        self._control = control
        self._clock = clock
        self._admission = Admission(app.gate)
        self._recent = RecentAnswers()

    def open(self, services: Services) -> None:
        """Answer new requests by these services.

        Raises:
            ConfigError: a feature cannot use their settings.
        """
        features, control = self._features, self._control
        features.configure(services.for_features)
        local: dict[str, LocalHandler] = {
            **CodeEndpoints(services.context, features.recall).handlers,
            **embed_handlers(services.embeddings),
            **daemon_handlers(
                services, control, features, self._dashboard.sessions.admit
            ),
        }
        self._app.open(self._make_endpoints(services, local), services.shrink)
        make_page = partial(_MAKE_PAGE, local, services, control, features, self._clock)
        self._dashboard.open(make_page)
        services.catalog.refresh()

    def _make_endpoints(
        self, services: Services, local: dict[str, LocalHandler]
    ) -> Endpoints:
        translate, command = translator_into(language_in_force()), find_command()
        settings, timing = services.settings, self._app.timing
        official = settings.routing.official
        models = ModelLists(services.catalog, services.router, settings)
        relay = Relay(services.official, official, self._app.gate, timing.official)
        local |= {Service.MODELS: models.for_editor, Service.OFFICIAL: relay.status}
        tools = AnswerTools(
            settings.tools,
            services.provider_data,
            services.redactor,
            self._features.own_tools,
        )
        generator = Generator(
            ModelChooser(
                settings.routing.models,
                services.router,
                services.fallbacks,
                services.moments,
                services.decoding,
            ),
            services.defaults,
            services.context,
            Grounding(
                services.context, settings.chat, keeps_uploads=services.keeps_uploads
            ),
            tools,
            self._admission,
            partial(LineStream, headers=LINE_HEADERS, timing=timing),
            services.chat_places,
            self._features.admit,
            lambda text: make_pasteable(translate(make_plain(text)), command),
        )
        return Endpoints(
            self._app.guard,
            official,
            relay,
            generator,
            Completer(generator, self._app.gate, settings.completion),
            Translator(
                services.router,
                tools,
                self._admission,
                partial(LineStream, headers=EVENT_HEADERS, timing=timing),
                self._features.admit,
                services.moments,
                self._recent,
            ),
            models,
            local,
            services.chat_places,
            ToolEndpoint(DaemonCode(local, self._features)),
            timing.body_gap,
        )
