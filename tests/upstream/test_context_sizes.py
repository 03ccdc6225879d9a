"""The window that a model is loaded with: large enough, seldom changed, in memory."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, ToolDefinition
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import ModelFacts
from byok.upstream.remedies import ContextSizes
from tests.fakes.histories import user

K = 1024
TOOLS = (ToolDefinition("view", "", {"type": "object"}),)
PER_TOKEN = 131_072  # bytes; a model of 8 billion parameters


def facts(window: int = 128 * K, memory: int = PER_TOKEN, **more: Any) -> ModelFacts:
    return ModelFacts("m", window=window, token_memory=memory, **more)


def chat(size: int = 0, *, tools: bool = False, **fields: Any) -> ChatRequest:
    return ChatRequest((user("x" * size),), TOOLS if tools else (), **fields)


def too_long(text: str = "the input length exceeds the context length") -> Any:
    return refusal_of({"error": text}, 400)


NO_MEMORY = refusal_of({"error": "model requires more system memory (9 GiB)"}, 500)


@pytest.mark.parametrize(
    ("known", "limit"),
    [
        (facts(), 64 * K),  # 8 GiB
        (facts(window=40_960), 40_960),
        (facts(memory=PER_TOKEN // 8), 128 * K),
        (facts(memory=8 * PER_TOKEN), 16 * K),  # more than 8 GiB, but usable
        (facts(memory=0), 128 * K),
        (facts(loaded_window=96 * K), 96 * K),  # it fits already
        (facts(window=0), 0),
    ],
)
def test_the_limit_is_the_models_length_within_a_memory_budget(
    known: ModelFacts, limit: int
) -> None:
    assert ContextSizes().limit(known) == limit


def test_the_users_size_is_used_for_everything() -> None:
    sizes = ContextSizes(12_000)
    assert sizes.limit(facts()) == 12_000
    assert sizes.limit(facts(window=0)) == 12_000
    assert (
        sizes.choose(chat(500_000, tools=True), facts(loaded_window=64 * K)) == 12_000
    )
    assert sizes.choose(chat(), facts(window=8 * K)) == 8 * K
    error = too_long()
    assert not sizes.follow(facts(), 12_000, error)
    assert error.window == 12_000
    assert not sizes.follow(facts(), 12_000, NO_MEMORY)


def test_a_size_grows_in_large_steps_and_never_shrinks() -> None:
    sizes = ContextSizes()
    grown = [
        sizes.choose(chat(weight, tools=True), facts())
        for weight in (0, 60_000, 100_000, 0, 900_000, 5)
    ]
    assert grown == [32 * K, 32 * K, 64 * K, 64 * K, 64 * K, 64 * K]
    assert sizes.choose(chat(), facts()) == 64 * K


def test_a_loaded_window_is_kept_where_it_is_large_enough() -> None:
    loaded = facts(loaded_window=40_000)
    assert ContextSizes().choose(chat(tools=True), loaded) == 40_000
    small = facts(loaded_window=5 * K)
    assert ContextSizes().choose(chat(), small) == 5 * K
    assert ContextSizes().choose(chat(tools=True), small) == 32 * K
    assert ContextSizes().choose(chat(30_000), small) == 16 * K


def test_a_model_that_runs_elsewhere_keeps_its_own_window() -> None:
    sizes, cloud = ContextSizes(), facts(memory=0)
    assert sizes.choose(chat(tools=True), cloud) == 0
    assert sizes.follow(cloud, 0, too_long()), "unless that was too small"
    assert sizes.choose(chat(tools=True), cloud) == 32 * K


def test_a_model_of_which_nothing_is_known_gets_64k_at_most() -> None:
    sizes = ContextSizes()
    assert sizes.choose(chat(900_000, tools=True), ModelFacts("m")) == 64 * K
    error = too_long()
    assert not sizes.follow(ModelFacts("m"), 64 * K, error)
    assert error.window is None, "the server may have lowered it"
