""""""

import pytest

from byok.core.chat import ChatRequest, Message, Role, TextPart
from byok.core.errors import RefusalKind
from byok.core.stage import drain
from byok.dialects.anthropic.dialect import FIRST_PAGE, AnthropicMessages, read_models
from byok.dialects.base import ErrorResponse, Target, UpstreamRequest
from byok.dialects.model_facts import ModelFacts
from tests.fakes.messages_api import answer

HI = ChatRequest((Message(Role.USER, (TextPart("Hi."),)),))


@pytest.fixture
def dialect() -> AnthropicMessages:
    return AnthropicMessages.of("anthropic")


def test_the_version_is_sent_with_and_without_a_key(dialect: AnthropicMessages) -> None:
    assert dialect.headers("")["anthropic-version"] == "2023-06-01"
    assert "x-api-key" not in dialect.headers("")
    assert dialect.headers("k")["x-api-key"] == "k"


def test_it_encodes_and_reads(dialect: AnthropicMessages) -> None:
    sent = dialect.encode(HI, Target("m"))
    assert (sent.path, sent.body["model"]) == ("messages", "m")
    reader = dialect.reader(UpstreamRequest("messages", {}))
    assert next(iter(drain(reader, [answer("Hi.")]))) is not None
    assert dialect.sends_thoughts
    assert "messages" in dialect.serves


def test_refusals_have_a_class_and_the_wait_of_the_headers(
    dialect: AnthropicMessages,
) -> None:
    error = {"type": "rate_limit_error", "message": "This request would exceed"}
    body = {"type": "error", "error": error}
    refusal = dialect.refusal(ErrorResponse(429, body, {"retry-after": "7"}))
    assert refusal.kind is RefusalKind.RATE_LIMIT
    assert refusal.retry_after == 7


def test_the_list_of_models_has_pages(dialect: AnthropicMessages) -> None:
    page = dialect.read_models(
        {"data": [{"id": "a"}], "has_more": True, "last_id": "a"}
    )
    assert dialect.models_path() in page.next_path
    assert [model.id for model in page.models] == ["a"]


YES, NO = {"supported": True}, {"supported": False}
OPUS = {
    "id": "claude-opus-5",
    "max_input_tokens": 1_000_000,
    "max_tokens": 128_000,
    "capabilities": {
        "image_input": YES,
        "effort": {**YES, "low": YES, "high": YES, "max": YES, "medium": NO},
        "thinking": {**YES, "types": {"enabled": NO, "adaptive": YES}},
    },
}
FACTS = ModelFacts(
    "claude-opus-5",
    window=1_000_000,
    max_output=128_000,
    images=True,
    thinking=True,
    efforts=("low", "high", "max"),
    adaptive_thinking=True,
)


def test_the_list_tells_limits_and_capabilities() -> None:
    page = read_models({"data": [OPUS, {"id": "claude-3-haiku"}], "has_more": False})
    assert page.models == (FACTS, ModelFacts("claude-3-haiku"))
    assert page.next_path == ""


def test_the_next_page_begins_after_the_last_model() -> None:
    page = read_models({"data": [OPUS], "has_more": True, "last_id": "a/b c"})
    assert page.next_path == f"{FIRST_PAGE}&after_id=a%2Fb%20c"
    assert read_models({"data": [], "has_more": True, "last_id": 3}).next_path == ""


def test_odd_values_are_unknown() -> None:
    odd = {"id": "m", "max_tokens": True, "max_input_tokens": -1, "capabilities": [1]}
    assert read_models({"data": [odd]}).models == (ModelFacts("m"),)
