"""The API of the page: POST /ui/api/NAME with an object.

Each block of the page has a request of its own, because some answers take seconds: a
list of models comes from an upstream, a key from a keyring that may open a dialog. To
open the page sends nothing to an upstream; only `upstreams` with `anew` begins to fetch
their lists, and the page requests it again to see the progress.
"""

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
from byok.core.code_query import DEFAULT_LENGTH, MAX_LENGTH, RetrievalRequest
from byok.core.errors import BadRequest, ConfigError
from byok.core.language import translate
from byok.core.platform.installation import find_command, make_pasteable
from byok.core.routing import Service
from byok.core.wire.json_lines import encode_line
from byok.features.base import Feed, FeedEnd
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
from byok.server.http.stream import LINE_HEADERS, OpenStream
from byok.settings import UpstreamSettings
from byok.settings.keys import KeyLookup, clean_key, fingerprint
from byok.settings.keys.keyring_store import KeyringStore
from byok.settings.keys.vault import Vault
from byok.upstream.base import Upstream
from byok.wiring.apis import base_url_of
from byok.wiring.key_sources import key_named
from byok.wiring.services import Services

_MAX_QUESTION_CHARS = 10_000
_MAX_PATH_CHARS = 4096
_MAX_NAME_CHARS = 80
_MAX_KEY_CHARS = 10_000  # as it is pasted
_MAX_ADDRESS_CHARS = 2000
_MAX_FOLDERS = 100
_HITS, _MAX_HITS = 10, 50
_LINES = 12  # of a chunk
_MAX_FILES = 200
_MAX_NAMED = 3  # of a name
_HEARTBEAT_SECONDS = 15.0  # of silence before a line without changes
_LAST_LINE_SECONDS = 0.3  # to send the last line to a page that does not read
_HEADERS = {**LINE_HEADERS, "Cache-Control": "no-store", **PAGE_HEADERS}
_OTHER_WAYS = (
    "Store it by command: byok keys set {name} --store key-file. "
    "Or set the variable {variable}."
)
# Names that are answered by handlers of commands.
_SERVICES = {
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
    """Return the handlers of all names; `local` are those of commands.

    `clock` gives seconds since 1970.
    """

    async def capture(request: PageRequest) -> Json:
        starts = read_flag(request.body, "write")
        return await features.ask("capture", {"switch": "on"} if starts else {})

    async def stop_capture(request: PageRequest) -> Json:
        return await features.ask("capture", {"switch": "off"})

    journal = JournalApi(services, features, clock)
    shared = {name: by_body(local[service]) for name, service in _SERVICES.items()}
    return {
        **shared,
        "capture": capture,
        "capture-stop": stop_capture,
        **journal.handlers,
        **ModelsApi(services).handlers,
        **ClientsApi(services, journal, find_machine()).handlers,
        **{name: partial(_stream_feed, feed) for name, feed in features.feeds.items()},
        **make_overview_handlers(local, services, control, journal),
        **_IndexApi(local, services.context).handlers,
        **SettingsApi(services, control).handlers,
        **_KeysApi(services, control).handlers,
    }


def make_overview_handlers(
    local: Mapping[str, LocalHandler],
    services: Services,
    control: Control,
    journal: JournalApi,
) -> Mapping[str, PageHandler]:
    """Return the handlers of the overview, by name."""
    look_up_keys = _share_running_lookup(local[Service.KEYS])

    async def state(request: PageRequest) -> Json:
        daemon = await local[Service.DAEMON]({})
        return {
            **translate_texts(daemon, "reason"),
            "settings": translate_texts(daemon["settings"], "error"),
            "pid": os.getpid(),
            "since": control.since,
            "seconds": max(0.0, time.time() - control.since),
            "official": await local[Service.OFFICIAL]({}),
        }

    async def upstreams(request: PageRequest) -> Json:
        if read_flag(request.body, "anew"):
            services.catalog.refresh(anew=True)
        sections = services.selection.upstreams
        states = await journal.describe_upstreams()
        rows = [
            {**_describe(services, services.upstreams[name], section), **states[name]}
            for name, section in sections.items()
        ]
        return {"upstreams": rows}

    async def keys(request: PageRequest) -> Json:
        """Return the source of each key, and why a store cannot be used."""
        found = await look_up_keys(request)
        rows = [{**row, "from": row["source"]} for row in found["keys"]]

        def fault_of(store: type[KeyringStore] | type[Vault]) -> str:
            begin = f"{store.label} ("
            unread = next((s for s in found["unread"] if s.startswith(begin)), "")
            return translate(unread.removeprefix(begin).removesuffix(")"))

        return {
            "keys": [translate_texts(row, "error", "from") for row in rows],
            "keyring": fault_of(KeyringStore),
            "vault": fault_of(Vault),
        }

    async def catalog(request: PageRequest) -> Json:
        states = await journal.describe_upstreams()
        fails = [name for name, state in states.items() if state["state"] == "fails"]
        return {**known_catalog(services), "fails": fails}

    return {
        "state": state,
        "upstreams": upstreams,
        "catalog": catalog,
        "keys": keys,
    }


def _describe(
    services: Services, upstream: Upstream, section: UpstreamSettings
) -> Json:
    """Return the known facts about an upstream; nothing is sent to it."""
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


def _share_running_lookup(
    look_up: LocalHandler,
) -> Callable[[PageRequest], Awaitable[Json]]:
    """Let requests that arrive during a lookup of keys share its answer.

    Each lookup may block a thread for seconds, and open a dialog.
    """
    running: list[asyncio.Task[Json]] = []

    async def answer(request: PageRequest) -> Json:
        if not running or running[0].done():
            running[:] = [asyncio.ensure_future(look_up({}))]
        return await asyncio.shield(running[0])

    return answer


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
        self._walk_lock = asyncio.Lock()  # a walk keeps a thread busy for seconds

    async def describe_index(self, request: PageRequest) -> Json:
        """Return the status of the index and of each of its folders."""
        status = await self._local[Service.INDEX_STATUS](request.body)
        folders = [translate_texts(folder, "note") for folder in status["workspaces"]]
        return {**translate_texts(status, "error"), "workspaces": folders}

    async def describe_vectors(self, request: PageRequest) -> Json:
        """Return the status of the vectors."""
        status = await self._local[Service.EMBED_STATUS](request.body)
        return translate_texts(status, "error", "note")

    async def explain_path(self, request: PageRequest) -> Json:
        """Return what the index knows of a path: absolute, or relative to a workspace.

        A relative path may begin with the workspace's name, or be the end of a path, as
        people write it. If several paths have this end, they are `alike`.
        """
        typed = read_text(request.body, "path", max_chars=_MAX_PATH_CHARS)
        status = await self._context.status()
        roots = [Path(space.root) for space in status.workspaces[:_MAX_FOLDERS]]
        path, paths, explain = Path(typed), list[Path](), self._local[Service.INDEX_WHY]
        if not path.is_absolute():
            paths += [root / path for root in roots]
            named = [root for root in roots if path.parts[:1] == (root.name,)]
            paths += [root.parent / path for root in named]
        answers = [await explain({"path": str(each)}) for each in paths or [path]]
        best = next((answer for answer in answers if answer["exists"]), answers[-1])
        alike = dict.fromkeys(file for answer in answers for file in answer["alike"])
        if paths and not best["exists"]:
            end = f"/{path.as_posix()}"
            skipped = await self._find_skipped(
                [], lambda file: f"/{file.rstrip('/')}".endswith(end)
            )
            alike |= dict.fromkeys(str(root / file.path) for root, file in skipped)
            if len(alike) == 1:
                best, alike = await explain({"path": alike.popitem()[0]}), {}
        return translate_texts({**best, "alike": [*alike]}, "rule", "advice")

    async def find_skipped(self, request: PageRequest) -> Json:
        """Return files that are left out of the index and named in the question."""
        from byok.search.index.report import is_named_in

        question, roots = _read_question(request.body)
        skipped = await self._find_skipped(roots, is_named_in(question))
        return {
            "files": [
                {"file": str(root / file.path), **file._asdict()}
                for root, file in skipped
            ]
        }

    async def _find_skipped(
        self, roots: list[str], matches: Callable[[str], bool]
    ) -> list[tuple[Path, Skipped]]:
        async with self._walk_lock:
            return await self._context.find_skipped_by_path(roots, matches, _MAX_NAMED)

    async def list_skipped(self, request: PageRequest) -> Json:
        """Return how many files are left out for each reason, and some of them."""
        body = request.body
        root = read_text(body, "root", max_chars=_MAX_PATH_CHARS)
        name = read_choice(body, "reason", ("", *SkipReason), "")
        reason = SkipReason(name) if name else None
        offset = read_number(body, "offset") or 0
        limit = read_count(body, "limit", _MAX_FILES, maximum=_MAX_FILES)
        async with self._walk_lock:
            report = await self._context.find_skipped(root, reason, offset, limit)
        return {
            "reasons": [
                {"reason": kind, "count": report.counts[kind], "why": kind.explanation}
                for kind in SkipReason
                if report.counts.get(kind)
            ],
            "files": [file._asdict() for file in report.files],
            "whole": report.whole,
        }

    async def search(self, request: PageRequest) -> Json:
        """Return the best files with some lines, and the duration of the search."""
        question, roots = _read_question(request.body)
        limit = read_count(request.body, "limit", _HITS, maximum=_MAX_HITS)
        began = time.monotonic()
        result = await self._context.search(question, limit, roots, lines=_LINES)
        return {**result, "seconds": time.monotonic() - began}

    async def retrieve(self, request: PageRequest) -> Json:
        """Return the excerpts that a model would get, and the duration."""
        question, roots = _read_question(request.body)
        length = read_count(request.body, "length", DEFAULT_LENGTH, maximum=MAX_LENGTH)
        query = RetrievalRequest(question, length, roots=roots)
        retrieval = await self._context.retrieve(query)
        return {"text": retrieval.text, "seconds": retrieval.seconds}


def _read_question(body: Json) -> tuple[str, list[str]]:
    """Return a question, and the workspaces to search."""
    question = read_text(body, "query", max_chars=_MAX_QUESTION_CHARS)
    roots = read_texts(
        body, "workspaces", max_count=_MAX_FOLDERS, max_chars=_MAX_PATH_CHARS
    )
    return refuse_empty("query", question), roots


class _KeysApi:
    """Stores and removes keys; the page never shows one.

    Keys go into the keyring, or into the vault if the user chose that: it is encrypted
    by byok's own key file then, unless the running byok knows its passphrase.

    A key is added to the redactor before it is used, and stored for the origin in the
    settings in force. The page sends the address that its user sees: if that differs,
    because the settings were changed meanwhile, nothing is stored.
    """

    def __init__(self, services: Services, control: Control) -> None:
        self._services = services
        self._control = control
        self.handlers: Mapping[str, PageHandler] = {
            "key-set": self.set,
            "key-remove": self.remove,
        }

    async def set(self, request: PageRequest) -> Json:
        """Store a key; the answer holds its fingerprint only."""
        # `clean_key` refuses what is no key, which may be a whole file or a common
        # word: the redactor would hide it for ever.
        key = clean_key(read_text(request.body, "key", max_chars=_MAX_KEY_CHARS))
        lookup = self._find(request)
        _check_address(
            lookup, read_text(request.body, "address", max_chars=_MAX_ADDRESS_CHARS)
        )
        self._services.redactor.add(key)
        if vault := self._vault(request):
            await asyncio.to_thread(_store_in_vault, vault, lookup.entry, key)
        else:
            keyring = self._services.ladder.keyring
            try:
                await asyncio.to_thread(keyring.set, lookup.entry, key)
            except ConfigError as error:
                names = {"name": lookup.title, "variable": lookup.own_env}
                raise error.with_hint(_OTHER_WAYS.format(**names)) from None
        self._forget(lookup)
        return {"origin": lookup.origin, "fingerprint": fingerprint(key)}

    async def remove(self, request: PageRequest) -> Json:
        """Remove a stored key."""
        lookup = self._find(request)
        store = self._vault(request) or self._services.ladder.keyring
        removed = await asyncio.to_thread(store.remove, lookup.entry)
        self._forget(lookup)
        return {"removed": removed}

    def _vault(self, request: PageRequest) -> Vault | None:
        """Return the vault if a request is about a key in it."""
        return self._services.ladder.vault if read_flag(request.body, "vault") else None

    def _find(self, request: PageRequest) -> KeyLookup:
        name = refuse_empty(
            "name", read_text(request.body, "name", max_chars=_MAX_NAME_CHARS)
        )
        if "://" in name:
            raise bad_field("name", "that of an upstream")
        return key_named(name, self._control.settings)

    def _forget(self, lookup: KeyLookup) -> None:
        """Let every key be looked up again, this one also in the keyring."""
        self._services.forget_keys()
        if key := self._services.keys.get(lookup.name):
            key.forget()
        self._services.catalog.refresh(anew=True)  # a list may have failed without it


def _store_in_vault(vault: Vault, entry: str, key: str) -> None:
    """Store a key in the vault; a new vault is encrypted by a key file."""
    if not vault.open():
        vault.create_key_file()
    vault.set(entry, key)


def _check_address(lookup: KeyLookup, address: str) -> None:
    """Refuse a key that was entered for an address that is no longer in force."""
    with contextlib.suppress(ValueError):  # no address
        if KeyLookup(lookup.name, address).origin == lookup.origin:
            return
    raise BadRequest(
        f"The address of {lookup.title} is now {lookup.base_url}, not the one that was "
        "shown; no key was stored.",
        code="settings_changed",
        hint="Look at the address, then set the key again.",
        status=409,
    )


async def _stream_feed(feed: Feed, request: PageRequest) -> StreamResponse:
    """Stream lines: the first has all that is known, later ones the changes.

    After some silence comes a line without changes, and the last line says why the
    stream ends: the session has ended, the daemon stops, or the reader is ended. The
    stream takes no slot of the gate: it must not take one from a client, and a daemon
    that stops does not wait for it.
    """
    loop = asyncio.get_running_loop()
    with ExitStack() as cleanup:
        reader = cleanup.enter_context(feed.open_reader())
        opened = OpenStream(request.exchange, _HEADERS)

        def hang_up_soon() -> None:
            cleanup.callback(loop.call_later(_LAST_LINE_SECONDS, opened.hang_up).cancel)

        reader.on_end = hang_up_soon
        cleanup.callback(request.on_end(reader.wake))
        changed = True
        while reader.end is None:
            changes = feed.take(reader) if changed else {}
            await opened.write(encode_line(changes))
            changed = await reader.wait(_HEARTBEAT_SECONDS)
            if not request.is_open():
                reader.finish(FeedEnd.SESSION)
        await opened.finish(encode_line({"end": str(reader.end)}))
    return opened.response


def translate_texts(answer: Json, *names: str) -> Json:
    """Return an answer with the named texts in the language of the request.

    Commands in them can be pasted.
    """
    command = find_command()
    texts = {name: translate(answer[name]) for name in names if answer.get(name)}
    return {
        **answer,
        **{name: make_pasteable(text, command) for name, text in texts.items()},
    }
