"""Decompress answers that are compressed although byok did not ask for it.

byok asks for identity; some gateways compress anyway. A hostile answer could expand a
thousandfold, so both one read and the whole answer are limited.
"""

import zlib
from collections.abc import Iterator

from byok.core.errors import UpstreamGarbled
from byok.core.stage import Out, Stage, chain

MAX_TOTAL = 64 * 2**20  # bytes
MAX_PER_READ = 4 * 2**20  # bytes
_SLICE_BYTES = 2**12
_MAX_EMPTY_MEMBERS = 64
# The values of zlib's `wbits` for each coding.
_WINDOW = {"gzip": 31, "x-gzip": 31, "deflate": 47}


class Inflate:
    """Stage[bytes, bytes] for gzip and deflate; identity passes through.

    Raises:
        UpstreamGarbled: another coding, damaged data, or more data than the limits.
    """

    def __init__(self, coding: str) -> None:
        name = coding.strip().lower()
        self._is_identity = name in ("", "identity")
        if not self._is_identity and name not in _WINDOW:
            raise UpstreamGarbled(
                f"its answer has an unsupported compression ({name[:20]}).",
                code="upstream_encoding",
            )
        self._window = _WINDOW.get(name, 0)
        self._decoder: zlib._Decompress | None = None  # of the member that is read
        self._member_is_empty = False
        self._empty_members = 0
        self._total = 0

    def feed(self, data: bytes, /) -> Iterator[bytes]:
        """Return the decompressed bytes of one read."""
        if self._is_identity:
            yield data
            return
        plain = bytearray()
        try:
            # In slices, because the end of each member copies the rest of the data.
            for start in range(0, len(data), _SLICE_BYTES):
                self._inflate(data[start : start + _SLICE_BYTES], plain)
        except zlib.error as error:
            raise UpstreamGarbled(
                "its compressed answer is damaged.", code="upstream_encoding"
            ) from error
        if plain:
            yield bytes(plain)

    def _inflate(self, data: bytes, plain: bytearray) -> None:
        """Append the content of a slice to the plain bytes of this read."""
        while data:
            decoder = self._decoder
            if decoder is None or decoder.eof:  # gzip may be several members in a row
                decoder = self._decoder = self._next_member()
            piece = decoder.decompress(data, MAX_PER_READ + 1 - len(plain))
            plain += piece
            self._total += len(piece)
            self._member_is_empty = self._member_is_empty and not piece
            if len(plain) > MAX_PER_READ or self._total > MAX_TOTAL:
                raise UpstreamGarbled(
                    "its answer is too large when decompressed.",
                    code="upstream_event_too_large",
                )
            data = decoder.unused_data

    def _next_member(self) -> "zlib._Decompress":
        """Begin another member; too many empty ones, which cost time, are refused."""
        self._empty_members += self._member_is_empty
        self._member_is_empty = True
        if self._empty_members > _MAX_EMPTY_MEMBERS:
            raise UpstreamGarbled(
                "its compressed answer holds nothing, again and again.",
                code="upstream_encoding",
            )
        return zlib.decompressobj(self._window)

    def flush(self) -> Iterator[bytes]:
        """Return nothing; the next stage notices a truncated answer."""
        yield from ()


def with_inflate(coding: str, stage: Stage[bytes, Out]) -> Stage[bytes, Out]:
    """Put Inflate before a stage if the answer is compressed."""
    plain = coding.strip().lower() in ("", "identity")
    return stage if plain else chain(Inflate(coding), stage)
