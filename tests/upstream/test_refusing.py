"""Upstreams that refuse: they say what to do."""

import pytest

from byok.core.chat import ChatRequest
from byok.core.errors import BadRequest
from byok.upstream.demo import unconfigured_upstream, upstream_without_models
from tests.fakes.scripted import events_of


@pytest.mark.parametrize("name", ["x" * 33, "sk-Secret", "a b", ""])
def test_unconfigured_upstream_hides_an_invalid_name(name: str) -> None:
    assert unconfigured_upstream(name).name == "unknown"


@pytest.mark.parametrize(
    ("vendor", "cure"), [("ollama", "ollama pull"), ("vllm", "[upstreams.box]")]
)
async def test_a_server_without_models_gets_no_invented_one(
    vendor: str, cure: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        await events_of(upstream_without_models("box", vendor), ChatRequest(()))
    assert cure in caught.value.hint
