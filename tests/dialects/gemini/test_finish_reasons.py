"""The reasons for which Gemini ends an answer, and their sentences."""

from byok.dialects.gemini.answer import (
    FINISHED,
    failure_of,
    filter_sentence,
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
