"""Binary columns: spans of a blob, members of a checkpoint, commits."""

import zlib
from array import array
from collections.abc import Iterable
from itertools import accumulate, pairwise

import orjson

from byok.index.types import Commit, CommitHistory, Span

_U32, _I64 = "I", "q"


def pack_spans(spans: Iterable[Span]) -> bytes:
    """Write spans as three unsigned 32-bit numbers each."""
    return array(_U32, (number for span in spans for number in span)).tobytes()


def unpack_spans(packed: bytes) -> list[Span]:
    """Read what `pack_spans` wrote."""
    numbers = array(_U32, packed)
    return [Span(*numbers[i : i + 3]) for i in range(0, len(numbers), 3)]


def pack_ids(ids: Iterable[int]) -> bytes:
    """Write a set of ids: sorted, their differences, deflated."""
    ordered = sorted(set(ids))
    gaps = array(_I64, (b - a for a, b in pairwise([0, *ordered])))
    return zlib.compress(gaps.tobytes(), 1)


def unpack_ids(packed: bytes) -> list[int]:
    """Read what `pack_ids` wrote, in ascending order."""
    return list(accumulate(array(_I64, zlib.decompress(packed))))


def pack_history(history: CommitHistory) -> bytes:
    """Write the commits of a workspace."""
    rows = [history.head, [list(commit) for commit in history.commits]]
    return zlib.compress(orjson.dumps(rows), 1)


def unpack_history(packed: bytes) -> CommitHistory:
    """Read what `pack_history` wrote."""
    head, rows = orjson.loads(zlib.decompress(packed))
    return CommitHistory(
        head, tuple(Commit(h, t, m, tuple(f), n) for h, t, m, f, n in rows)
    )
