"""What the page may ask for, by name: POST /ui/api/NAME with an object."""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from aiohttp.web_response import StreamResponse

from byok.clients.locations import find_machine
from byok.core.chat import Json
from byok.core.code_query import DEFAULT_LENGTH, LONGEST, RetrievalRequest
from byok.core.errors import BadRequest, ConfigError
from byok.core.language import translate
from byok.core.routing import Service
from byok.core.wire.json_lines import encode_line
from byok.features.base import Feed, FeedEnd, FeedReader
from byok.features.running import Features
from byok.search.index.types import Skipped, SkipReason
from byok.search.retrieval.code_context import CodeContext
from byok.server.control import Control
from byok.server.daemon_endpoints import known_catalog
from byok.server.dashboard.clients_api import ClientsApi
from byok.server.dashboard.endpoint import (
    PAGE_HEADERS,
    PageHandler,
    PageRequest,
    bad_field,
    by_body,
    read_choice,
    read_count,
    read_flag,
    read_number,
    read_text,
    read_texts,
    refuse_empty,
)
from byok.server.dashboard.journal_api import JournalApi
from byok.server.dashboard.models_api import ModelsApi
from byok.server.dashboard.settings_page import SettingsApi
from byok.server.endpoints import LocalHandler
from byok.server.http.stream import LINES, OpenStream
from byok.settings import UpstreamSettings
from byok.settings.keys import KeyWanted, clean_key, fingerprint
from byok.settings.keys.keyring_store import KeyringStore
from byok.settings.keys.vault import Vault
from byok.upstream.base import Upstream
from byok.wiring.apis import base_url_of
from byok.wiring.key_sources import key_named
from byok.wiring.services import Services

# What the page asks for beside the journal: overview, index, search, keys.
#
# Each block of the panel asks for itself, because some of it takes seconds: a list of
# models comes from an upstream, a key from a keyring that may open a dialog. Opening
# the panel asks no upstream anything; `upstreams` with `anew` begins to, and is asked
# again for how it goes.


def make_overview_handlers(
    local: Mapping[str, LocalHandler],
    services: Services,
    control: Control,
    journal: JournalApi,
) -> Mapping[str, PageHandler]:
    """Return what answers each name of the overview."""
    look = _one_at_a_time(local[Service.KEYS])

    async def state(asked: PageRequest) -> Json:
        daemon = await local[Service.DAEMON]({})
        return {
            **in_words(daemon, "reason"),
            "settings": in_words(daemon["settings"], "error"),
            "pid": os.getpid(),
            "since": control.since,
            "seconds": max(0.0, time.time() - control.since),
            "official": await local[Service.OFFICIAL]({}),
        }

    async def upstreams(asked: PageRequest) -> Json:
        if read_flag(asked.body, "anew"):
            services.catalog.refresh(anew=True)
        sections = services.selection.upstreams
        known = await journal.describe_upstreams()
        rows = [
            {**_describe(services, services.upstreams[name], section), **known[name]}
            for name, section in sections.items()
        ]
        return {"upstreams": rows}

    async def keys(asked: PageRequest) -> Json:
        """Return keys, each with where it is `from`, and why a store cannot be used."""
        told = await look(asked)
        rows = [{**row, "from": row["source"]} for row in told["keys"]]

        def fault_of(store: type[KeyringStore] | type[Vault]) -> str:
            begin = f"{store.label} ("
            found = next((one for one in told["unread"] if one.startswith(begin)), "")
            return translate(found.removeprefix(begin).removesuffix(")"))

        return {
            "keys": [in_words(row, "error", "from") for row in rows],
            "keyring": fault_of(KeyringStore),
            "vault": fault_of(Vault),
        }

    async def catalog(asked: PageRequest) -> Json:
        known = await journal.describe_upstreams()
        fails = [name for name, one in known.items() if one["state"] == "fails"]
        return {**known_catalog(services), "fails": fails}

    return {
        "state": state,
        "upstreams": upstreams,
        "catalog": catalog,
        "keys": keys,
    }


def in_words(told: Json, *names: str) -> Json:
    """Return an answer with these texts in the language of whoever asked."""
    return {**told, **{name: translate(told[name]) for name in names if told.get(name)}}


