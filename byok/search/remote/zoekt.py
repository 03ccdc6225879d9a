"""Zoekt: the requests to `zoekt-webserver -rpc`, and its answers.

The terms are joined by `or` and ranked by BM25, so that a file with most of them comes
first: if all were required, a question in a user's words would find nothing. A word in
quotes matches part of a word, in texts and in names of files.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any

from byok.core.errors import UpstreamGarbled
from byok.search.remote.server import JsonServer, RemoteExcerpt, RemoteFile, check_file

_PATH = "/api/search"
_WALL_NANOSECONDS = 350_000_000  # less than byok waits, so that some answer is in time
_CONTEXT_LINES = 5
_MAX_MATCHES_OF_SHARD = 20_000
_MAX_RETURNED_MATCHES = 4_000
_MAX_EXCERPTS = 5  # of a file
_MAX_EXCERPT_CHARS = 16 * 1024


async def search_zoekt(
    server: JsonServer, terms: Sequence[str], paths: Sequence[str], limit: int
) -> list[RemoteFile]:
    """Ask a Zoekt server; with `server` bound, this is a `SearchServer`."""
    answer = await server.post(_PATH, write_request(terms, paths, limit))
    return read_answer(answer)[:limit]


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
    """Return the files of an answer that pass `check_file`.

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
            return check_file(
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
