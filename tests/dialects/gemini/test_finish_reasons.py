"""The reasons for which Gemini ends an answer, and their sentences."""

from byok.dialects.gemini.answer import (
    FINISHED,
    blocked_sentence,
    failure_of,
    filter_sentence,
    unknown_sentence,
)

FILTERS = (
    "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY "
    "IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION IMAGE_OTHER MODEL_ARMOR"
)
FAILURES = (
    "MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS "
    "MISSING_THOUGHT_SIGNATURE MALFORMED_RESPONSE"
)


def test_every_reason_has_its_kind() -> None:
    for reason in FILTERS.split():
        assert f"({reason})" in filter_sentence(reason)
        assert failure_of(reason) is None
    for reason in FAILURES.split():
        error = failure_of(reason)
        assert error is not None
        assert error.message.endswith(f"({reason}).")
        assert filter_sentence(reason) == ""
    for reason in FINISHED:
        assert filter_sentence(reason) == "" and failure_of(reason) is None


def test_sentences_have_the_words_of_the_api() -> None:
    assert "(X). So it is. Say" in blocked_sentence("X", said="So it is.")
    assert "  " not in blocked_sentence("SAFETY")
    assert "(X)" in unknown_sentence("X")