def _describe(
    services: Services, upstream: Upstream, section: UpstreamSettings
) -> Json:
    """Return what is known of one upstream; nothing is asked."""
    name, catalog = upstream.name, services.catalog
    listed = catalog.state_of(name)
    return {
        "name": name,
        "type": section.type,
        "base_url": services.redactor(base_url_of(section)),
        "models": len(catalog[name].names),
        "asking": listed.asking,
        "age": listed.age,
        "rest": upstream.rest_seconds,
    }


def _one_at_a_time(
    look: LocalHandler,
) -> Callable[[PageRequest], Awaitable[Json]]:
    """Let all who ask while keys are looked up share one answer.

    Each look may hold a thread for seconds, and open a dialog.
    """
    running: list[asyncio.Task[Json]] = []

    async def answer(asked: PageRequest) -> Json:
        if not running or running[0].done():
            running[:] = [asyncio.ensure_future(look({}))]
        return await asyncio.shield(running[0])

    return answer


# What the panels of the index and of code search ask for.


_LONGEST_QUESTION = 10_000
_LONGEST_PATH = 4096
_MOST_FOLDERS = 100
_HITS, _MOST_HITS = 10, 50
_LINES = 12  # of a chunk
_MOST_FILES = 200
_MOST_SKIPPED = 3  # of a name


class _IndexApi:
    def __init__(self, local: Mapping[str, LocalHandler], context: CodeContext) -> None:
        self._context = context
        self._local = local
        self.handlers: Mapping[str, PageHandler] = {
            "index": self.describe_index,
            "index-vectors": self.describe_vectors,
            "index-why": self.explain_path,
            "index-skipped": self.list_skipped,
            "search": self.search,
            "search-skipped": self.find_skipped,
            "retrieval": self.retrieve,
        }
        self._walking = asyncio.Lock()  # a walk keeps a thread busy for seconds

    async def describe_index(self, asked: PageRequest) -> Json:
        """Return how the index stands, and each folder of it."""
        told = await self._local[Service.INDEX_STATUS](asked.body)
        folders = [in_words(folder, "note") for folder in told["workspaces"]]
        return {**in_words(told, "error"), "workspaces": folders}

    async def describe_vectors(self, asked: PageRequest) -> Json:
        """Return how the vectors stand."""
        told = await self._local[Service.EMBED_STATUS](asked.body)
        return in_words(told, "error", "note")

    async def explain_path(self, asked: PageRequest) -> Json:
        """Return what the index knows of a path: a whole one, or one in any workspace.

        The latter may begin with the workspace's name, or be the end of a path, as
        people write it. Several that end so are `alike`.
        """
        typed = read_text(asked.body, "path", longest=_LONGEST_PATH)
        status = await self._context.status()
        roots = [Path(space.root) for space in status.workspaces[:_MOST_FOLDERS]]
        path, places, why = Path(typed), list[Path](), self._local[Service.INDEX_WHY]
        if not path.is_absolute():
            places += [root / path for root in roots]
            named = [root for root in roots if path.parts[:1] == (root.name,)]
            places += [root.parent / path for root in named]
        answers = [await why({"path": str(one)}) for one in places or [path]]
        best = next((one for one in answers if one["exists"]), answers[-1])
        alike = dict.fromkeys(file for one in answers for file in one["alike"])
        if places and not best["exists"]:
            end = f"/{path.as_posix()}"
            skipped = await self._find_skipped(
                [], lambda file: f"/{file.rstrip('/')}".endswith(end)
            )
            alike |= dict.fromkeys(str(root / file.path) for root, file in skipped)
            if len(alike) == 1:
                best, alike = await why({"path": alike.popitem()[0]}), {}
        return in_words({**best, "alike": [*alike]}, "rule", "advice")

    async def find_skipped(self, asked: PageRequest) -> Json:
        """Return files that are left out, whose names a question has in words."""
        from byok.search.index.report import is_named_in

        question, roots = _question(asked.body)
        found = await self._find_skipped(roots, is_named_in(question))
        return {
            "files": [
                {"file": str(root / one.path), **one._asdict()} for root, one in found
            ]
        }

    async def _find_skipped(
        self, roots: list[str], fits: Callable[[str], bool]
    ) -> list[tuple[Path, Skipped]]:
        async with self._walking:
            return await self._context.find_skipped_by_path(roots, fits, _MOST_SKIPPED)

    async def list_skipped(self, asked: PageRequest) -> Json:
        """Return how many files are left out for each reason, and some of them."""
        body = asked.body
        root = read_text(body, "root", longest=_LONGEST_PATH)
        name = read_choice(body, "reason", ("", *SkipReason), "")
        reason = SkipReason(name) if name else None
        offset = read_number(body, "offset") or 0
        limit = read_count(body, "limit", _MOST_FILES, most=_MOST_FILES)
        async with self._walking:
            found = await self._context.find_skipped(root, reason, offset, limit)
        return {
            "reasons": [
                {"reason": one, "count": found.counts[one], "why": one.explanation}
                for one in SkipReason
                if found.counts.get(one)
            ],
            "files": [file._asdict() for file in found.files],
            "whole": found.whole,
        }

    async def search(self, asked: PageRequest) -> Json:
        """Return the best files with lines of them, and how long that took."""
        question, roots = _question(asked.body)
        limit = read_count(asked.body, "limit", _HITS, most=_MOST_HITS)
        began = time.monotonic()
        found = await self._context.search(question, limit, roots, lines=_LINES)
        return {**found, "seconds": time.monotonic() - began}

    async def retrieve(self, asked: PageRequest) -> Json:
        """Return the excerpts that a model would get, and how long that took."""
        question, roots = _question(asked.body)
        length = read_count(asked.body, "length", DEFAULT_LENGTH, most=LONGEST)
        wanted = RetrievalRequest(question, length, roots=roots)
        found = await self._context.retrieve(wanted)
        return {"text": found.text, "seconds": found.seconds}


