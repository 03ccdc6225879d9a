"""The benchmark's own check: it must see whatever can happen to a stream."""

import json
from collections.abc import Callable

import pytest

from tools.bench.__main__ import peer
from tools.bench.answers import ANTHROPIC, AUGMENT, OPENAI, Reading, parse_answer
from tools.bench.mock import Writes
from tools.bench.spec import PADDING, Damaged, Spec, check, record

SPEC = Spec("000000aa", chunks=5, calls=2, fragments=10)
OTHER = Spec("000000bb", chunks=5)
Lines = list[bytes]
Damage = Callable[[Lines], object]


def openai_lines(spec: Spec) -> Lines:
    """Write the events of a stream as the mock sends them."""
    whole = b"".join(write() for write in Writes(spec))
    return [event + b"\n\n" for event in whole.split(b"\n\n") if event]


def augment_lines(spec: Spec) -> Lines:
    """Write the chunks that byok makes of the same stream."""
    texts = [record(spec.stream, n, 1) for n in range(spec.chunks)]
    node = {"type": 0, "content": "".join(texts)}
    chunks = [
        *({"text": text, "nodes": [], "stop_reason": None} for text in texts),
        {"text": "", "nodes": [node], "stop_reason": None},
        {"text": "", "nodes": [{"type": 2}], "stop_reason": 1},
    ]
    return [json.dumps(chunk, ensure_ascii=False).encode() + b"\n" for chunk in chunks]


def anthropic_lines(spec: Spec) -> Lines:
    """Write the events that a gateway to Anthropic's dialect makes of the same."""
    texts = [record(spec.stream, n, 1) for n in range(spec.chunks)]
    deltas = [{"type": "text_delta", "text": text} for text in texts]
    events = [
        {"type": "message_start"},
        *({"type": "content_block_delta", "index": 0, "delta": d} for d in deltas),
        {"type": "message_stop"},
    ]
    told = (json.dumps(event, ensure_ascii=False).encode() for event in events)
    return [b"data: " + data + b"\n\n" for data in told]


def read(lines: Lines, dialect: str, spec: Spec) -> list[float]:
    """Check a stream that arrives in pieces of seven bytes."""
    whole = b"".join(lines)
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    reads = [(float(n), piece) for n, piece in enumerate(pieces)]
    return parse_answer(Reading(status=200, reads=reads), dialect).check(spec)


def changed(old: bytes, new: bytes, at: int = 2) -> Damage:
    """Make a damage that changes one line."""

    def damage(lines: Lines) -> None:
        assert old in lines[at]
        lines[at] = lines[at].replace(old, new, 1)

    return damage


DAMAGES: dict[str, Damage] = {
    "lost": lambda lines: lines.pop(2),
    "doubled": lambda lines: lines.insert(2, lines[2]),
    "swapped": lambda lines: lines.insert(2, lines.pop(3)),
    "without an end": lambda lines: lines.__delitem__(slice(-2, None)),
    "cut within a line": lambda lines: lines.append(lines.pop()[:-9]),
    "a line end changed": changed(b"\\r\\n", b"\\n"),
    "a wide line end lost": changed("\u2028".encode(), b""),
    "a wide line end cuts": changed("\u2028".encode(), b"\n"),
    "an emoji changed": changed("😀".encode(), "😁".encode()),
    "a foreign stream": changed(SPEC.stream.encode(), OTHER.stream.encode()),
    "a foreign line": lambda lines: lines.insert(1, b"data: <html>\n"),
}
TOOL_DAMAGES: dict[str, Damage] = {
    "a fragment lost": lambda lines: lines.pop(12),
    "fragments swapped": lambda lines: lines.insert(11, lines.pop(9)),
    "a fragment of the other call": changed(b'0,"function"', b'1,"function"', at=9),
}


@pytest.mark.parametrize("spec", [SPEC, OTHER])
def test_bench_accepts_a_whole_stream(spec: Spec) -> None:
    assert len(read(openai_lines(spec), OPENAI, spec)) == spec.chunks
    assert len(read(augment_lines(OTHER), AUGMENT, OTHER)) == OTHER.chunks
    assert len(read(anthropic_lines(OTHER), ANTHROPIC, OTHER)) == OTHER.chunks


@pytest.mark.parametrize("damage", [*DAMAGES.values()], ids=[*DAMAGES])
def test_bench_sees_a_damaged_stream(damage: Damage) -> None:
    for lines, dialect, spec in (
        (openai_lines(SPEC), OPENAI, SPEC),
        (augment_lines(OTHER), AUGMENT, OTHER),
        (anthropic_lines(OTHER), ANTHROPIC, OTHER),
    ):
        if spec is OTHER:  # the damages name the other stream
            lines = [x.replace(b"000000bb", b"000000aa") for x in lines]
            spec = Spec(SPEC.stream, chunks=5)
        damage(lines)
        with pytest.raises(Damaged):
            read(lines, dialect, spec)


@pytest.mark.parametrize("damage", [*TOOL_DAMAGES.values()], ids=[*TOOL_DAMAGES])
def test_bench_sees_a_damaged_tool_call(damage: Damage) -> None:
    lines = openai_lines(SPEC)
    damage(lines)
    with pytest.raises(Damaged):
        read(lines, OPENAI, SPEC)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"stop_reason": 1', b'"stop_reason": null'),
        (b'"stop_reason": 1', b'"stop_reason": 1, "error": {"code": "x"}'),
        (b'"nodes"', b'"knots"'),
    ],
)
def test_bench_sees_a_wrong_end(old: bytes, new: bytes) -> None:
    lines = augment_lines(OTHER)
    changed(old, new, at=-1)(lines)
    with pytest.raises(Damaged):
        read(lines, AUGMENT, OTHER)


def test_bench_records_hold_the_time_when_they_were_sent() -> None:
    text = record("ab", 0, 17) + record("ab", 1, 18)
    assert check(text, "000000ab", 2) == [17, 18]
    with pytest.raises(Damaged):
        check(text.replace(PADDING, PADDING[::-1]), "000000ab", 2)


def test_bench_peer_is_a_name_and_an_address_with_or_without_more() -> None:
    bare = peer("other=http://127.0.0.1:4000/v1/")
    assert (bare.name, bare.url, bare.pid) == ("other", "http://127.0.0.1:4000/v1", 0)
    full = peer("other=http://127.0.0.1:4000/v1,secret,17")
    assert (full.token, full.pid, full.dialect) == ("secret", 17, OPENAI)
    other = peer("other=http://127.0.0.1:4000/v1,secret,17,m,anthropic")
    assert (other.model, other.dialect) == ("m", ANTHROPIC)
