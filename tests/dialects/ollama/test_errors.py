"""Errors of Ollama, and of the server that it runs for its models."""

import json

from byok.dialects.ollama.errors import read_refusal
from byok.errors import ContextLengthExceeded, RefusalKind


def test_an_error_inside_the_text_is_read() -> None:
    inner = {
        "code": 400,
        "message": "request (24054 tokens) exceeds the available context size (4096 "
        "tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 24_054,
        "n_ctx": 4096,
    }
    error = read_refusal({"error": json.dumps({"error": inner})}, 400)
    assert isinstance(error, ContextLengthExceeded)
    assert (error.window, error.counted) == (4096, 24_054)
    assert '"' not in error.message


def test_a_picture_that_a_model_cannot_see_is_known() -> None:
    words = "Multimodal data provided, but model does not support multimodal requests."
    inner = {"error": {"code": 400, "message": words, "type": "invalid_request_error"}}
    error = read_refusal({"error": json.dumps(inner)}, 400)
    assert error.kind is RefusalKind.NO_IMAGES


def test_other_errors_stay_as_they_are() -> None:
    for text in ("{not JSON", "plain", ""):
        assert text in read_refusal({"error": text}, 500).message
    assert read_refusal("text", 500).upstream_status == 500