def _question(body: Json) -> tuple[str, list[str]]:
    """Return a question, and the workspaces to search."""
    question = read_text(body, "query", longest=_LONGEST_QUESTION)
    roots = read_texts(body, "workspaces", most=_MOST_FOLDERS, longest=_LONGEST_PATH)
    return refuse_empty("query", question), roots


# Keys on the page: stored and removed, never shown.
#
# They go into the keyring, or into the vault where the user chose that: it has byok's
# own key file then, unless the running byok knows its passphrase.
#
# A key is known to the redactor before it is used, and stored for the origin that the
# settings in force name. The page says which address its user sees: where that is
# another one, because the settings were changed meanwhile, nothing is stored.


_LONGEST_NAME = 80
_LONGEST_KEY = 10_000  # as it is pasted
_LONGEST_ADDRESS = 2000
_OTHER_WAYS = (
    "Store it by command: byok keys set {name} --store key-file. "
    "Or set the variable {variable}."
)


class _KeysApi:
    def __init__(self, services: Services, control: Control) -> None:
        self._services = services
        self._control = control
        self.handlers: Mapping[str, PageHandler] = {
            "key-set": self.set,
            "key-remove": self.remove,
        }

    async def set(self, asked: PageRequest) -> Json:
        """Store a key; the answer holds its fingerprint only."""
        # What is no key is not told to the redactor, which forgets nothing: it may be
        # a whole file, or a common word.
        key = clean_key(read_text(asked.body, "key", longest=_LONGEST_KEY))
        wanted = self._find(asked)
        _check_address(
            wanted, read_text(asked.body, "address", longest=_LONGEST_ADDRESS)
        )
        self._services.redactor.add(key)
        if vault := self._vault(asked):
            await asyncio.to_thread(_store_in_vault, vault, wanted.entry, key)
        else:
            keyring = self._services.ladder.keyring
            try:
                await asyncio.to_thread(keyring.set, wanted.entry, key)
            except ConfigError as error:
                raise _with_other_ways(error, wanted) from None
        self._forget(wanted)
        return {"origin": wanted.origin, "fingerprint": fingerprint(key)}

    async def remove(self, asked: PageRequest) -> Json:
        """Remove a stored key."""
        wanted = self._find(asked)
        store = self._vault(asked) or self._services.ladder.keyring
        removed = await asyncio.to_thread(store.remove, wanted.entry)
        self._forget(wanted)
        return {"removed": removed}

    def _vault(self, asked: PageRequest) -> Vault | None:
        """Return the vault if a request is about a key in there."""
        return self._services.ladder.vault if read_flag(asked.body, "vault") else None

    def _find(self, asked: PageRequest) -> KeyWanted:
        name = refuse_empty(
            "name", read_text(asked.body, "name", longest=_LONGEST_NAME)
        )
        if "://" in name:
            raise bad_field("name", "that of an upstream")
        return key_named(name, self._control.settings)

    def _forget(self, wanted: KeyWanted) -> None:
        """Let every key be looked up anew, and this one in the keyring too."""
        self._services.forget_keys()
        if key := self._services.keys.get(wanted.name):
            key.forget()
        self._services.catalog.refresh(anew=True)  # a list that failed for want of it


