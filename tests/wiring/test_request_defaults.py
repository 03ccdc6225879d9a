"""The defaults of requests: the settings, and the prompts that suit the model."""

from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.protocols.augment.reply_job import Defaults
from byok.settings import Settings
from byok.settings.keys import KeyLadder
from byok.upstream.base import Destination
from byok.wiring.services import open_services

FACTS = {"of-a-small-window": {"window": 4096}, "a-family": {"family": "glm"}}
BOX = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "facts": FACTS}


async def defaults_of(model: str, **chat: Any) -> Defaults:
    settings = Settings.model_validate({"upstreams": {"box": BOX}, "chat": chat})
    ladder = KeyLadder(environ={})
    async with open_services(settings, find_paths(), ladder=ladder) as services:
        asked = Destination(services.upstreams["box"], model)
        return services.defaults("/chat", asked, "c")


@pytest.mark.parametrize(
    ("model", "variants"),
    [
        ("of-a-small-window", ("short",)),
        ("a-family", ("glm",)),
        ("qwen3:8b", ("small", "qwen")),
        ("google/gemini-3-pro", ("gemini", "reasoning")),
        ("anthropic/claude-3-5-haiku", ("claude",)),
        ("anything", ()),
    ],
)
async def test_prompts_suit_the_model(model: str, variants: tuple[str, ...]) -> None:
    assert (await defaults_of(model)).fit.variants == variants


@pytest.mark.parametrize(
    ("model", "wanted", "compact"),
    [("qwen3:8b", True, True), ("qwen3:8b", False, False), ("gpt-5", True, False)],
)
async def test_tools_are_described_briefly_to_small_models_on_request(
    model: str, wanted: bool, compact: bool
) -> None:
    found = await defaults_of(model, compact_tools=wanted)
    assert found.compact_tools is compact
