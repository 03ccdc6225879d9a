"""Default models: a good one of each vendor's list, for chats and for small jobs."""

import pytest

from byok.core.purposes import Purpose
from byok.dialects.default_models import (
    choose_chat_model,
    choose_job_model,
    find_closest,
)
from byok.dialects.model_facts import ModelFacts


def facts(names: str) -> list[ModelFacts]:
    return [ModelFacts(name) for name in names.split()]


@pytest.mark.parametrize(
    ("vendor", "listed", "chat", "small"),
    [
        (
            "openai",
            "whisper-1 gpt-3.5-turbo gpt-4 gpt-5.5-pro gpt-5.5-2026-04-23 gpt-5.5 "
            "gpt-5.4 gpt-5.4-nano gpt-5.4-mini gpt-realtime-2",
            "gpt-5.5",
            "gpt-5.4-mini",
        ),
        ("openai", "gpt-6-luna gpt-6-terra gpt-6-sol", "gpt-6-sol", "gpt-6-luna"),
        (
            "anthropic",
            "claude-opus-5 claude-sonnet-4-5-20250929 claude-sonnet-4-20250514 "
            "claude-haiku-4-5-20251001 claude-3-haiku-20240307",
            "claude-sonnet-4-5-20250929",
            "claude-haiku-4-5-20251001",
        ),
        (
            "openrouter",
            "a/b openai/gpt-5.5 anthropic/claude-sonnet-4 anthropic/claude-sonnet-4.6",
            "anthropic/claude-sonnet-4.6",
            "",
        ),
        (
            "groq",
            "whisper-large groq/compound-mini llama-3.1-8b-instant openai/gpt-oss-120b",
            "openai/gpt-oss-120b",
            "llama-3.1-8b-instant",
        ),
        (
            "gemini",
            "models/embedding-001 models/gemini-2.5-flash models/gemini-3.5-flash "
            "models/gemini-3.1-pro-preview models/gemini-3.1-flash-lite",
            "models/gemini-3.5-flash",
            "models/gemini-3.1-flash-lite",
        ),
        ("xai", "grok-4.20 grok-4.5 grok-code-fast-1", "grok-4.5", "grok-code-fast-1"),
        (
            "fireworks",
            "accounts/fireworks/models/llama-guard-3 accounts/fireworks/models/glm-5p2 "
            "accounts/fireworks/models/glm-5p1 accounts/fireworks/models/gpt-oss-20b",
            "accounts/fireworks/models/glm-5p2",
            "accounts/fireworks/models/gpt-oss-20b",
        ),
        ("ollama", "nomic-embed-text:latest llama3.2:3b qwen3:8b", "qwen3:8b", ""),
        ("openai_compatible", "embed large small", "large", ""),
        ("openai", "", "", ""),
    ],
)  # fmt: skip
def test_the_default_is_the_newest_good_model(
    vendor: str, listed: str, chat: str, small: str
) -> None:
    models = facts(listed)
    assert choose_chat_model(vendor, models) == chat
    assert choose_job_model(vendor, Purpose.COMMIT, models) == small
    assert choose_job_model(vendor, Purpose.TITLE, models) == small


@pytest.mark.parametrize(
    ("vendor", "listed", "model"),
    [
        ("mistral", "mistral-medium-latest codestral-2508", "codestral-2508"),
        ("mistral", "codestral-2508 codestral-latest", "codestral-latest"),
        ("deepseek", "deepseek-v4-pro deepseek-v4-flash", "deepseek-v4-flash"),
        ("ollama", "qwen3:8b qwen2.5-coder:1.5b", "qwen2.5-coder:1.5b"),
        ("ollama", "qwen3:8b", ""),
        ("openai", "gpt-5.5 gpt-5.4-mini", "gpt-5.4-mini"),
        ("huggingface", "a/GLM-5 a/Qwen2.5-Coder-7B a/gpt-oss-20b", "a/gpt-oss-20b"),
    ],
)  # fmt: skip
def test_completions_go_to_a_model_that_fills_gaps_or_is_quick(
    vendor: str, listed: str, model: str
) -> None:
    assert choose_job_model(vendor, Purpose.COMPLETION, facts(listed)) == model


@pytest.mark.parametrize("purpose", [Purpose.SUMMARY, Purpose.ENHANCE, Purpose.EDIT])
def test_jobs_that_need_the_conversation_stay_with_its_model(purpose: Purpose) -> None:
    assert choose_job_model("openai", purpose, facts("gpt-5.5 gpt-5.4-mini")) == ""


def test_a_model_that_takes_no_tools_is_no_default_where_another_does() -> None:
    models = [
        ModelFacts("gpt-9", tools=False),
        ModelFacts("gpt-8", chats=False),
        ModelFacts("x"),
    ]
    assert choose_chat_model("openai", models) == "x"
    assert choose_chat_model("openai", models[:2]) == "gpt-9"
    assert choose_chat_model("openai", models[1:2]) == "gpt-8"


CLOSEST = {
    "sonnet4.5": "claude-sonnet-4-5-20250929",
    "sonnet": "claude-sonnet-4-5-20250929",
    "haiku4.5": "claude-3-5-haiku-latest",
    "claude-3-7-sonnet": "claude-sonnet-4-5-20250929",
    "claude-sonnet-4": "anthropic/claude-sonnet-4",
    "opus4.1": "claude-opus-4-5-20251101",
    "gpt5": "gpt-5.1",
    "gpt-5-nano": "gpt-5.1",
    "gpt-5.1-codex-max": "gpt-5.1-codex",
    "o4-mini": "gpt-5-mini",
    "gemini": "gemini-2.5-pro",
    "gemini-3-flash": "gemini-2.5-flash",
    "qwen2.5-coder:32b": "qwen2.5-coder:7b",
    "GLM-4.5-air": "glm-4.6",
    **dict.fromkeys(("", "auto", "default", "chat", "x", "1", "-", "mymodel"), ""),
    **dict.fromkeys(("devstral", "embedding", "text"), ""),
}


def test_the_closest_model_is_of_the_same_family() -> None:
    models = [
        *("gpt-5-mini", "gpt-5.1-codex", "gpt-5.1", "text-embedding-3-large"),
        *("claude-opus-4-5-20251101", "claude-3-5-haiku-latest"),
        *("anthropic/claude-sonnet-4", "claude-sonnet-4-5-20250929"),
        *("gemini-embedding-001", "gemini-2.5-pro", "gemini-2.5-flash"),
        *("qwen3-coder:30b", "qwen2.5-coder:7b", "glm-4.6"),
    ]
    wrong: list[str] = []
    for wanted, model in CLOSEST.items():
        index = find_closest(wanted, models)
        found = "" if index is None else models[index]
        if found != model:
            wrong.append(f"{wanted!r}: {found!r} instead of {model!r}")
    assert not wrong
    assert find_closest("sonnet4.5", []) is None
