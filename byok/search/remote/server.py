"""The parts that all search servers share: files of an answer, their check, and HTTP.

Answers are untrusted. A file with an impossible location (a path that leaves its
folder, an invalid name of a repository) is refused. Texts are escaped and masked when
they are shown, like local ones.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import httpx
import orjson

from byok import __version__
from byok.core.errors import UpstreamGarbled
from byok.search.index.files.secret_names import is_secret
from byok.search.outside.server import (
    SecretSource,
    read_bounded,
    refusal_by,
    translate_failure,
)

MAX_ANSWER_BYTES = 10 * 2**20
_MAX_LINES = 200_000
_MAX_PATH_CHARS = 1000
_REPOSITORY = re.compile(r"\w[\w.~+@/:-]{0,199}", re.ASCII)
_REVISION = re.compile(r"[0-9a-f]{7,64}")
_SHOWN_REVISION_DIGITS = 12


class RemoteExcerpt(NamedTuple):
    """Consecutive lines of a file; the first has the number `first`, from 0."""

    first: int
    lines: tuple[str, ...]


class RemoteFile(NamedTuple):
    """A file that a server found; `revision` and `digest` are "" if it sent none.

    Files with equal digests have the same content.
    """

    repository: str
    revision: str
    path: str
    score: float
    pieces: tuple[RemoteExcerpt, ...]
    digest: str = ""

    @property
    def title(self) -> str:
        """The path as answers show it, with repository and revision."""
        revision = self.revision[:_SHOWN_REVISION_DIGITS] or "unknown"
        return f"{self.path} (repository {self.repository}, revision {revision})"


# Asks a server for files, best first. Arguments: parts of words, names of files that
# match too, and the maximum number of files. Raises ByokError without a usable answer.
SearchServer: TypeAlias = Callable[
    [Sequence[str], Sequence[str], int], Awaitable[list[RemoteFile]]
]


def check_file(file: RemoteFile) -> RemoteFile | None:
    """Return the valid parts of a file, None if it cannot be trusted."""
    if not _REPOSITORY.fullmatch(file.repository) or ".." in file.repository:
        return None
    if not _is_relative_path(file.path) or is_secret(file.path):
        return None
    pieces = tuple(
        piece
        for piece in file.pieces
        if piece.lines and 0 <= piece.first <= _MAX_LINES - len(piece.lines)
    )
    revision = file.revision if _REVISION.fullmatch(file.revision) else ""
    return file._replace(revision=revision, pieces=pieces) if pieces else None


def _is_relative_path(path: str) -> bool:
    """Tell whether a path is relative and stays below its folder."""
    if not (0 < len(path) <= _MAX_PATH_CHARS and path.isprintable()):
        return False
    if "\\" in path or path[1:2] == ":":
        return False
    return not {"", ".", ".."} & {*path.split("/")}


class JsonServer:
    """Posts JSON to one address, with the user's token and without redirects.

    Answers are bounded. `transport` is called in the event loop, and its owner closes
    it. `scheme` is the word before the token in the header Authorization.
    """

    def __init__(
        self,
        url: str,
        transport: Callable[[], httpx.AsyncBaseTransport],
        token: SecretSource,
        *,
        scheme: str = "Bearer",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url = url
        self._transport = transport
        self._token = token
        self._scheme = scheme
        self._headers = headers or {}
        self._token_task: asyncio.Future[str] | None = None

    async def post(self, path: str, value: Any) -> Any:
        """Post a value to a path, and return the JSON value of the answer.

        Raises:
            ConfigError: the token is missing or cannot be used.
            UpstreamError: there is no usable answer.
        """
        headers = {
            **self._headers,
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": f"byok/{__version__}",
        }
        if token := await self._find_token():
            headers["authorization"] = f"{self._scheme} {token}".strip()
        request = httpx.Request(
            "POST", self._url + path, headers=headers, content=orjson.dumps(value)
        )
        try:
            response = await self._transport().handle_async_request(request)
            try:
                return await self._read(response)
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            raise translate_failure(error) from None

    async def _read(self, response: httpx.Response) -> Any:
        if response.status_code != 200:
            if response.status_code in (401, 403):
                self._token.forget()
            raise refusal_by(response.status_code)
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind.lower() != "application/json":
            raise UpstreamGarbled("Its answer is no JSON; perhaps a page to sign in.")
        try:
            return orjson.loads(await read_bounded(response, MAX_ANSWER_BYTES))
        except ValueError:
            raise UpstreamGarbled("Its answer is not the JSON it should be.") from None

    async def _find_token(self) -> str:
        """Return the token; the look-up continues if a question stops waiting for it.

        A keyring may ask the user, which takes longer than any question waits.
        """
        if self._token_task is None or self._token_task.done():
            self._token_task = asyncio.ensure_future(self._token.get())
        return await asyncio.shield(self._token_task)
