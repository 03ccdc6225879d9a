"""Models by purpose, with the reason."""

import pytest

from byok.dialects.model_facts import ModelFacts
from byok.setup.model_choice import choose_models


def named(*names: str) -> list[ModelFacts]:
    return [ModelFacts(name) for name in names]


@pytest.mark.parametrize(
    ("vendor", "names", "chosen"),
    [
        ("ollama", [], {}),
        ("ollama", ["odd"], {"default": "odd", "completion": ""}),
        (
            "ollama",
            ["nomic-embed-text", "qwen2.5-coder:1.5b-base", "qwen3-coder:30b"],
            {"default": "qwen3-coder:30b", "completion": "qwen2.5-coder:1.5b-base"},
        ),
        (
            "anthropic",
            ["claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5"],
            {
                "default": "claude-sonnet-4-5",
                "commit": "claude-haiku-4-5",
                "title": "claude-haiku-4-5",
                "rerank": "claude-haiku-4-5",
                "completion": "claude-haiku-4-5",
            },
        ),
        (
            "mistral",
            ["mistral-medium-latest", "mistral-small-latest", "codestral-latest"],
            {
                "default": "mistral-medium-latest",
                "commit": "mistral-small-latest",
                "title": "mistral-small-latest",
                "rerank": "mistral-small-latest",
                "completion": "codestral-latest",
            },
        ),
    ],
)
def test_models_are_chosen_by_purpose(
    vendor: str, names: list[str], chosen: dict[str, str]
) -> None:
    found = choose_models(vendor, named(*names))
    assert {one.purpose: one.model for one in found} == chosen
    assert all(one.reason for one in found)


def test_the_reason_says_what_is_known() -> None:
    facts = ModelFacts("qwen3-coder:30b", window=262_144, tools=True)
    chat, completion = choose_models("ollama", [facts])
    assert chat.reason == "the only one listed, takes tools, window of 262,144 tokens"
    assert "FIM" in completion.reason


def test_a_completion_model_that_fills_gaps_is_told_from_a_quick_one() -> None:
    filling = choose_models("ollama", named("qwen3:8b", "qwen2.5-coder:1.5b-base"))
    quick = choose_models("anthropic", named("claude-haiku-4-5", "claude-sonnet-4-5"))
    assert filling[-1].reason == "fills gaps (FIM)"
    assert quick[-1].reason.startswith("quick")
