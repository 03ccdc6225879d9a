"""Decompress answers that are compressed although byok did not ask for it.

byok asks for identity; some gateways compress anyway. A hostile answer could expand a
thousandfold, so both one read and the whole answer are limited.
"""

import zlib
from collections.abc import Iterator

from byok.errors import UpstreamGarbled
from byok.stage import Out, Stage, chain

MAX_TOTAL = 64 * 2**20
MAX_PER_READ = 4 * 2**20
_WINDOW = {"gzip": 31, "x-gzip": 31, "deflate": 47}


class Inflate:
    """Stage[bytes, bytes] for gzip and deflate; identity passes through.

    Raises:
        UpstreamGarbled: another coding, damaged data, or more data than the limits.
    """

    def __init__(self, coding: str) -> None:
        name = coding.strip().lower()
        self._raw = name in ("", "identity")
        if not self._raw and name not in _WINDOW:
            raise UpstreamGarbled(
                f"its answer has an unsupported compression ({name[:20]}).",
                code="upstream_encoding",
            )
        self._window = _WINDOW.get(name, 0)
        self._decoder = None if self._raw else self._fresh()
        self._total = 0

    def feed(self, data: bytes, /) -> Iterator[bytes]:
        """Return the decompressed bytes of one read."""
        if self._decoder is None:
            yield data
            return
        try:
            plain = bytearray(self._decoder.decompress(data, MAX_PER_READ))
            # gzip may be several members in a row
            while (rest := self._decoder.unused_data) and len(plain) <= MAX_PER_READ:
                self._decoder = self._fresh()
                plain += self._decoder.decompress(rest, MAX_PER_READ)
        except zlib.error as error:
            raise UpstreamGarbled(
                "its compressed answer is damaged.", code="upstream_encoding"
            ) from error
        self._total += len(plain)
        cut = self._decoder.unconsumed_tail or len(plain) > MAX_PER_READ
        if cut or self._total > MAX_TOTAL:
            raise UpstreamGarbled(
                "its answer is too large when decompressed.",
                code="upstream_event_too_large",
            )
        if plain:
            yield bytes(plain)

    def _fresh(self) -> "zlib._Decompress":
        return zlib.decompressobj(self._window)

    def flush(self) -> Iterator[bytes]:
        """Return nothing; a truncated answer shows as unfinished in the next stage."""
        yield from ()


def with_inflate(coding: str, stage: Stage[bytes, Out]) -> Stage[bytes, Out]:
    """Put Inflate before a stage if the answer is compressed."""
    plain = coding.strip().lower() in ("", "identity")
    return stage if plain else chain(Inflate(coding), stage)
