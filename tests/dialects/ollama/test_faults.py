"""Faults of lines of JSON: harmless ones change nothing, others are never a success."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import ChatRequest
from byok.core.errors import UpstreamError
from byok.core.events import Finish, StreamEvent
from byok.core.stage import drain
from byok.dialects.base import Target
from byok.dialects.ollama.dialect import Ollama
from tests.fakes.ollama_server import call_line, done_line, text_line
from tests.fakes.values import singles

LINES = [
    text_line("", thinking="Hm. 🤔"),
    text_line("Grüße, 世界 "),
    text_line("👩‍👩‍👧!"),
    call_line("view", {"path": "ü\n", "n": 1.5}),
    done_line(27),
]
RAW = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in LINES)


def read(*pieces: bytes) -> list[StreamEvent]:
    sent = Ollama().encode(ChatRequest(()), Target("m"))
    return [*drain(Ollama().reader(sent), pieces)]


WHOLE = read(RAW)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: raw.replace(b"\n", b"\n\n\n"),
        lambda raw: raw.replace(b"\n", b" \t\n"),
        lambda raw: b"\xef\xbb\xbf" + raw,
        lambda raw: raw.rstrip(b"\n"),
        lambda raw: raw + b"\n\n",
        lambda raw: b"\n" + raw,
        lambda raw: raw + b'{"error": "too late"}\n',
    ],
)
def test_harmless_faults_change_nothing(change: Callable[[bytes], bytes]) -> None:
    assert read(change(RAW)) == WHOLE
    assert read(*singles(change(RAW))) == WHOLE


END = RAW.rindex(b"{", 0, RAW.rindex(b'"message"')) + 1


@given(st.integers(0, END))
def test_an_answer_that_is_cut_anywhere_is_no_success(place: int) -> None:
    events: list[StreamEvent] = []
    with pytest.raises(UpstreamError):
        sent = Ollama().encode(ChatRequest(()), Target("m"))
        for event in drain(Ollama().reader(sent), [RAW[:place]]):
            events.append(event)
    assert not any(isinstance(event, Finish) for event in events)


@pytest.mark.parametrize("line", range(len(LINES)))
@pytest.mark.parametrize(
    "garbage",
    [b'{"error": "model runner has stopped"}', b"{]", b"null", b"<html>", b"data: x"],
)
def test_garbage_instead_of_a_line_is_no_success(line: int, garbage: bytes) -> None:
    lines = RAW.splitlines()
    lines[line] = garbage
    with pytest.raises(UpstreamError):
        read(b"\n".join(lines) + b"\n")
