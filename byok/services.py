"""Settings become everything that runs; opened and closed here and nowhere else."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from byok.augment.chat_request import Defaults
from byok.chat import Sampling
from byok.config import Settings, UpstreamSettings, is_loopback
from byok.dialects import DIALECTS
from byok.dialects.presets import DEMO, PRESETS
from byok.dialects.quirks import DEFAULT, QUIRKS
from byok.errors import ConfigError, KeyMissing
from byok.keys import FoundKey, KeyLadder, KeyWanted
from byok.keys.vault import Vault
from byok.paths import Paths
from byok.redact import Redactor
from byok.upstream.base import Upstream
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.client import HttpUpstream, UpstreamSpec
from byok.upstream.demo import MODEL as DEMO_MODEL
from byok.upstream.demo import DemoUpstream
from byok.upstream.discover import answering
from byok.upstream.router import Router
from byok.upstream.transport import Route, Transports

_log = logging.getLogger(__name__)
CUSTOM = "custom"
_LOCAL_TIMEOUT, _REMOTE_TIMEOUT = 600.0, 120.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The upstreams in their order, the first answers by default; and why."""

    upstreams: Mapping[str, UpstreamSettings]
    reason: str


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the server and the commands use."""

    settings: Settings
    paths: Paths
    choice: Choice
    redactor: Redactor
    upstreams: Mapping[str, Upstream]
    catalog: Catalog
    router: Router

    def defaults(self, endpoint: str, upstream: str) -> Defaults:
        """Return the user's defaults for an endpoint and an upstream."""
        chat, own = self.settings.chat, self.choice.upstreams[upstream]
        sampling = Sampling(
            *(
                getattr(own, name) if getattr(own, name) is not None
                else getattr(chat, name)
                for name in ("temperature", "top_p", "max_tokens")
            )
        )  # fmt: skip
        addition = self.settings.prompts.get(endpoint.lstrip("/"), "")
        return Defaults(own.system_prompt or chat.system_prompt, addition, sampling)


class UpstreamKey:
    """The key of one upstream, looked up once, in a thread."""

    def __init__(
        self, ladder: KeyLadder, wanted: KeyWanted, redactor: Redactor
    ) -> None:
        self._ladder = ladder
        self._wanted = wanted
        self._redactor = redactor
        self._found: FoundKey | None = None
        self._lock = asyncio.Lock()

    async def get(self) -> str:
        """Return the key; "" where the upstream works without one."""
        async with self._lock:
            if self._found is None:
                self._found = await asyncio.to_thread(self._find)
                self._redactor.add(self._found.value)
        return self._found.value

    def forget(self) -> None:
        """Look again next time."""
        self._found = None

    def _find(self) -> FoundKey:
        try:
            return self._ladder.find(self._wanted)
        except KeyMissing:
            if self._wanted.preset_env or self._wanted.named_env:
                raise
            return FoundKey("", "none needed")


def key_wanted(name: str, settings: UpstreamSettings) -> KeyWanted:
    """Say for whom a key is looked for."""
    preset = PRESETS.get(settings.type)
    return KeyWanted(
        name,
        base_url_of(settings),
        preset_env=preset.key_env if preset else "",
        named_env=settings.api_key_env,
        command=tuple(settings.api_key_cmd),
    )


def base_url_of(settings: UpstreamSettings) -> str:
    """Return where an upstream is; "" for the demo."""
    preset = PRESETS.get(settings.type)
    return settings.base_url or (preset.base_url if preset else "")


def make_ladder(paths: Paths, environ: Mapping[str, str] = os.environ) -> KeyLadder:
    """Return the places where this user's keys may be."""
    vault = Vault(paths.vault, environ) if paths.vault.exists() else None
    return KeyLadder(environ=environ, vault=vault)


def upstream_named(wanted: str, settings: Settings) -> tuple[str, UpstreamSettings]:
    """Read `--upstream`: a name of the settings, a preset, or a URL.

    Raises:
        ConfigError: it is none of these.
    """
    if wanted in settings.upstreams:
        return wanted, settings.upstreams[wanted]
    if "://" in wanted:
        return CUSTOM, _custom(wanted)
    if wanted == DEMO or (wanted in PRESETS and PRESETS[wanted].base_url):
        return wanted, UpstreamSettings(type=wanted)
    known = [*settings.upstreams, *(n for n, p in PRESETS.items() if p.base_url), DEMO]
    raise ConfigError(
        f"There is no upstream {wanted!r}.",
        hint=f"Known are: {', '.join(dict.fromkeys(known))}; or give a URL.",
    )


