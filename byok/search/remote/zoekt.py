"""Zoekt: what `zoekt-webserver -rpc` is asked, and what its answers mean.

The terms are joined by `or` and ranked by BM25, so that a file with most of them comes
first; with all of them required, a question in a user's words finds nothing. A word in
quotes matches part of a word, in texts and in names of files.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any

from byok.core.errors import UpstreamGarbled
from byok.search.remote.server import JsonServer, RemoteExcerpt, RemoteFile, check_file

_PATH = "/api/search"
_WALL_NANOSECONDS = 350_000_000  # less than byok waits: some answer comes in time
_CONTEXT_LINES = 5
_MOST_MATCHES = 20_000  # that one shard looks at
_SHOWN_MATCHES = 4_000
_MOST_PIECES = 5  # of a file
_MOST_CHARACTERS = 16 * 1024  # of a piece


async def search_zoekt(
    server: JsonServer, terms: Sequence[str], paths: Sequence[str], limit: int
) -> list[RemoteFile]:
    """Ask a Zoekt server; a `SearchServer` once it is known which."""
    answer = await server.post(_PATH, write_request(terms, paths, limit))
    return read_answer(answer)[:limit]


def write_request(
    terms: Sequence[str], paths: Sequence[str], limit: int
) -> dict[str, Any]:
    """Return the body of a search; terms are of letters and digits only."""
    atoms = [f'"{term}"' for term in terms]
    atoms += [f"file:{path.replace('.', '[.]')}" for path in paths]
    return {
        "Q": f"case:no ({' or '.join(atoms)})",
        "Opts": {
            "ChunkMatches": True,
            "UseBM25Scoring": True,
            "NumContextLines": _CONTEXT_LINES,
            "MaxDocDisplayCount": limit,
            "MaxMatchDisplayCount": _SHOWN_MATCHES,
            "ShardMaxMatchCount": _MOST_MATCHES,
            "TotalMaxMatchCount": 5 * _MOST_MATCHES,
            "MaxWallTime": _WALL_NANOSECONDS,
        },
    }


def read_answer(answer: Any) -> list[RemoteFile]:
    """Return the files of an answer, without those that cannot be believed.

    Raises:
        UpstreamGarbled: it has another shape than an answer of Zoekt.
    """
    match answer:
        case {"Result": {"Files": list() as files}}:
            found = map(_read_file, files)
            return [file for file in found if file is not None]
        case {"Result": {"FileCount": int()}}:  # nothing matches: no files, or null
            return []
        case _:
            raise UpstreamGarbled("Its answer is not one of a Zoekt server.")


def _read_file(given: Any) -> RemoteFile | None:
    match given:
        case {
            "Repository": str() as repository,
            "FileName": str() as path,
            "Score": int() | float() as score,
            "ChunkMatches": list() as chunks,
        }:
            revision, digest = given.get("Version"), given.get("Checksum")
            return check_file(
                RemoteFile(
                    repository,
                    revision if isinstance(revision, str) else "",
                    path,
                    float(score),
                    (*_read_pieces(chunks[:_MOST_PIECES]),),
                    digest if isinstance(digest, str) else "",
                )
            )
        case _:
            return None


def _read_pieces(chunks: Sequence[Any]) -> Iterator[RemoteExcerpt]:
    for chunk in chunks:
        match chunk:
            case {
                "Content": str() as content,
                "ContentStart": {"LineNumber": int() as number},
            } if not chunk.get("FileName"):  # else the match is in the name
                try:
                    raw = base64.b64decode(content, validate=True)
                except (binascii.Error, ValueError):
                    continue
                text = raw.decode("utf-8", "replace")[:_MOST_CHARACTERS]
                lines = text.removesuffix("\n").split("\n")
                yield RemoteExcerpt(
                    number - 1, tuple(line.rstrip("\r") for line in lines)
                )
