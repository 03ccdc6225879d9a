"""A daemon for trials in this process, and a client that acts as an editor's agent.

The daemon has the user's settings and a temporary folder. It runs in the event loop of
this program: if that is killed, only the folder is left. No index, journal, log or
token of the user is touched. Keys come from the user's own sources, and the known facts
of models are copied.
"""

import asyncio
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from byok import __version__
from byok.core.chat import Json
from byok.core.daemon.token import read_token
from byok.core.platform.paths import Paths, make_private
from byok.core.record import RequestRecord
from byok.core.redact import Redactor
from byok.core.wire.json_body import parse_json
from byok.core.wire.json_lines import encode_line
from byok.server.run import DaemonParts, listening
from byok.settings import Settings
from byok.wiring.key_sources import make_ladder
from byok.wiring.services import Services, open_services

_MAX_ANSWER_BYTES = 16 * 2**20
_RECORD_SECONDS = 5.0
_REQUEST_ID = "X-Request-Id"
_TOOL_USE = 5  # the type of a node
_LENGTH_STOP = 2  # the answer was cut at the limit of its length
OVERRIDES = {
    "server": {"port": 0},
    "context": {"workspaces": []},
    "routing": {"fallback": {"chat": []}},
}
"""Settings that override the user's: nothing is indexed, no fallback model answers."""
_FOLDER = "byok-trial-"


@dataclass(frozen=True, slots=True)
class TrialReply:
    """An answer: its text and nodes, its failure or "", and byok's record."""

    text: str
    nodes: Sequence[Json]
    failure: str
    record: RequestRecord
    is_cut: bool = False

    @property
    def calls(self) -> Iterator[Mapping[str, Any]]:
        """The tool calls."""
        return (node["tool_use"] for node in self.nodes if node["type"] == _TOOL_USE)


class RecordKeeper:
    """An observer that has the records of ended requests, by their ids."""

    def __init__(self) -> None:
        self._ended: dict[str, RequestRecord] = {}
        self._change = asyncio.Event()

    def request_started(self, record: RequestRecord, /) -> None:
        """Do nothing: only the end of a request matters."""

    def request_finished(self, record: RequestRecord, /) -> None:
        """Store the record for `record_of`."""
        self._ended[record.request_id] = record
        self._change.set()

    async def record_of(self, request_id: str) -> RequestRecord:
        """Return the record of a request, waiting for its end; an empty one if late."""
        try:
            async with asyncio.timeout(_RECORD_SECONDS):
                while request_id not in self._ended:
                    self._change.clear()
                    await self._change.wait()
        except TimeoutError:
            return RequestRecord()
        return self._ended.pop(request_id)


class TrialClient:
    """A client whose requests look like those of an editor's agent."""

    def __init__(self, session: aiohttp.ClientSession, keeper: RecordKeeper) -> None:
        self._session = session
        self._keeper = keeper

    async def ask(self, body: Json) -> TrialReply:
        """Send a chat request, and read the whole answer."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"byok.trial/{__version__}",
            _REQUEST_ID: str(uuid.uuid4()),
            "conversation-id": str(body["conversation_id"]),
        }
        try:
            async with self._session.post(
                "/chat-stream", data=encode_line(body), headers=headers
            ) as response:
                raw, is_complete = await _read(response)
        except aiohttp.ClientError as error:
            failure = f"the connection to byok broke ({type(error).__name__})"
            return TrialReply("", (), failure, RequestRecord())
        if not is_complete:
            failure = f"the answer has more than {_MAX_ANSWER_BYTES // 2**20} MiB"
            return TrialReply("", (), failure, RequestRecord())
        record = await self._keeper.record_of(response.headers.get(_REQUEST_ID, ""))
        if response.status != 200:
            return TrialReply("", (), _describe_error(raw, response.status), record)
        return _read_reply(raw, record)


async def _read(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """Return the bytes of an answer, and whether it is complete."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > _MAX_ANSWER_BYTES:
            return b"", False
        pieces.append(piece)
    return b"".join(pieces), True


def _read_reply(raw: bytes, record: RequestRecord) -> TrialReply:
    lines: list[Json] = [parse_json(line) for line in raw.split(b"\n") if line]
    last = lines[-1] if lines else {}
    failure = ""
    if error := last.get("error"):
        failure = f"{error['code']}: {error['message']}"
    return TrialReply(
        "".join(line["text"] for line in lines),
        [node for line in lines for node in line["nodes"]],
        failure,
        record,
        last.get("stop_reason") == _LENGTH_STOP,
    )


def _describe_error(raw: bytes, status: int) -> str:
    """Return the code and message of an HTTP error."""
    try:
        error = parse_json(raw)["error"]
        return f"{error['code']}: {error['message']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"HTTP status {status}"


class Trial(NamedTuple):
    """A running daemon, and its client."""

    services: Services
    client: TrialClient


@asynccontextmanager
async def open_trial(
    settings: Settings,
    paths: Paths,
    redactor: Redactor,
    *,
    upstream: str = "",
    prompts: Path | None = None,
) -> AsyncIterator[Trial]:
    """Serve until the block ends; `settings` are loaded with OVERRIDES.

    `prompts` is a folder to use instead of the user's own prompts.

    Raises:
        ConfigError: the settings or the prompts cannot be used.
        CannotStart: no port is free.
    """
    keeper = RecordKeeper()
    with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder:
        own = _own_paths(paths, Path(folder))
        own.prompts = prompts or paths.prompts

        def services() -> AbstractAsyncContextManager[Services]:
            return open_services(
                settings,
                own,
                upstream=upstream,
                ladder=make_ladder(paths),
                redactor=redactor,
                embeds=False,
            )

        parts = DaemonParts(settings, own, redactor, services)
        async with listening(parts, observers=[keeper]) as daemon:
            headers = {"Authorization": f"Bearer {read_token(own.token)}"}
            async with aiohttp.ClientSession(
                daemon.url,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session:
                yield Trial(daemon.services, TrialClient(session, keeper))


def _own_paths(paths: Paths, folder: Path) -> Paths:
    """Return paths in a folder, with copies of the known facts of models."""
    own = Paths(folder / "config", folder / "state", folder / "data")
    make_private(own.state_dir)
    for source, copy in ((paths.models, own.models), (paths.profiles, own.profiles)):
        if source.is_file():
            shutil.copyfile(source, copy)
    return own
