"""The attempts at a request: when an answer begins, and what counts before."""

from collections.abc import Sequence

import pytest

from byok.chat import ChatRequest, Message, Role, TextPart, ToolDefinition, ToolResult
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.openai_chat.quirks import DEFAULT
from byok.errors import RefusalKind, UpstreamEmpty, UpstreamRefused
from byok.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from byok.record import RequestRecord, begin_record
from byok.stage import drain
from byok.upstream.attempts import Attempts
from byok.upstream.http_call import RequestKey
from byok.upstream.prompt_changes import PromptChanges
from byok.upstream.remedies import Remedies
from byok.upstream.retry import Patience
from byok.upstream.spec import Api, UpstreamSpec
from tests.fakes.asker import Key
from tests.fakes.upstream import answer

STOP, LENGTH = Finish(FinishReason.STOP), Finish(FinishReason.LENGTH)
ASKED = Message(Role.USER, (TextPart("Hi?"),))
RESULT = Message(Role.TOOL, (ToolResult("c", "view", ""),))


def attempts(
    *messages: Message,
    may_be_empty: bool = False,
    whole: bool = False,
    prompts: PromptChanges | None = None,
    key: RequestKey | None = None,
    printed_calls: bool | None = None,
    tools: tuple[ToolDefinition, ...] = (),
) -> Attempts:
    spec = UpstreamSpec("groq", (Api(OpenAIChat(DEFAULT), "http://127.0.0.1:1/v1"),))
    remedies = Remedies(spec).begin(ModelFacts("m", printed_calls=printed_calls))
    asked = messages or (ASKED,)
    chat = ChatRequest(asked, tools, conversation="c", whole=whole)
    return Attempts(
        "groq",
        chat,
        remedies,
        key or Key(),
        Patience(300.0, lambda: 0.0, lambda: 1.0),
        prompts or PromptChanges(),
        may_be_empty=may_be_empty,
    )


@pytest.mark.parametrize(
    ("reads", "given"),
    [
        ([[Usage(3)], [Notice("n")]], [[], []]),
        ([[Usage(3)], [TextDelta("a")]], [[], [Usage(3), TextDelta("a")]]),
        (
            [[ThinkingDelta("")], [STOP, LENGTH]],
            [[], [ThinkingDelta(""), STOP, LENGTH]],
        ),
        ([[TextDelta("a"), STOP]], [[TextDelta("a"), STOP]]),
        ([[LENGTH]], [[LENGTH]]),
    ],
)
def test_an_answer_is_held_back_until_it_begins(
    reads: Sequence[list[StreamEvent]], given: Sequence[list[StreamEvent]]
) -> None:
    one = attempts()
    assert [one.take(batch) for batch in reads] == given
    assert one.begun is bool(given[-1])
    assert bool(one.content) is not one.begun


def test_an_answer_that_must_be_whole_is_held_back_until_its_end() -> None:
    one = attempts(whole=True)
    assert one.take([ThinkingDelta("a")]) == one.take([TextDelta("b")]) == []
    assert one.recover(UpstreamRefused("No.", upstream_status=400)) is None
    assert one.take_held() == []
    one.take([Usage(3), TextDelta("b")])
    assert one.take([STOP]) == [Usage(3), TextDelta("b"), STOP]
    assert one.begun


@pytest.mark.parametrize(
    "one",
    [attempts(may_be_empty=True), attempts(ASKED, RESULT)],
    ids=["completion", "after tool results"],
)
def test_an_answer_without_a_word_may_be_right(one: Attempts) -> None:
    assert one.take([STOP]) == [STOP]


def test_a_second_answer_without_a_word_is_handed_on() -> None:
    one = attempts()
    with pytest.raises(UpstreamEmpty) as caught:
        one.take([Usage(3), STOP])
    assert one.recover(caught.value) is not None
    assert one.take_held() == [Usage(3)]
    assert one.take([STOP]) == [STOP]
    assert one.recover(caught.value) is None


def test_a_long_wait_is_told_before_it() -> None:
    one = attempts()
    limit = UpstreamRefused(
        "No.", kind=RefusalKind.RATE_LIMIT, retry_after=20.0, retryable=True
    )
    assert one.take([Notice("n"), Usage(3)]) == []
    assert one.recover(limit) == 20.0
    told = Notice("groq: its rate limit is reached, waiting 20 s.", at_once=True)
    assert one.take_held() == [Usage(3), told]
    assert one.take_held() == []


def test_what_was_held_back_is_kept_if_no_attempt_follows() -> None:
    one = attempts()
    one.take([Notice("n"), Usage(3)])
    assert one.recover(UpstreamRefused("No.", upstream_status=400)) is None
    assert one.take_held() == [Notice("n"), Usage(3)]


async def test_the_record_tells_where_a_prompt_differs_from_the_last_one() -> None:
    record, prompts = begin_record(RequestRecord()), PromptChanges()
    said = Message(Role.ASSISTANT, (TextPart("Ho."),))
    for messages, change in [
        ((ASKED,), ""),
        ((ASKED, said, ASKED), ""),
        ((RESULT, said, ASKED), "messages[0], byte 9"),
    ]:
        attempts(*messages, prompts=prompts).take([TextDelta("a")])
        assert record.prompt_change == change


class TwoKeys(Key):
    """A key that another one can replace, once."""

    def __init__(self) -> None:
        super().__init__()
        self.rested: list[float] = []

    def replace(self, seconds: float) -> bool:
        self.rested.append(seconds)
        return len(self.rested) == 1


def test_another_key_is_used_at_once_and_told_with_the_answer() -> None:
    key = TwoKeys()
    one = attempts(key=key)
    limit = UpstreamRefused(
        "No.", kind=RefusalKind.RATE_LIMIT, retry_after=20.0, retryable=True
    )
    assert one.take([Usage(3)]) == []
    assert one.recover(limit) == 0.0
    assert one.take_held() == [Usage(3)]
    assert one.recover(limit) == 20.0
    assert key.rested == [20.0, 20.0]
    one.take_held()
    told = Notice(
        "groq: its rate limit is reached, so another one of your keys is used."
    )
    assert one.take([TextDelta("a")]) == [told, TextDelta("a")]


def test_no_other_key_is_tried_for_what_is_not_the_fault_of_a_key() -> None:
    key = TwoKeys()
    one = attempts(key=key)
    assert one.recover(UpstreamRefused("No.", kind=RefusalKind.TOO_LARGE)) is None
    assert key.rested == []


LOOK = ToolDefinition("look at", "", {"type": "object"})
IN_TEXT = '<tool_call>{"name": "NAME", "arguments": {}}</tool_call>'


@pytest.mark.parametrize(
    ("printed_calls", "tools", "is_call"),
    [(None, (LOOK,), True), (None, (), False), (False, (LOOK,), False)],
)
def test_printed_calls_are_read_unless_the_facts_forbid_it(
    printed_calls: bool | None, tools: tuple[ToolDefinition, ...], *, is_call: bool
) -> None:
    one = attempts(printed_calls=printed_calls, tools=tools)
    text = IN_TEXT.replace("NAME", next(iter(one.sent.tool_names), "look"))
    events = [*drain(one.reader(), answer(text))]
    calls = [event for event in events if isinstance(event, ToolCallDelta)]
    assert [call.name for call in calls] == ["look at"] * is_call
    assert (TextDelta(text) in events) is not is_call
