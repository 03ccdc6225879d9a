"""What stands for a signature that nobody knows, and who wants it."""

import pytest

from byok.dialects.openai_chat.signatures import (
    bypass_details,
    bypass_signature,
    wants_signatures,
)

SKIPPED = "skip_thought_signature_validator"


@pytest.mark.parametrize(
    "model",
    ["gemini-3-pro-preview", "models/gemini-3.6-flash", "Gemini-Flash-Latest",
     "gemini-10-pro", "google/gemini-3-pro"],
)  # fmt: skip
def test_signature_check_of_gemini_3_and_later_is_bypassed(model: str) -> None:
    assert wants_signatures(model)


@pytest.mark.parametrize(
    "model", ["gemini-2.5-pro", "gemini-1.5-flash", "gemini-2-flash", "gemma-4", ""]
)
def test_signature_bypass_is_sent_to_no_other_model(model: str) -> None:
    assert not wants_signatures(model)


def test_signature_bypass_has_googles_documented_value() -> None:
    google = {"thought_signature": SKIPPED}
    assert bypass_signature() == {"extra_content": {"google": google}}
    (entry,) = bypass_details("c1")
    assert (entry["data"], entry["id"]) == (SKIPPED, "c1")
