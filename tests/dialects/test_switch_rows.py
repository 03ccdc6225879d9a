"""Refusals that lead to another dialect of the same upstream."""

import pytest

from byok.dialects.error_bodies import refusal_of
from byok.dialects.remedies import (
    CHAT_REFUSED,
    RESPONSES_REFUSED,
    RefusedRequest,
    Remedy,
    find_remedy,
    missing_path_row,
    switch_row,
)

CHAT_ROWS = {"dialect": switch_row(CHAT_REFUSED)}
RESPONSES_ROWS = {
    "dialect": switch_row(RESPONSES_REFUSED),
    "path": missing_path_row("openai_chat"),
}
TO_RESPONSES = (
    "Function tools with reasoning_effort are not supported for gpt-5.6 in "
    "/v1/chat/completions. To use function tools, use /v1/responses or set "
    "reasoning_effort to 'none'.",
    "This model is only supported in v1/responses and not in v1/chat/completions.",
    "This is not a chat model and thus not supported in the v1/chat/completions "
    "endpoint. Did you mean to use v1/completions?",
    'model "gpt-5.3-codex" is not accessible via the /chat/completions endpoint',
    "The chatCompletion operation does not work with the specified model, gpt-5-codex.",
)


@pytest.mark.parametrize("message", TO_RESPONSES)
def test_models_that_chat_completions_refuses_are_asked_by_responses(
    message: str,
) -> None:
    error = refusal_of({"error": {"message": message}}, 400)
    refused = RefusedRequest({}, error, dialects=("anthropic", "openai_responses"))
    assert find_remedy(CHAT_ROWS, refused) == Remedy("dialect", "openai_responses")
    alone = RefusedRequest({}, error, dialects=("anthropic",))
    assert find_remedy(CHAT_ROWS, alone) is None


@pytest.mark.parametrize(
    ("status", "message", "change"),
    [
        (400, "gpt-audio is not supported with the Responses API.", "dialect"),
        (404, "This model is only supported in v1/chat/completions.", "dialect"),
        (404, "Not Found", "path"),
        (404, "404 page not found", "path"),
        (405, "Method Not Allowed", "path"),
        (501, "File not found", "path"),
        (404, "The model `gpt-9` does not exist or you do not have access", ""),
        (404, "Rate limit reached", ""),
        (400, "Not Found", ""),
    ],
)
def test_servers_without_responses_are_asked_by_chat_completions(
    status: int, message: str, change: str
) -> None:
    error = refusal_of({"error": {"message": message}}, status)
    remedy = find_remedy(
        RESPONSES_ROWS, RefusedRequest({}, error, dialects=("openai_chat",))
    )
    assert (remedy.change if remedy else "") == change
    assert find_remedy(RESPONSES_ROWS, RefusedRequest({}, error)) is None
