"""Gemini's dialect: addresses, headers, refusals; agents against a strict server."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, ImagePart, Message, Role
from byok.dialects.base import ErrorResponse, ModelPage, Target
from byok.dialects.gemini.dialect import MODELS_PATH, Gemini, read_models
from byok.dialects.model_facts import ModelFacts


@pytest.mark.parametrize(
    ("key", "headers"),
    [
        ("", {}),
        ("AIza-1", {"x-goog-api-key": "AIza-1"}),
        ("ya29.a-token", {"Authorization": "Bearer ya29.a-token"}),
    ],
)
def test_gemini_key_is_in_its_header(key: str, headers: dict[str, str]) -> None:
    sent = dict(Gemini().headers(key))
    assert sent.pop("Accept")
    assert sent == headers


def test_gemini_pictures_that_are_left_out_are_told() -> None:
    gif = ImagePart("image/gif", "aGk=")
    chat = ChatRequest((Message(Role.USER, (gif,)),))
    assert len(Gemini().encode(chat, Target("m")).notices) == 1
    assert Gemini().read_models({}).models == ()


def refusal(error: dict[str, Any], status: int) -> Any:
    return Gemini().refusal(ErrorResponse(status, [{"error": error}]))


# Gemini's list of models


def test_gemini_models_have_their_limits_and_the_next_page() -> None:
    page = {
        "models": [
            {
                "name": "models/gemini-3-pro",
                "inputTokenLimit": 1_048_576,
                "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
                "thinking": True,
            },
            {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
            {"name": "models/gemma", "inputTokenLimit": "?"},
            {"name": "models/"},
            {"name": 7},
            7,
        ],
        "nextPageToken": "a/b=",
    }
    assert read_models(page) == ModelPage(
        (
            ModelFacts("gemini-3-pro", 1_048_576, 65_536, thinking=True),
            ModelFacts("gemma"),
        ),
        f"{MODELS_PATH}&pageToken=a%2Fb%3D",
    )
