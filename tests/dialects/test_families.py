"""Families: what a model takes, judged by its name, whatever its host calls it."""

from typing import Any

import pytest

from byok.core.routing import Purpose
from byok.dialects.default_models import (
    choose_chat_model,
    choose_job_model,
    find_closest,
)
from byok.dialects.families import FAMILIES, Family, family_facts, family_name
from byok.dialects.model_facts import ModelFacts, Replay

ROWS: list[Family] = [row for rows in FAMILIES.values() for row in rows]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("GPT-5.6-Terra", "gpt-5.6-terra"),
        ("us.anthropic.claude-opus-4-7-v1:0", "claude-opus-4-7-v1:0"),
        ("accounts/fireworks/models/kimi-k2p7-code", "kimi-k2.7-code"),
        ("qwen.qwen3-coder-next", "qwen3-coder-next"),
        ("zai-glm-4.7", "glm-4.7"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b-instruct"),
        ("hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M", "qwen3-8b-gguf:q4_k_m"),
        ("llama3.1:8b", "llama3.1:8b"),
        ("", ""),
    ],
)
def test_a_family_name_has_nothing_of_the_host(model: str, name: str) -> None:
    assert family_name(model) == name


@pytest.mark.parametrize(
    ("models", "facts"),
    [
        pytest.param(
            "gpt-5.6-terra openai/gpt-5.5 gpt-5.4-mini gpt-6-sol gpt-5.3-codex "
            "gpt-5-pro o3-pro gpt-5.1-codex-max o4-mini-deep-research",
            {"dialect": "openai_responses", "sampling": False, "thinking": True},
            id="OpenAI's models that need /responses",
        ),
        pytest.param(
            "gpt-5 gpt-5.2 gpt-5.3-chat-latest o3 gpt-4.1 gpt-4o gpt-oss-120b m",
            {"dialect": ""},
            id="those that do not",
        ),
        pytest.param(
            "gpt-5-mini openai/gpt-5-2025-08-07",
            {"efforts": ("minimal", "low", "medium", "high"), "images": True},
            id="GPT-5",
        ),
        pytest.param("gpt-5-chat-latest", {"sampling": True, "efforts": ()}, id="chat"),
        pytest.param("o3-mini", {"images": False, "sampling": False}, id="o3-mini"),
        pytest.param("o1-mini", {"tools": False}, id="o1-mini"),
        pytest.param(
            "openai/gpt-oss-20b gpt-oss:20b",
            {"images": False, "efforts": ("low", "medium", "high"), "sampling": None},
            id="gpt-oss",
        ),
        pytest.param(
            "claude-opus-4-7 anthropic/claude-opus-4.8 claude-sonnet-5 claude-fable-5 "
            "claude-opus-5-5 claude-mythos-preview us.anthropic.claude-opus-5",
            {
                "sampling": False,
                "adaptive_thinking": True,
                "max_output": 128_000,
                "efforts": ("low", "medium", "high", "xhigh", "max"),
                "replay": Replay.EVERY_TURN,
            },
            id="Claude without sampling",
        ),
        pytest.param(
            "anthropic.claude-opus-5 us.anthropic.claude-haiku-4-5-20251001-v1:0",
            {"dialect": "anthropic"},
            id="Claude on Bedrock",
        ),
        pytest.param(
            "claude-sonnet-4-6 claude-opus-4.6",
            {"sampling": True, "adaptive_thinking": True},
            id="Claude that thinks as it likes",
        ),
        pytest.param(
            "claude-haiku-4-5-20251001 claude-sonnet-4-20250514 anthropic/claude-3.7",
            {"sampling": True, "adaptive_thinking": False, "max_output": 64_000},
            id="Claude with a budget",
        ),
        pytest.param("claude-opus-4-1", {"max_output": 32_000}, id="Opus 4"),
        pytest.param(
            "claude-3-5-haiku-20241022", {"thinking": False, "max_output": 8192}, id="3"
        ),
        pytest.param(
            "gemini-3.1-pro-preview google/gemini-2.5-flash models/gemini-3.6-flash",
            {"replay": Replay.TOOL_TURNS, "images": True, "tools": True},
            id="Gemini",
        ),
        pytest.param(
            "deepseek-v4-pro deepseek-ai/DeepSeek-V4-Flash-0731 deepseek-reasoner",
            {"replay": Replay.EVERY_TURN, "empty_reasoning": True},
            id="DeepSeek V4",
        ),
        pytest.param(
            "deepseek-r1:8b deepseek-ai/DeepSeek-R1-0528 deepseek.v3.1 deepseek-chat",
            {"replay": Replay.NEVER, "empty_reasoning": None},
            id="DeepSeek that wants none",
        ),
        pytest.param(
            "kimi-k2-thinking moonshotai/Kimi-K2.5 accounts/fireworks/models/kimi-k2p6",
            {"replay": Replay.TOOL_TURNS, "empty_reasoning": True},
            id="Kimi K2",
        ),
        pytest.param(
            "kimi-k3 moonshotai/Kimi-K3-TEE",
            {"replay": Replay.EVERY_TURN, "sampling": False, "images": True},
            id="Kimi K3",
        ),
        pytest.param(
            "kimi-k2-0905-preview moonshotai/Kimi-K2-Instruct",
            {"replay": None, "images": False, "thinking": None},
            id="Kimi that does not think",
        ),
        pytest.param(
            "glm-4.6 zai-org/GLM-4.5-Air", {"replay": Replay.TOOL_TURNS}, id="GLM 4"
        ),
        pytest.param(
            "glm-5.2 zai-org/GLM-4.7-FP8 zai.glm-5",
            {"replay": Replay.EVERY_TURN, "images": False},
            id="GLM 5",
        ),
        pytest.param("glm-4.6v glm-5v-turbo", {"images": True}, id="GLM that sees"),
        pytest.param(
            "MiniMax-M2.1 minimax/minimax-m3", {"replay": Replay.EVERY_TURN}, id="M2"
        ),
        pytest.param("mimo-v2.5-pro", {"replay": Replay.TOOL_TURNS}, id="MiMo"),
        pytest.param("grok-4.5-latest", {"efforts": ("low", "medium", "high")}, id="x"),
        pytest.param("grok-4.20-non-reasoning", {"thinking": False}, id="Grok"),
        pytest.param("qwen3:8b Qwen/Qwen3-32B", {"thinking": True}, id="Qwen3"),
        pytest.param(
            "qwen2.5-coder:7b Qwen/Qwen3-Coder-480B-A35B-Instruct",
            {"thinking": False, "images": False},
            id="Qwen for code",
        ),
        pytest.param("qwen3-vl-plus qwen3.6-27b", {"images": True}, id="Qwen-VL"),
        pytest.param(
            "llama3.2-vision:11b llama3.2:11b-vision-instruct meta-llama/Llama-4-Scout",
            {"images": True},
            id="Llama that sees",
        ),
        pytest.param("meta-llama-3.1-8b llama3.3:70b", {"images": False}, id="Llama"),
        pytest.param("gemma3:4b google/gemma-4-31b-it", {"images": True}, id="Gemma"),
    ],
)  # fmt: skip
def test_a_model_takes_what_its_family_takes(
    models: str, facts: dict[str, Any]
) -> None:
    for model in models.split():
        found = family_facts(model)
        assert found.id == model
        assert {name: getattr(found, name) for name in facts} == facts, model


