"""How a response ends: the reason, a failure, or an answer in another protocol."""

from typing import Any

from byok.chat import Json
from byok.dialects.error_bodies import refusal_of
from byok.dialects.openai_responses.items import read_text
from byok.errors import UpstreamGarbled, UpstreamNotJson, UpstreamRefused
from byok.events import FinishReason

_FINISH = {
    "max_output_tokens": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
}
_FAILED = frozenset({"failed", "cancelled"})


def read_response(event: Json) -> dict[str, Any]:
    """Return the response of the last event."""
    response = event.get("response")
    return response if isinstance(response, dict) else {}


def is_failure(response: Json) -> bool:
    """Tell whether a response has failed, whatever its event is called."""
    status = response.get("status")
    has_failed = isinstance(status, str) and status in _FAILED
    return has_failed or bool(response.get("error"))


def failure_of(event: Json) -> UpstreamRefused:
    """Decode a failure: the error is in the response, in the event, or its fields."""
    error = read_response(event).get("error") or event.get("error")
    if not error:
        error = {k: event[k] for k in ("code", "message") if event.get(k)}
    return refusal_of({"error": error} if error else {"message": "it failed."})


def finish_reason(event: Json, *, has_calls: bool) -> FinishReason:
    """Return why the model stopped, from the last event."""
    response = read_response(event)
    details = response.get("incomplete_details")
    why = details.get("reason") if isinstance(details, dict) else None
    is_cut = "incomplete" in (
        response.get("status"),
        read_text(event, "type").removeprefix("response."),
    )
    if why or is_cut:
        return _FINISH.get(str(why), FinishReason.LENGTH)
    return FinishReason.TOOL_CALLS if has_calls else FinishReason.STOP


def check_protocol(document: Json) -> None:
    """Check that an event without a type is not from Chat Completions.

    Raises:
        UpstreamGarbled: it is.
    """
    if "choices" in document:
        raise UpstreamGarbled(
            "it answers in the format of Chat Completions, not of Responses.",
            code="upstream_protocol",
            hint='Set dialect = "openai_chat" for this upstream.',
        )


def raise_error_text(data: bytes, name: str, error: Exception) -> None:
    """Raise the error that is in an event which is not JSON.

    Blank events are none, nor is `[DONE]`: the last event has come before it.

    Raises:
        UpstreamRefused: it is an error event, in words.
        UpstreamNotJson: it is anything else.
    """
    if not data or data == b"[DONE]":
        return
    if name == "error":
        raise refusal_of(data.decode("utf-8", "replace")) from error
    raise UpstreamNotJson("a part of its answer is not JSON.") from error
