"""Filling a gap: llama.cpp's answers, and those of everybody else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import UpstreamError, UpstreamGarbled, UpstreamRefused
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta, Usage
from byok.core.stage import drain
from byok.core.wire.sse import ServerSentEvent
from byok.dialects.fim.codecs import FimAnswer

STOP, LENGTH = Finish(FinishReason.STOP), Finish(FinishReason.LENGTH)


def choice(text: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    made = {"index": 0, "text": text, "finish_reason": finish}
    return {"choices": [made], "object": "text_completion", **more}


def read(*events: Any) -> list[StreamEvent]:
    """Read events; bytes as they are, anything else as JSON."""
    raw = [e if isinstance(e, bytes) else json.dumps(e).encode() for e in events]
    return list(drain(FimAnswer(), map(ServerSentEvent, raw)))


def test_fim_answer_of_text_completions() -> None:
    usage = {"prompt_tokens": 6, "completion_tokens": 8}
    events = read(choice("a "), choice("b"), choice("", "stop", usage=usage), b"[DONE]")
    assert events == [TextDelta("a "), TextDelta("b"), Usage(6, 8), STOP]


@pytest.mark.parametrize(
    ("last", "finish"),
    [
        ({"stop_type": "eos"}, STOP),
        ({"stop_type": "word"}, STOP),
        ({"stop_type": "limit"}, LENGTH),
        ({"stopped_limit": True, "stopped_eos": False}, LENGTH),
        ({"stopped_eos": True}, STOP),
    ],
)
def test_fim_answer_of_llama_cpp_infill(last: dict[str, Any], finish: Finish) -> None:
    more = {"content": "a", "stop": False, "index": 0}
    events = read(more, {"content": "b", "stop": True, **last}, {"content": "late"})
    assert events == [TextDelta("a"), TextDelta("b"), finish]


def test_fim_answer_without_streaming() -> None:
    assert read(choice("ab", "length")) == [TextDelta("ab"), LENGTH]
    assert read({"content": "ab", "stop": True}) == [TextDelta("ab"), STOP]


def test_fim_answer_is_the_first_choice_only() -> None:
    second = {"choices": [{"index": 1, "text": "no"}, {"index": 0, "text": "yes"}]}
    assert read(second, choice("", "stop")) == [TextDelta("yes"), STOP]


def test_fim_answer_joins_surrogate_halves() -> None:
    halves = [b'{"choices":[{"text":"\\ud83d"}]}', b'{"choices":[{"text":"\\ude00"}]}']
    assert read(*halves, choice("", "stop")) == [TextDelta("😀"), STOP]
    assert read(halves[0], choice("", "stop")) == [TextDelta("\ufffd"), STOP]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        pytest.param([choice("a")], "upstream_cut", id="cut"),
        pytest.param([], "upstream_empty", id="nothing"),
        pytest.param([b"{"], "upstream_not_json", id="no JSON"),
        pytest.param([b"7"], "upstream_not_json", id="a number"),
        pytest.param([b"[1]"], "upstream_not_json", id="an array"),
    ],
)
def test_an_answer_that_is_none_is_an_error(events: list[Any], code: str) -> None:
    with pytest.raises(UpstreamGarbled) as raised:
        read(*events)
    assert raised.value.code == code


def test_fim_answer_with_an_error_inside_the_stream() -> None:
    with pytest.raises(UpstreamRefused, match="broke"):
        read(choice("a"), {"error": {"message": "broke"}})
    answer = FimAnswer()
    with pytest.raises(UpstreamRefused, match="broke"):
        answer.feed(ServerSentEvent(b'{"message":"broke"}', "error"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["choices", "text", "content", "stop", "error", "usage"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=4))
def test_no_answer_is_a_fault(events: list[Any]) -> None:
    try:
        read(*events, b"[DONE]")
    except UpstreamError as error:
        assert str(error)
