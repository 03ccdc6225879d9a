"""What stands for a signature that nobody knows."""

from byok.dialects.openai_chat.reasoning import bypass_details, bypass_signature

SKIPPED = "skip_thought_signature_validator"


def test_signature_bypass_has_googles_documented_value() -> None:
    google = {"thought_signature": SKIPPED}
    assert bypass_signature() == {"extra_content": {"google": google}}
    (entry,) = bypass_details("c1")
    assert (entry["data"], entry["id"]) == (SKIPPED, "c1")
