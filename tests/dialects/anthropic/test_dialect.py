""""""

import pytest

from byok.dialects.anthropic.dialect import FIRST_PAGE, AnthropicMessages, read_models
from byok.dialects.model_facts import ModelFacts


@pytest.fixture
def dialect() -> AnthropicMessages:
    return AnthropicMessages.of("anthropic")


def test_the_version_is_sent_with_and_without_a_key(dialect: AnthropicMessages) -> None:
    assert dialect.headers("")["anthropic-version"] == "2023-06-01"
    assert "x-api-key" not in dialect.headers("")
    assert dialect.headers("k")["x-api-key"] == "k"


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
