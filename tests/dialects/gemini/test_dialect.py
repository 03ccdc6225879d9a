"""Gemini's dialect: addresses, headers, refusals; agents against a strict server."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, ImagePart, Message, Role
from byok.core.errors import ContextLengthExceeded, RefusalKind
from byok.dialects.base import ErrorResponse, Target
from byok.dialects.gemini.dialect import MODELS_PATH, Gemini
from byok.dialects.presets import PRESETS
from byok.dialects.registry import DIALECTS


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


def test_gemini_preset_speaks_it_first_and_the_compatible_api_as_well() -> None:
    preset = PRESETS["gemini"]
    assert preset.dialect == Gemini.name
    assert [*preset.addresses] == ["gemini", "openai_chat"]
    dialect = DIALECTS["gemini"]("gemini")
    assert dialect == Gemini()
    assert dialect.url(preset.base_url, dialect.models_path()) == (
        f"https://generativelanguage.googleapis.com/v1beta/{MODELS_PATH}"
    )


def test_gemini_pictures_that_are_left_out_are_told() -> None:
    gif = ImagePart("image/gif", "aGk=")
    chat = ChatRequest((Message(Role.USER, (gif,)),))
    assert len(Gemini().encode(chat, Target("m")).notices) == 1
    assert Gemini().read_models({}).models == ()


def refusal(error: dict[str, Any], status: int) -> Any:
    return Gemini().refusal(ErrorResponse(status, [{"error": error}]))


def test_gemini_refusals_are_typed() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": "31s"}]  # fmt: skip
    busy = {"code": 429, "message": "Resource exhausted.", "details": details}
    error = refusal(busy, 429)
    assert (error.kind, error.retry_after) == (RefusalKind.RATE_LIMIT, 31.0)
    long = "The input token count (9) exceeds the maximum number of tokens allowed (7)."
    assert isinstance(refusal({"message": long}, 400), ContextLengthExceeded)
    wrong = "API key not valid. Please pass a valid API key."
    assert refusal({"message": wrong}, 400).kind is RefusalKind.AUTH
