"""Gemini's list of models."""

from byok.dialects.base import ModelPage
from byok.dialects.gemini.dialect import MODELS_PATH, read_models
from byok.dialects.model_facts import ModelFacts


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