def _store_in_vault(vault: Vault, entry: str, key: str) -> None:
    """Store a key in the vault; a new one is opened by a key file."""
    if not vault.open():
        vault.create_key_file()
    vault.set(entry, key)


def _check_address(wanted: KeyWanted, address: str) -> None:
    """Refuse a key that was entered for another address than that in force."""
    with contextlib.suppress(ValueError):  # no address
        if KeyWanted(wanted.name, address).origin == wanted.origin:
            return
    raise BadRequest(
        f"The address of {wanted.title} is now {wanted.base_url}, not the one that was "
        "shown; no key was stored.",
        code="settings_changed",
        hint="Look at the address, then set the key again.",
        status=409,
    )


def _with_other_ways(error: ConfigError, wanted: KeyWanted) -> ConfigError:
    ways = _OTHER_WAYS.format(name=wanted.title, variable=wanted.own_env)
    return error.with_hint(ways)


# What the page reads as it changes: a stream of lines, one batch a line.
#
# The first line has all that is known, later ones what changed. One line without
# changes comes when nothing happened for a while, and the last one says why there are
# no more. The stream has no place of the gate, so it takes none from a client and is
# not waited for when the daemon stops.


_BEAT = 15.0  # seconds of silence before a line without changes
_LAST_WORDS = 0.3  # seconds for the last line, for one that does not read
_HEADERS = {**LINES, "Cache-Control": "no-store", **PAGE_HEADERS}


def make_feed_handlers(feeds: Mapping[str, Feed]) -> Mapping[str, PageHandler]:
    """Return what streams each feed, by the same names."""
    return {name: partial(_stream, feed) for name, feed in feeds.items()}


async def _stream(feed: Feed, asked: PageRequest) -> StreamResponse:
    with feed.open_reader() as reader:
        opened = OpenStream(asked.exchange, _HEADERS)
        await _send(asked, feed, reader, opened)
        return opened.response


async def _send(
    asked: PageRequest, feed: Feed, reader: FeedReader, opened: OpenStream
) -> None:
    """Send lines until the session, the daemon or this stream's turn ends."""
    loop = asyncio.get_running_loop()
    with ExitStack() as left:

        def hang_up_soon() -> None:
            left.callback(loop.call_later(_LAST_WORDS, opened.hang_up).cancel)

        reader.on_end = hang_up_soon
        left.callback(asked.on_end(reader.wake))
        changed = True
        while reader.end is None:
            told = feed.take(reader) if changed else {}
            await opened.write(encode_line(told))
            changed = await reader.wait(_BEAT)
            if not asked.is_open():
                reader.finish(FeedEnd.SESSION)
        await opened.finish(encode_line({"end": str(reader.end)}))


# Names of what commands ask for too.
_SHARED = {
    "daemon": Service.DAEMON,
    "key-test": Service.KEY_TEST,
    "index-add": Service.INDEX_ADD,
    "index-remove": Service.INDEX_REMOVE,
    "index-rebuild": Service.INDEX_REBUILD,
}


def make_page_handlers(
    local: Mapping[str, LocalHandler],
    services: Services,
    control: Control,
    features: Features,
    clock: Callable[[], float],
) -> Mapping[str, PageHandler]:
    """Return what answers each name; `local` is what answers commands.

    `clock` gives seconds since 1970.
    """

    async def capture(asked: PageRequest) -> Json:
        starts = read_flag(asked.body, "write")
        return await features.ask("capture", {"switch": "on"} if starts else {})

    async def stop_capture(asked: PageRequest) -> Json:
        return await features.ask("capture", {"switch": "off"})

    journal = JournalApi(services, features, clock)
    shared = {name: by_body(local[service]) for name, service in _SHARED.items()}
    return {
        **shared,
        "capture": capture,
        "capture-stop": stop_capture,
        **journal.handlers,
        **ModelsApi(services).handlers,
        **ClientsApi(services, journal, find_machine()).handlers,
        **make_feed_handlers(features.feeds),
        **make_overview_handlers(local, services, control, journal),
        **_IndexApi(local, services.context).handlers,
        **SettingsApi(services, control).handlers,
        **_KeysApi(services, control).handlers,
    }
