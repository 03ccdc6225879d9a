"""Reasoning between think tags: told from text only at the start, however sliced."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from byok.core.chat import NO_ORIGIN, ProviderData
from byok.core.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from byok.core.stage import drain
from byok.dialects.answer_reader import ThinkTags, tags_of
from tests.fakes.values import CUTS, cut

STOP = Finish(FinishReason.STOP)


def split(pieces: list[str]) -> tuple[str, str]:
    """Give all reasoning and all text; the one must not come after the other."""
    source: list[StreamEvent] = [*(TextDelta(p) for p in pieces if p), STOP]
    events = list(drain(ThinkTags(), source))
    assert events.pop() == STOP
    kinds = [type(event) for event in events]
    assert kinds == sorted(kinds, key=lambda kind: kind is TextDelta)
    ends = [e for e in events if isinstance(e, ThinkingDelta) and e.provider_data]
    assert [e.text for e in ends] in ([], [""])
    thoughts = [
        e.text for e in events if isinstance(e, ThinkingDelta) and e not in ends
    ]
    texts = [e.text for e in events if isinstance(e, TextDelta)]
    assert "" not in thoughts
    assert "" not in texts
    return "".join(thoughts), "".join(texts)


CASES = {
    "no block": ("Hello.", "", "Hello."),
    "a block": ("<think>hm</think>Hello.", "hm", "Hello."),
    "blank lines after it": ("<think>hm</think>\n\nHello.\n\n", "hm", "Hello.\n\n"),
    "an empty block": ("<think></think>Hello.", "", "Hello."),
    "a block never closed": ("<think>hm</thin", "hm</thin", ""),
    "white space stays before text": (" \n <b>", "", " \n <b>"),
    "Kimi's tags": ("◁think▷hm◁/think▷Hello.", "hm", "Hello."),
    "Magistral's tags": ("[THINK]hm[/THINK]Hello.", "hm", "Hello."),
    "a leading closer": ("\n</think>\n\nHello.", "", "Hello."),
    "the other closer is text": ("<think>a◁/think▷b</think>c", "a◁/think▷b", "c"),
    "an opener inside": ("<think>a<think>b</think>c", "a<think>b", "c"),
    "a second block is text": ("<think>a</think>b<think>c", "a", "b<think>c"),
    "not at the start": ("See <think>x</think>", "", "See <think>x</think>"),
    "a closer begun twice": ("<think>a</</think>b", "a</", "b"),
}


@pytest.mark.parametrize(
    ("text", "thought", "said"), list(CASES.values()), ids=list(CASES)
)
def test_think_tags_at_the_start_become_thinking(
    text: str, thought: str, said: str
) -> None:
    assert split([text]) == (thought, said)


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "</", "<th", "a", "\n", " ", "◁think▷"])
    ).map("".join),
    CUTS,
)
@example("<think>a</think>\n\nb", [16])
def test_think_tags_any_slicing_gives_the_same(text: str, places: list[int]) -> None:
    assert split(cut(text, places)) == split([text])


def test_think_tags_give_thinking_as_soon_as_it_is_certain() -> None:
    stage = ThinkTags()
    fed = [list(stage.feed(TextDelta(t))) for t in ("<think>ab</", "x</thi", "nk>yes")]
    tags = ProviderData(NO_ORIGIN, {"tags": ["<think>", "</think>"]})
    assert fed == [
        [ThinkingDelta("ab")],
        [ThinkingDelta("</x")],
        [ThinkingDelta("", tags), TextDelta("yes")],
    ]


@given(st.text("a \n<", max_size=5), st.text("ab\n", min_size=1), CUTS)
def test_think_tags_and_their_white_space_are_the_data_of_the_block(
    before: str, said: str, places: list[int]
) -> None:
    text = f" \n<think>{before}x</think>{said}"
    events = list(drain(ThinkTags(), map(TextDelta, cut(text, places))))
    (data,) = (
        e.provider_data.data
        for e in events
        if isinstance(e, ThinkingDelta) and e.provider_data
    )
    tags = tags_of(data)
    assert tags
    thought, rest = (
        "".join(e.text for e in events if isinstance(e, kind))
        for kind in (ThinkingDelta, TextDelta)
    )
    assert f"{tags[0]}{thought}{tags[1]}{rest}" == text


def test_think_tags_pass_other_events_at_once() -> None:
    stage = ThinkTags()
    assert list(stage.feed(TextDelta("<thi"))) == []
    others: list[StreamEvent] = [ThinkingDelta("x"), ToolCallDelta(0, "i", "n", "{}")]
    assert [event for other in others for event in stage.feed(other)] == others
    assert list(stage.feed(STOP)) == [TextDelta("<thi"), STOP]


def test_think_tags_give_held_text_when_the_stream_breaks() -> None:
    assert list(drain(ThinkTags(), [TextDelta("<thi")])) == [TextDelta("<thi")]
    assert list(drain(ThinkTags(), [TextDelta("<think>a</th")])) == [
        ThinkingDelta("a"),
        ThinkingDelta("</th"),
    ]
