"""Zoekt: the requests to `zoekt-webserver -rpc`, and its answers.

The terms are joined by `or` and ranked by BM25, so that a file with most of them comes
first: if all were required, a question in a user's words would find nothing. A word in
quotes matches part of a word, in texts and in names of files.

Answers are untrusted. A file with an impossible location (a path that leaves its
folder, an invalid name of a repository) is refused. Texts are escaped and masked when
they are shown, like local ones.
"""

import asyncio
import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import httpx
import orjson
from msgspec import Struct

from byok import __version__
from byok.core.errors import UpstreamGarbled
from byok.search.index.files.secret_names import is_secret
from byok.search.outside.server import (
    SecretSource,
    read_bounded,
    refusal_by,
    translate_failure,
)

_PATH = "/api/search"
_WALL_NANOSECONDS = 350_000_000  # less than byok waits, so that some answer is in time
_CONTEXT_LINES = 5
_MAX_MATCHES_OF_SHARD = 20_000
_MAX_RETURNED_MATCHES = 4_000
_MAX_EXCERPTS = 5  # of a file
_MAX_EXCERPT_CHARS = 16 * 1024
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


class ZoektServer(Struct, eq=False):
    """Asks a Zoekt server, with the user's token and without redirects.

    Answers are bounded. `transport` is called in the event loop, and its owner closes
    it. `scheme` is the word before the token in the header Authorization.
    """

    url: str
    transport: Callable[[], httpx.AsyncBaseTransport]
    token: SecretSource
    scheme: str = "Bearer"
    headers: Mapping[str, str] = {}
    _token_task: asyncio.Future[str] | None = None

    async def search(
        self, terms: Sequence[str], paths: Sequence[str], limit: int
    ) -> list[RemoteFile]:
        """Search for files, as a `SearchServer`.

        Raises:
            ConfigError: the token is missing or cannot be used.
            UpstreamError: there is no usable answer.
        """
        headers = {
            **self.headers,
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": f"byok/{__version__}",
        }
        if token := await self._find_token():
            headers["authorization"] = f"{self.scheme} {token}".strip()
        body = orjson.dumps(write_request(terms, paths, limit))
        request = httpx.Request("POST", self.url + _PATH, headers=headers, content=body)
        try:
            response = await self.transport().handle_async_request(request)
            try:
                return read_answer(await self._read(response))[:limit]
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            raise translate_failure(error) from None

    async def _read(self, response: httpx.Response) -> Any:
        if response.status_code != 200:
            if response.status_code in (401, 403):
                self.token.forget()
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
            self._token_task = asyncio.ensure_future(self.token.get())
        return await asyncio.shield(self._token_task)


def write_request(
    terms: Sequence[str], paths: Sequence[str], limit: int
) -> dict[str, Any]:
    """Return the body of a request; terms have letters and digits only."""
    atoms = [f'"{term}"' for term in terms]
    atoms += [f"file:{path.replace('.', '[.]')}" for path in paths]
    return {
        "Q": f"case:no ({' or '.join(atoms)})",
        "Opts": {
            "ChunkMatches": True,
            "UseBM25Scoring": True,
            "NumContextLines": _CONTEXT_LINES,
            "MaxDocDisplayCount": limit,
            "MaxMatchDisplayCount": _MAX_RETURNED_MATCHES,
            "ShardMaxMatchCount": _MAX_MATCHES_OF_SHARD,
            "TotalMaxMatchCount": 5 * _MAX_MATCHES_OF_SHARD,
            "MaxWallTime": _WALL_NANOSECONDS,
        },
    }


def read_answer(answer: Any) -> list[RemoteFile]:
    """Return the files of an answer that pass `_check_file`.

    Raises:
        UpstreamGarbled: the answer does not have the shape of Zoekt's answers.
    """
    match answer:
        case {"Result": {"Files": list() as files}}:
            checked = map(_read_file, files)
            return [file for file in checked if file is not None]
        case {"Result": {"FileCount": int()}}:  # no match: Files is missing or null
            return []
        case _:
            raise UpstreamGarbled("Its answer is not one of a Zoekt server.")


def _read_file(value: Any) -> RemoteFile | None:
    match value:
        case {
            "Repository": str() as repository,
            "FileName": str() as path,
            "Score": int() | float() as score,
            "ChunkMatches": list() as chunks,
        }:
            revision, digest = value.get("Version"), value.get("Checksum")
            return _check_file(
                RemoteFile(
                    repository,
                    revision if isinstance(revision, str) else "",
                    path,
                    float(score),
                    (*_read_excerpts(chunks[:_MAX_EXCERPTS]),),
                    digest if isinstance(digest, str) else "",
                )
            )
        case _:
            return None


def _read_excerpts(chunks: Sequence[Any]) -> Iterator[RemoteExcerpt]:
    for chunk in chunks:
        match chunk:
            case {
                "Content": str() as content,
                "ContentStart": {"LineNumber": int() as number},
            } if not chunk.get("FileName"):  # if true, the match is in the name
                try:
                    raw = base64.b64decode(content, validate=True)
                except (binascii.Error, ValueError):
                    continue
                text = raw.decode("utf-8", "replace")[:_MAX_EXCERPT_CHARS]
                lines = text.removesuffix("\n").split("\n")
                yield RemoteExcerpt(
                    number - 1, tuple(line.rstrip("\r") for line in lines)
                )


def _check_file(file: RemoteFile) -> RemoteFile | None:
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
