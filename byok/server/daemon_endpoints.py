"""The endpoints for byok's own commands: status, settings, models, keys, reload, stop.

A command without a daemon calls the same functions on services of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from byok import __version__
from byok.augment.body import first_text
from byok.chat import Json
from byok.config import mask_settings
from byok.errors import NO_UPSTREAM, BadRequest, ConfigError
from byok.features.running import Features
from byok.routing import OFFICIAL, Service
from byok.server.catalog_report import catalog
from byok.server.control import Control
from byok.wiring.apis import base_url_of
from byok.wiring.key_sources import key_wanted, list_keys, official_wanted
from byok.wiring.services import Services

_OFFICIAL_SECONDS = 12.0
_JSON = {"Content-Type": "application/json"}


class DaemonEndpoints:
    """Answers what commands ask of the daemon itself."""

    def __init__(
        self,
        services: Services,
        control: Control,
        features: Features,
        make_code: Callable[[], str],
    ) -> None:
        """Take what is told of; `make_code` gives a code for the dashboard."""
        self._services = services
        self._features = features
        self._control = control
        self._make_code = make_code
        self.handlers: Mapping[str, Callable[[Json], Awaitable[Json]]] = {
            **features.handlers,
            Service.DAEMON: self._daemon,
            Service.SETTINGS: self._settings,
            Service.CATALOG: lambda body: catalog(services),
            Service.KEYS: lambda body: keys(services),
            Service.KEY_TEST: lambda body: try_key(
                services, first_text(body, "upstream")
            ),
            Service.RELOAD: self._reload,
            Service.STOP: self._stop,
            Service.DASHBOARD_CODE: self._dashboard_code,
        }

    async def _daemon(self, body: Json) -> Json:
        del body
        choice = self._services.selection
        first = next(iter(choice.upstreams))
        return {
            "version": __version__,
            "upstream": first,
            "base_url": base_url_of(choice.upstreams[first]),
            "reason": choice.reason,
            "model": self._services.router.default().id,
            "settings": self._control.status(),
            "features": await self._features.status(),
        }

    async def _settings(self, body: Json) -> Json:
        del body
        return mask_settings(self._services.settings)

    async def _reload(self, body: Json) -> Json:
        del body
        self._services.forget_keys()
        await self._control.reload()
        return self._control.status()

    async def _stop(self, body: Json) -> Json:
        again = body.get("again") is True
        await self._control.stop(first_text(body, "instance"), again=again)
        return {"again": again}

    async def _dashboard_code(self, body: Json) -> Json:
        del body
        return {"code": self._make_code()}


async def keys(services: Services) -> Json:
    """Tell for each upstream where its key comes from; looking may ask the user."""
    upstreams, ladder = services.selection.upstreams, services.ladder
    return await asyncio.to_thread(list_keys, services.settings, upstreams, ladder)


async def try_key(services: Services, name: str) -> Json:
    """Ask an upstream, or the official service, with its key as it is now.

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
        models = await services.upstreams[name].models()
        return {"origin": wanted.origin, "models": len(models)}
    asked = services.official.ask("/get-models", b"{}", _JSON, _OFFICIAL_SECONDS)
    async with asked:
        return {"origin": wanted.origin}  # it began to answer, so it took the token
