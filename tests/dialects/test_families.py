"""Families: what a model takes, judged by its name, whatever its host calls it."""

from typing import Any

import pytest

from byok.dialects.families import FAMILIES, Family, family_facts, family_name
from byok.dialects.model_facts import ModelFacts, Replay

ROWS: list[Family] = [row for rows in FAMILIES.values() for row in rows]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("GPT-5.6-Terra", "gpt-5.6-terra"),
        ("anthropic/claude-opus-5", "claude-opus-5"),
        ("us.anthropic.claude-opus-4-7-v1:0", "claude-opus-4-7-v1:0"),
        ("accounts/fireworks/models/kimi-k2p7-code", "kimi-k2.7-code"),
        ("qwen.qwen3-coder-next", "qwen3-coder-next"),
        ("deepseek.v3.2", "deepseek.v3.2"),
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
