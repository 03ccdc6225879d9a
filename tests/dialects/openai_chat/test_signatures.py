"""What stands for a signature that nobody knows, and who wants it."""

import pytest

from byok.dialects.openai_chat.signatures import with_bypass_signature


@pytest.mark.parametrize(
    "model",
    ["gemini-3-pro-preview", "models/gemini-3.6-flash", "Gemini-Flash-Latest",
     "gemini-10-pro"],
)  # fmt: skip
def test_signature_check_of_gemini_3_and_later_is_bypassed(model: str) -> None:
    extra = with_bypass_signature(model)["extra_content"]
    assert extra == {
        "google": {"thought_signature": "skip_thought_signature_validator"}
    }


@pytest.mark.parametrize(
    "model", ["gemini-2.5-pro", "gemini-1.5-flash", "gemini-2-flash", "gemma-4", ""]
)
def test_signature_bypass_is_sent_to_no_other_model(model: str) -> None:
    assert with_bypass_signature(model) == {}
