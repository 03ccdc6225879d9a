"""Settings become everything that runs; opened and closed here and nowhere else."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from byok.augment.job import Defaults
from byok.augment.models import split_id
from byok.chat import Sampling
from byok.config import (
    Settings,
    UpstreamSettings,
    check_files,
    is_loopback,
    upstream_named,
)
from byok.dialects.named import DIALECTS
from byok.dialects.presets import DEMO, PRESETS
from byok.dialects.quirks import quirks_of
from byok.errors import ConfigError, KeyMissing
from byok.keys import KeyLadder, KeyWanted
from byok.keys.lookup import UpstreamKey
from byok.keys.vault import Vault
from byok.paths import Paths
from byok.redact import Redactor
from byok.retrieval.code_context import CodeContext
from byok.retrieval.opening import open_context
from byok.upstream.base import Upstream
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.client import HttpUpstream
from byok.upstream.demo import MODEL as DEMO_MODEL
from byok.upstream.demo import DemoUpstream
from byok.upstream.discover import answering
from byok.upstream.patience import LOCAL, REMOTE
from byok.upstream.router import Router
from byok.upstream.sending import UpstreamSpec
from byok.upstream.transport import Route, Transports

_log = logging.getLogger(__name__)
_LOCAL_PAUSE, _REMOTE_PAUSE = 3.0, 30.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """The upstreams in their order, the first answers by default; and why."""

    upstreams: Mapping[str, UpstreamSettings]
    reason: str


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the server and the commands use."""

    settings: Settings
    paths: Paths
    choice: Chosen
    redactor: Redactor
    upstreams: Mapping[str, Upstream]
    catalog: Catalog
    router: Router
    keys: Mapping[str, UpstreamKey]
    context: CodeContext

    def forget_keys(self) -> None:
        """Look every key up anew when it is needed next."""
        for key in self.keys.values():
            key.forget()
        _log.info("keys are read anew")

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


def key_wanted(name: str, settings: UpstreamSettings) -> KeyWanted:
    """Say for whom a key is looked for.

    The vendor's own variable counts for the vendor's own address only.
    """
    preset = PRESETS.get(settings.type)
    base_url = base_url_of(settings)
    return KeyWanted(
        name,
        base_url,
        preset_env=preset.key_env if preset and preset.is_at(base_url) else "",
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


async def choose_upstreams(
    settings: Settings,
    wanted: str,
    transports: Transports,
    ladder: KeyLadder,
) -> Chosen:
    """Decide which upstreams there are, and which comes first.

    Without any choice of the user: the first local server that answers, else an
    upstream whose key is found, else the demo.
    """
    if wanted:
        name, chosen = upstream_named(wanted, settings)
        others = {n: u for n, u in settings.upstreams.items() if n != name}
        return Chosen({name: chosen, **others}, "chosen by --upstream")
    if settings.upstreams:
        return Chosen(settings.upstreams, "first of the settings")
    local = {n: p.base_url for n, p in PRESETS.items() if p.local}
    if found := await answering(transports, local):
        chosen = UpstreamSettings(type=found[0])
        return Chosen({found[0]: chosen}, f"it answers at {local[found[0]]}")
    hosted = [n for n, p in PRESETS.items() if not p.local and p.base_url]
    if hit := await asyncio.to_thread(_first_key, ladder, hosted):
        return Chosen(
            {hit[0]: UpstreamSettings(type=hit[0])}, f"its key is in {hit[1]}"
        )
    reason = "no local server answers and no key was found; choose with --upstream"
    return Chosen({DEMO: UpstreamSettings(type=DEMO)}, reason)


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


def spec_of(name: str, settings: UpstreamSettings, common: Settings) -> UpstreamSpec:
    """Say what an upstream is, by its section and by what is common to all."""
    chat, network = common.chat, common.network
    base_url = base_url_of(settings)
    local = is_loopback(base_url)
    proxy = "" if local else settings.proxy or network.proxy
    patience = LOCAL if local else REMOTE
    if settings.timeout:
        patience = patience.with_silence(settings.timeout)
    return UpstreamSpec(
        name=name,
        base_url=base_url,
        dialect=DIALECTS[settings.dialect or "openai_chat"],
        quirks=quirks_of(settings.type, base_url),
        patience=patience,
        # A local server may be started any moment: it is not left alone for long.
        breaker_pause=_LOCAL_PAUSE if local else _REMOTE_PAUSE,
        headers={**chat.headers, **settings.headers},
        extra_body={**chat.extra_body, **settings.extra_body},
        route=Route(proxy, settings.ca_file or network.ca_file),
    )


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
    return HttpUpstream(spec_of(name, settings, common), transports, key)


@asynccontextmanager
async def open_services(
    settings: Settings,
    paths: Paths,
    *,
    upstream: str = "",
    model: str = "",
    ladder: KeyLadder | None = None,
    redactor: Redactor | None = None,
    roots: Iterable[Path] = (),
) -> AsyncIterator[Services]:
    """Open everything; no upstream need be reachable. `roots` are more workspaces.

    Raises:
        ConfigError: the chosen upstream or model does not exist.
        NewerData, CorruptData: the files about code cannot be used.
    """
    check_files(settings)
    transports = Transports()
    redactor = redactor or Redactor()
    ladder = ladder or make_ladder(paths)
    try:
        choice = await choose_upstreams(settings, upstream, transports, ladder)
        for section in (settings.chat, *choice.upstreams.values()):
            for value in section.headers.values():
                redactor.add(value)
        keys = {
            name: UpstreamKey(
                ladder,
                key_wanted(name, section),
                redactor,
                local=is_loopback(base_url_of(section)),
            )
            for name, section in choice.upstreams.items()
        }
        upstreams = {
            name: make_upstream(
                name, section, common=settings, transports=transports, key=keys[name]
            )
            for name, section in choice.upstreams.items()
        }
        catalog = Catalog(
            (
                CatalogEntry(upstreams[name], *_models(section), base_url_of(section))
                for name, section in choice.upstreams.items()
            ),
            paths.models,
        )
        default = _default_id(model, settings, choice)
        router = Router(upstreams, catalog, default)
        try:
            async with open_context(settings, paths, roots) as context:
                yield Services(
                    settings, paths, choice, redactor,
                    upstreams, catalog, router, keys, context,
                )  # fmt: skip
        finally:
            await catalog.close()
    finally:
        await transports.close()


def _models(section: UpstreamSettings) -> tuple[tuple[str, ...], str]:
    """Return the models listed by hand, and the upstream's default."""
    if section.type == DEMO:
        return (DEMO_MODEL,), DEMO_MODEL
    return tuple(section.models), section.model


def _default_id(model: str, settings: Settings, choice: Chosen) -> str:
    """`--model` goes to the first upstream unless it is a whole id."""
    default = settings.routing.default
    if model:
        first = next(iter(choice.upstreams))
        default = model if model.startswith("byok:") else f"byok:{first}:{model}"
    _check_upstream("default", default, choice)
    for purpose, wanted in settings.routing.models:
        _check_upstream(purpose, wanted, choice)
    return default


def _check_upstream(what: str, model: str, choice: Chosen) -> None:
    name, _ = split_id(model) or ("", "")
    if model.startswith("byok:") and name not in choice.upstreams:
        raise ConfigError(
            f"The {what} model {model!r} names no configured upstream.",
            hint=f"Configured are: {', '.join(choice.upstreams)}.",
        )
