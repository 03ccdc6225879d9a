"""The interface of dialects: what one gets for nothing, and what all must keep to."""

import json

import pytest

from byok.core.chat import ChatRequest, Message, Role, TextPart, ToolDefinition
from byok.core.events import StreamEvent, TextDelta
from byok.core.stage import drain
from byok.dialects.base import Dialect, Target
from byok.dialects.registry import DIALECTS
from tests.fakes.trial_dialect.dialect import TrialDialect

CHAT = ChatRequest(
    (Message(Role.USER, (TextPart("Hi?"),)),),
    tools=(ToolDefinition("view file", "", {"type": "object"}),),
)
OPENAI = b"".join(
    b"data: " + json.dumps({"choices": [choice]}).encode() + b"\r\n\r\n"
    for choice in (
        {"delta": {"content": "H😀"}},
        {"delta": {"content": "i."}, "finish_reason": "stop"},
    )
)


def read(dialect: Dialect, pieces: list[bytes]) -> list[StreamEvent]:
    """Give the events of an answer, the text as one delta."""
    sent = dialect.encode(CHAT, Target("m"))
    events = list(drain(dialect.reader(sent), pieces))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return [TextDelta(text), *(e for e in events if not isinstance(e, TextDelta))]


@pytest.mark.parametrize("name", [*DIALECTS, "trial"])
def test_a_dialect_is_equal_to_another_of_the_same_vendor(name: str) -> None:
    make = {**DIALECTS, "trial": TrialDialect.of}[name]
    assert make("mistral") == make("mistral")
    assert hash(make("mistral")) == hash(make("mistral"))
    assert make("mistral").name == name


@pytest.mark.parametrize("name", [*DIALECTS, "trial"])
@pytest.mark.parametrize("body", [None, 7, "x", [], {}, [1], {"data": 5}])
def test_a_dialect_reads_any_json_as_a_list_of_models(name: str, body: object) -> None:
    dialect = {**DIALECTS, "trial": TrialDialect.of}[name]("mistral")
    assert dialect.read_models(body).next_path == ""
    assert dialect.read_probe(body, "m").id == "m"
