"""The dialect of OpenAI's Chat Completions: path, key, list of models."""

from typing import Any

import pytest

from byok.chat import ChatRequest, Message, Role, TextPart
from byok.dialects.base import Target
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.quirks import DEFAULT, QUIRKS


def test_a_request_is_encoded_for_its_path() -> None:
    chat = ChatRequest((Message(Role.USER, (TextPart("Hi?"),)),))
    request = OpenAIChat().encode(chat, Target("m", DEFAULT))
    assert request.path == "chat/completions"
    assert request.body["model"] == "m"


@pytest.mark.parametrize(
    ("vendor", "headers"),
    [
        ("openai", {"Authorization": "Bearer k"}),
        ("azure", {"api-key": "k"}),
    ],
)
def test_the_key_has_its_header(vendor: str, headers: dict[str, str]) -> None:
    assert OpenAIChat().auth("k", QUIRKS[vendor]) == headers


@pytest.mark.parametrize(
    ("body", "models"),
    [
        pytest.param({"data": [{"id": "a"}, {"id": "b"}]}, ["a", "b"], id="OpenAI"),
        pytest.param([{"id": "a"}], ["a"], id="a bare array"),
        pytest.param(
            {"data": [{"id": ""}, {"id": 7}, {}, "x", None, {"id": "a"}]},
            ["a"],
            id="odd rows",
        ),
        pytest.param({"data": None}, [], id="null"),
        pytest.param({"data": {"id": "a"}}, [], id="no list"),
        pytest.param({}, [], id="nothing"),
        pytest.param(None, [], id="no object"),
        pytest.param("a", [], id="a text"),
    ],
)
def test_a_list_of_models_is_read(body: Any, models: list[str]) -> None:
    assert OpenAIChat().models(body) == models
