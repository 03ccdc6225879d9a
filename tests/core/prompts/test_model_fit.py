"""Which variants of prompts suit a model."""

import pytest

from byok.core.prompts.prompt_set import (
    FitMemory,
    ModelFit,
    find_fit,
    has_few_parameters,
)


@pytest.mark.parametrize(
    "model",
    ["qwen3:8b", "llama3.2:1b", "gemma3n:e4b", "SmolLM2-135M-Instruct", "phi-4-3.8b",
     "meta-llama/Llama-3.1-8B-Instruct", "glm-4-9b-chat-1m",
     "qwen2.5-coder:7b-instruct-q4_K_M"],
)  # fmt: skip
def test_a_model_of_few_parameters_is_small(model: str) -> None:
    assert has_few_parameters(model)


@pytest.mark.parametrize(
    "model",
    ["gpt-5", "claude-opus-4-5", "qwen3-30b-a3b", "mixtral-8x7b", "llama3.3:70b",
     "gemini-3-pro", "deepseek-chat", "kimi-k2", "glm-4.6", "gpt-4.1-mini", "m1", "",
     "claude-opus-4.6-1m", "claude-sonnet-4-5[1m]", "llama-4-scout-10m"],
)  # fmt: skip
def test_other_models_are_not(model: str) -> None:
    assert not has_few_parameters(model)


@pytest.mark.parametrize(
    ("model", "family", "thinks", "window", "variants"),
    [
        ("gpt-4.1", "", False, 0, ()),
        ("gpt-5", "gpt", True, 400_000, ("gpt", "reasoning")),
        ("qwen3:8b", "qwen", True, 40_960, ("small", "qwen")),
        ("qwen3:8b", "", False, 4096, ("short", "small")),
        ("gpt-4.1", "strange", False, 8192, ()),
        ("o9", "", True, 8191, ("short", "reasoning")),
    ],
)
def test_the_variants_of_a_model_come_best_first(
    model: str, family: str, thinks: bool, window: int, variants: tuple[str, ...]
) -> None:
    fit = find_fit(model, family=family, thinks=thinks, window=window)
    assert fit == (variants, window)
    assert fit.is_small is bool({"small", "short"} & {*variants})


def test_a_conversation_keeps_what_suited_its_first_turn() -> None:
    memory = FitMemory()
    known = [ModelFit(("reasoning",), 9000), ModelFit()]
    assert memory.recall("c", "m", known.pop) == ModelFit()
    assert memory.recall("c", "m", known.pop) == ModelFit()
    assert memory.recall("c", "another", known.pop) == ModelFit(("reasoning",), 9000)
