"""Ollama's errors: `{"error": "text"}`, where the text may be another error body.

It runs llama.cpp's server for its models, and passes the errors of that one on as text.
"""

import contextlib
from typing import Any

from byok.dialects.error_bodies import refusal_of
from byok.errors import UpstreamRefused
from byok.wire.json_body import parse_json


def read_refusal(
    body: Any, status: int = 0, retry_after: float | None = None
) -> UpstreamRefused:
    """Decode an error body; `status` 0 means that it came inside a stream."""
    text = body.get("error") if isinstance(body, dict) else None
    if isinstance(text, str) and text.lstrip().startswith("{"):
        # It may also be a text that only looks like one.
        with contextlib.suppress(ValueError, RecursionError):
            body = parse_json(text.encode("utf-8", "replace"))
    return refusal_of(body, status, retry_after)
