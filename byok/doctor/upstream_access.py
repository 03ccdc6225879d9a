"""The upstreams of the checks: asked as the daemon asks them, each thing once."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime

import httpx

from byok.config import UpstreamSettings
from byok.dialects.default_models import choose_chat_model
from byok.doctor.addresses import expect_address
from byok.doctor.results import CannotCheck
from byok.doctor.surroundings import Surroundings
from byok.errors import ByokError
from byok.keys import FoundKey, KeyLadder, KeyWanted
from byok.keys.vault import Vault
from byok.routing import Service
from byok.upstream.client import HttpUpstream
from byok.upstream.profiles import Profiles
from byok.upstream.router import PLACEHOLDER
from byok.upstream.transport import Route, Transports
from byok.wiring.key_sources import keys_wanted, make_key
from byok.wiring.upstream_selection import UpstreamSelection, values_to_hide
from byok.wiring.upstreams import make_spec


class NotedLadder(KeyLadder):
    """Key sources that are asked once for each key; `seconds` says how long it took."""

    def __init__(self, around: Surroundings) -> None:
        vault = Vault(
            around.paths.vault, around.environ, key_file=around.paths.vault_key
        )
        super().__init__(environ=around.environ, vault=vault)
        self._locks: defaultdict[KeyWanted, threading.Lock] = defaultdict(
            threading.Lock
        )
        self._known: dict[tuple[KeyWanted, bool], FoundKey | ByokError] = {}
        self.seconds: dict[KeyWanted, float] = {}

    def find(self, wanted: KeyWanted, *, stores: bool = True) -> FoundKey:
        """Return the key as `KeyLadder.find` does, from the second time on at once."""
        with self._locks[wanted]:
            if (wanted, stores) not in self._known:
                began = time.monotonic()
                try:
                    self._known[wanted, stores] = super().find(wanted, stores=stores)
                except ByokError as error:
                    self._known[wanted, stores] = error
                self.seconds[wanted] = time.monotonic() - began
            found = self._known[wanted, stores]
        if isinstance(found, ByokError):
            raise found
        return found


class NotedTransports(Transports):
    """Transports that note the clocks of servers.

    `skews` are by host: seconds by which its clock is ahead of this machine's.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self.skews: dict[str, float] = {}

    def by(self, route: Route) -> httpx.AsyncBaseTransport:
        """Return the transport of a route, as `Transports.by` does."""
        return _NotingTransport(super().by(route), self._note)

    def _note(self, response: httpx.Response, host: str) -> None:
        if "age" in response.headers:  # of a cache: its date is that of another day
            return
        try:
            told = parsedate_to_datetime(response.headers.get("date", ""))
            if told.tzinfo is not None:
                self.skews[host] = told.timestamp() - self._clock()
        except (ValueError, TypeError, OverflowError):
            return  # it is no date


class _NotingTransport(httpx.AsyncBaseTransport):
    def __init__(
        self,
        inner: httpx.AsyncBaseTransport,
        note: Callable[[httpx.Response, str], None],
    ) -> None:
        self._inner = inner
        self._note = note

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        self._note(response, request.url.host)
        return response


async def get_ladder(around: Surroundings) -> NotedLadder:
    """Return the key sources that all checks share."""

    async def make() -> NotedLadder:
        return NotedLadder(around)

    return await around.once("ladder", make)


async def get_transports(around: Surroundings) -> NotedTransports:
    """Return the connections that all checks share."""

    async def make() -> NotedTransports:
        transports = NotedTransports(around.machine.clock)
        around.on_close.append(transports.close)
        return transports

    return await around.once("transports", make)


async def section_of(around: Surroundings, name: str) -> UpstreamSettings:
    """Return the section of an upstream that is looked at."""
    return (await around.upstreams())[name]


async def open_upstream(around: Surroundings, name: str) -> HttpUpstream:
    """Return an upstream with its own API and key, and what is known of its models."""

    async def make() -> HttpUpstream:
        settings, section = await around.settings(), await section_of(around, name)
        chosen = UpstreamSelection({name: section}, "")
        for value in values_to_hide(settings, chosen):
            around.redactor.add(value)
        wanted = keys_wanted(name, section)
        key = make_key(await get_ladder(around), around.redactor, *wanted)
        spec = make_spec(name, section, settings)
        profiles = Profiles(around.paths.profiles)
        return HttpUpstream(spec, await get_transports(around), key, profiles=profiles)

    return await around.once(f"upstream {name}", make)


async def list_models(around: Surroundings, name: str) -> Sequence[str]:
    """Return the models that an upstream lists; it is asked once.

    Raises:
        CannotCheck: it takes no connection.
        ByokError: it did not list them.
    """
    await expect_address(around, name)
    upstream = await open_upstream(around, name)
    return await around.once(f"models {name}", upstream.models)


async def default_id(around: Surroundings) -> str:
    """Return the id of the model that clients get by default; "" if none is known."""
    if status := await around.ask_if_running(Service.DAEMON):
        return str(status.get("model", ""))
    settings = await around.settings()
    wanted = settings.routing.default
    return settings.routing.aliases.get(wanted.removeprefix("byok:"), wanted)


async def model_of(around: Surroundings, name: str) -> str:
    """Return the model of an upstream that is looked at: its default.

    Raises:
        CannotCheck: none is known.
    """
    wanted = await default_id(around)
    prefix, first = f"byok:{name}:", next(iter(await around.upstreams()))
    if wanted.startswith(prefix) and wanted != f"{prefix}{PLACEHOLDER}":
        return wanted.removeprefix(prefix)
    if wanted and name == first and not wanted.startswith("byok:"):
        return wanted
    section = await section_of(around, name)
    if own := next(filter(None, (section.model, *section.models)), ""):
        return own
    upstream = await open_upstream(around, name)
    try:
        listed = await list_models(around, name)
    except ByokError as error:
        raise CannotCheck("no model of it is known") from error
    facts = [upstream.known.facts(model) for model in listed]
    if chosen := choose_chat_model(upstream.spec.vendor, facts):
        return chosen
    raise CannotCheck("it lists no models")