@pytest.mark.parametrize("model", ["m", "", "my-gpt-5", "llava-llama3", "echo", "5"])
def test_nothing_is_known_of_a_name_of_no_family(model: str) -> None:
    assert family_facts(model) == ModelFacts(model)


def test_no_row_has_what_belongs_to_a_host() -> None:
    assert [row for row in ROWS if row.facts.keys() & {"window", "price"}] == []
    assert all(ModelFacts("m", **row.facts).known_fields() == row.facts for row in ROWS)


def test_a_hostile_name_takes_no_time() -> None:
    for name in ("a." * 5000, "claude-" + "a-" * 5000, "qwen" * 5000, "/" * 10_000):
        assert family_facts(name).id == name


# Default models: a good one of each vendor's list, for chats and for small jobs


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
        ("ollama", "qwen3:8b gpt-oss:20b qwen3-coder:30b", "qwen3-coder:30b", ""),
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


@pytest.mark.parametrize(
    ("vendor", "listed", "model"),
    [
        ("ollama", "qwen3:8b zeta-2:8b sweep-next-edit:1.5b", "sweep-next-edit:1.5b"),
        ("llamacpp", "zeta-2.1.gguf", "zeta-2.1.gguf"),
        ("mistral", "mistral-medium-latest codestral-2508", "codestral-2508"),
        ("inception", "mercury-2 mercury-edit-2", "mercury-edit-2"),
        ("vercel", "inception/mercury-coder mistral/codestral", ""),
        ("ollama", "qwen2.5-coder:1.5b", ""),
    ],
)  # fmt: skip
def test_next_edits_go_to_a_model_made_for_them_where_its_form_is_served(
    vendor: str, listed: str, model: str
) -> None:
    assert choose_job_model(vendor, Purpose.NEXT_EDIT, facts(listed)) == model
    assert choose_chat_model(vendor, facts(f"zeta-2 {listed} x")) != "zeta-2"


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
