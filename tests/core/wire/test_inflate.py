"""Compressed answers that nobody asked for: undone, but never without bounds."""

import gzip
import zlib
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import UpstreamGarbled
from byok.core.stage import drain
from byok.core.wire.inflate import MAX_PER_READ, MAX_TOTAL, Inflate, with_inflate
from byok.core.wire.sse import ServerSentEvent, SSEDecoder
from tests.fakes.values import CUTS, cut

PLAIN = b"data: hello\n\n" * 40


def undone(coding: str, pieces: Iterable[bytes]) -> bytes:
    return b"".join(drain(Inflate(coding), pieces))


CODINGS = pytest.mark.parametrize(
    ("coding", "sent"),
    [
        pytest.param("", PLAIN, id="none"),
        pytest.param("identity", PLAIN, id="identity"),
        pytest.param("gzip", gzip.compress(PLAIN), id="gzip"),
        pytest.param("x-gzip", gzip.compress(PLAIN), id="x-gzip"),
        pytest.param(" GZIP ", gzip.compress(PLAIN), id="gzip, shouted"),
        pytest.param("deflate", zlib.compress(PLAIN), id="deflate"),
    ],
)


@CODINGS
@given(places=CUTS)
def test_inflate_any_slicing_gives_the_plain_bytes(
    coding: str, sent: bytes, places: list[int]
) -> None:
    assert undone(coding, cut(sent, places)) == PLAIN


def refusal(coding: str, pieces: Iterable[bytes]) -> str:
    with pytest.raises(UpstreamGarbled) as caught:
        undone(coding, pieces)
    return caught.value.code


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "x" * 5000])
@pytest.mark.case("F10")
def test_inflate_refuses_an_unknown_content_encoding(coding: str) -> None:
    with pytest.raises(UpstreamGarbled) as caught:
        Inflate(coding)
    assert caught.value.code == "upstream_encoding"
    assert len(caught.value.sentence) < 100


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("sent", [b"data: plain\n\n", b"\x1f\x8b\x08 broken", b"\xff"])
@pytest.mark.case("F10")
def test_inflate_refuses_damaged_data(coding: str, sent: bytes) -> None:
    damaged = sent + b"\0" * 20
    assert refusal(coding, [damaged]) == "upstream_encoding"


@given(st.binary(max_size=200))
def test_inflate_refuses_any_bytes_with_its_own_error_only(data: bytes) -> None:
    for coding in ("gzip", "deflate"):
        try:
            undone(coding, [data])
        except UpstreamGarbled as error:
            assert error.code == "upstream_encoding"


@pytest.mark.case("F10")
def test_inflate_refuses_a_read_that_expands_too_far() -> None:
    bomb = gzip.compress(b"\0" * (MAX_PER_READ + 2**16))
    assert len(bomb) < 10_000
    assert refusal("gzip", [bomb]) == "upstream_event_too_large"


@pytest.mark.case("F10")
def test_inflate_refuses_an_answer_that_expands_too_far() -> None:
    packer = zlib.compressobj(1)
    step = b"\0" * (MAX_PER_READ - 2**16)

    def reads() -> Iterable[bytes]:
        for _ in range(MAX_TOTAL // len(step) + 1):
            yield packer.compress(step) + packer.flush(zlib.Z_SYNC_FLUSH)

    assert refusal("deflate", reads()) == "upstream_event_too_large"


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_inflate_reads_several_gzip_members_as_one_answer(size: int) -> None:
    packed = b"".join(gzip.compress(text) for text in (b"one ", b"two ", b"three"))
    pieces = [packed[i : i + size] for i in range(0, len(packed), size)]
    assert undone("gzip", pieces) == b"one two three"


@pytest.mark.case("F10")
def test_inflate_limits_several_gzip_members_together() -> None:
    member = gzip.compress(bytes(MAX_PER_READ))
    with pytest.raises(UpstreamGarbled, match="too large when decompressed"):
        undone("gzip", [member * 2])


@pytest.mark.case("F10")
@pytest.mark.parametrize("size", [20, 1000, 2**19])
def test_inflate_refuses_endless_members_that_hold_nothing(size: int) -> None:
    members = gzip.compress(b"") * (2**20 // 20)
    pieces = [members[i : i + size] for i in range(0, len(members), size)]
    assert refusal("gzip", pieces) == "upstream_encoding"


def test_inflate_reads_a_member_for_each_event() -> None:
    events = [b"data: %d\n\n" % number for number in range(20_000)]
    packed = b"".join(map(gzip.compress, events))
    assert undone("gzip", [packed]) == b"".join(events)


def test_inflate_passes_identity_unchanged() -> None:
    stage = SSEDecoder()
    assert with_inflate("identity", stage) is stage
    packed = gzip.compress(b"data: x\n\n")
    events = list(drain(with_inflate("gzip", stage), [packed]))
    assert events == [ServerSentEvent(b"x")]
