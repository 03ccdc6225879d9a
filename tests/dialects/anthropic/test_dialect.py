import pytest

from byok.core.chat import ChatRequest, Message, Role, TextPart
from byok.core.errors import RefusalKind
from byok.core.stage import drain
from byok.dialects.anthropic.dialect import AnthropicMessages
from byok.dialects.base import ErrorResponse, Target, UpstreamRequest
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
