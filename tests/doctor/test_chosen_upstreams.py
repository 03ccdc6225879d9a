"""Which upstreams are looked at."""

from typing import Any

import pytest

from byok.config import Settings
from byok.doctor import chosen_upstreams
from byok.doctor.chosen_upstreams import choose_upstreams

BOX = {"base_url": "http://127.0.0.1:9/v1"}


def status(name: str, url: str) -> dict[str, Any]:
    return {"upstream": name, "base_url": url}


@pytest.mark.parametrize(
    ("told", "names"),
    [
        (status("box", "http://127.0.0.1:9/v1"), ["box"]),
        (status("demo", ""), ["box"]),
        (status("groq", "https://api.groq.com/openai/v1"), ["groq", "box"]),
        (status("custom", "http://127.0.0.1:8/v1"), ["custom", "box"]),
        (status("gone", "not an address"), ["box"]),
        ({}, ["box"]),
    ],
    ids=str,
)
async def test_the_default_of_the_daemon_comes_first(
    told: dict[str, Any], names: list[str]
) -> None:
    settings = Settings(upstreams={"box": BOX})
    assert [*await choose_upstreams(settings, told)] == names


async def test_the_demo_is_none() -> None:
    settings = Settings(upstreams={"try": {"type": "demo"}})
    assert await choose_upstreams(settings, None) == {}


async def test_without_settings_a_local_server_that_answers_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answering(transports: object, apis: dict[str, object]) -> list[str]:
        assert "openai" not in apis
        return ["vllm", "lmstudio"]

    monkeypatch.setattr(chosen_upstreams, "find_answering", answering)
    assert [*await choose_upstreams(Settings(), None)] == ["vllm"]
    told = status("demo", "")
    assert await choose_upstreams(Settings(), told) == {}  # the daemon has chosen