def _custom(url: str) -> UpstreamSettings:
    try:
        return Settings(upstreams={CUSTOM: {"base_url": url}}).upstreams[CUSTOM]
    except ValueError as error:
        raise ConfigError(
            "The upstream's URL cannot be used: it must look like https://host/v1, "
            "and plain http is for this machine only."
        ) from error


async def choose_upstreams(
    settings: Settings,
    wanted: str,
    transports: Transports,
    ladder: KeyLadder,
) -> Choice:
    """Decide which upstreams there are, and which comes first.

    Without any choice of the user: the first local server that answers, else an
    upstream whose key is found, else the demo.
    """
    if wanted:
        name, chosen = upstream_named(wanted, settings)
        others = {n: u for n, u in settings.upstreams.items() if n != name}
        return Choice({name: chosen, **others}, "chosen by --upstream")
    if settings.upstreams:
        return Choice(settings.upstreams, "first of the settings")
    local = {n: p.base_url for n, p in PRESETS.items() if p.local}
    if found := await answering(transports, local):
        chosen = UpstreamSettings(type=found[0])
        return Choice({found[0]: chosen}, f"it answers at {local[found[0]]}")
    hosted = [n for n, p in PRESETS.items() if not p.local and p.base_url]
    if hit := await asyncio.to_thread(_first_key, ladder, hosted):
        return Choice(
            {hit[0]: UpstreamSettings(type=hit[0])}, f"its key is in {hit[1]}"
        )
    reason = "no local server answers and no key was found; choose with --upstream"
    return Choice({DEMO: UpstreamSettings(type=DEMO)}, reason)


def _first_key(ladder: KeyLadder, names: Iterable[str]) -> tuple[str, str] | None:
    for name in names:
        wanted = key_wanted(name, UpstreamSettings(type=name))
        try:
            return name, ladder.find(wanted).source
        except KeyMissing:
            continue
        except ConfigError as error:
            _log.warning("%s is left out: %s", name, error)
    return None


def make_upstream(
    name: str,
    settings: UpstreamSettings,
    *,
    common: Settings,
    transports: Transports,
    key: UpstreamKey,
) -> Upstream:
    """Turn one section of the settings into an upstream."""
    if settings.type == DEMO:
        return DemoUpstream(name)
    chat, network = common.chat, common.network
    base_url = base_url_of(settings)
    local = is_loopback(base_url)
    route = Route(
        settings.proxy or ("" if local else network.proxy),
        settings.ca_file or network.ca_file,
    )
    spec = UpstreamSpec(
        name=name,
        base_url=base_url,
        dialect=DIALECTS[settings.dialect or "openai_chat"],
        quirks=QUIRKS.get(settings.type, DEFAULT),
        timeout=settings.timeout or (_LOCAL_TIMEOUT if local else _REMOTE_TIMEOUT),
        headers={**chat.headers, **settings.headers},
        extra_body={**chat.extra_body, **settings.extra_body},
        route=replace(route, proxy="") if local else route,
    )
    return HttpUpstream(spec, transports, key)


@asynccontextmanager
async def open_services(
    settings: Settings,
    paths: Paths,
    *,
    upstream: str = "",
    model: str = "",
    ladder: KeyLadder | None = None,
) -> AsyncIterator[Services]:
    """Open everything; no upstream need be reachable.

    Raises:
        ConfigError: the chosen upstream or model does not exist.
    """
    transports = Transports()
    redactor = Redactor()
    ladder = ladder or make_ladder(paths)
    try:
        choice = await choose_upstreams(settings, upstream, transports, ladder)
        upstreams = {
            name: make_upstream(
                name,
                section,
                common=settings,
                transports=transports,
                key=UpstreamKey(ladder, key_wanted(name, section), redactor),
            )
            for name, section in choice.upstreams.items()
        }
        catalog = Catalog(
            (
                CatalogEntry(upstreams[name], *_models(section))
                for name, section in choice.upstreams.items()
            ),
            paths.models,
        )
        default = _default_id(model, settings, choice)
        router = Router(upstreams, catalog, default)
        try:
            yield Services(
                settings, paths, choice, redactor, upstreams, catalog, router
            )
        finally:
            await catalog.close()
    finally:
        await transports.close()


def _models(section: UpstreamSettings) -> tuple[tuple[str, ...], str]:
    """Return the models listed by hand, and the upstream's default."""
    if section.type == DEMO:
        return (DEMO_MODEL,), DEMO_MODEL
    return tuple(section.models), section.model


def _default_id(model: str, settings: Settings, choice: Choice) -> str:
    """`--model` goes to the first upstream unless it is a whole id."""
    if model:
        first = next(iter(choice.upstreams))
        return model if model.startswith("byok:") else f"byok:{first}:{model}"
    return settings.routing.default
