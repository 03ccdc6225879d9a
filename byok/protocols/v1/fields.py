"""Strict access to the fields of a body, and errors in the forms of both vendors.

A field that is missing or null counts as absent. A field of a wrong type is a
BadRequest that names it. (Bodies of editors are read tolerantly:
`protocols/augment/body.py`.)
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from byok.core.chat import ImagePart, Json, JsonAnswer, TextPart
from byok.core.errors import (
    BadRequest,
    ByokError,
    ConfigError,
    ContextLengthExceeded,
    NotAllowed,
    NotReady,
    RefusalKind,
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.core.wire.attachments import check_image, is_text

_T = TypeVar("_T")
_MAX_NUMBER = 2**53  # larger ones are not exact
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[^;,]+)*;base64,", re.ASCII)
_OVERLOADED = 529  # a status of Anthropic's API
_INVALID = "invalid_request_error"
_TOO_LONG = "prompt is too long"  # in Anthropic's message
# Types of errors by status, in each API's reference.
_OPENAI_TYPES = {
    400: _INVALID,
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: _INVALID,
    413: _INVALID,
    422: _INVALID,
    429: "rate_limit_error",
}
_ANTHROPIC_TYPES = {
    **_OPENAI_TYPES,
    402: "billing_error",
    404: "not_found_error",
    413: "request_too_large",
    _OVERLOADED: "overloaded_error",
}
# Codes of errors that clients act on: in OpenAI's APIs, and of failed responses.
_OPENAI_CODES = {
    RefusalKind.CONTEXT_LENGTH: "context_length_exceeded",
    RefusalKind.QUOTA: "insufficient_quota",
    RefusalKind.RATE_LIMIT: "rate_limit_exceeded",
}
_RESPONSE_CODES = {
    **_OPENAI_CODES,
    RefusalKind.OVERLOADED: "server_is_overloaded",
    RefusalKind.CONTENT_FILTER: "invalid_prompt",
}


def wrong_field(name: str, expected: str) -> BadRequest:
    """Return the error for a field with a wrong value."""
    return BadRequest(f"{name} must be {expected}.", code="bad_field")


def feature_refusal(message: str, hint: str = "") -> BadRequest:
    """Return the error for something that byok does not translate."""
    return BadRequest(f"{message}.", code="not_supported", hint=hint)


def refuse_fields(body: Json, names: Iterable[str]) -> None:
    """Check that a body has none of these fields, which byok does not translate.

    Raises:
        BadRequest: it has one of them.
    """
    for name in names:
        if body.get(name):
            raise feature_refusal(f"byok does not translate {name}")


def text(body: Json, name: str) -> str:
    """Return a string, "" if it is absent."""
    return _field(body, name, str, "a string") or ""


def number(body: Json, name: str) -> float | None:
    """Return a number of at most 2**53, None if it is absent."""
    value = _field(body, name, (int, float), "a number")
    if value is None:
        return None
    # The comparison is false for NaN.
    if isinstance(value, bool) or not abs(value) <= _MAX_NUMBER:
        raise wrong_field(name, "a number")
    return float(value)


def count(body: Json, name: str) -> int | None:
    """Return a whole number above 0, None if it is absent."""
    value = number(body, name)
    if value is None:
        return None
    if value < 1 or value != int(value):
        raise wrong_field(name, "a whole number above 0")
    return int(value)


def flag(body: Json, name: str) -> bool | None:
    """Return true or false, None if it is absent."""
    value: bool | None = _field(body, name, bool, "true or false")
    return value


def mapping(body: Json, name: str) -> dict[str, Any]:
    """Return an object, {} if it is absent."""
    return _field(body, name, dict, "an object") or {}


def objects(body: Json, name: str) -> list[dict[str, Any]]:
    """Return an array of objects, [] if it is absent."""
    expected = "an array of objects"
    return _array_of(dict, _field(body, name, list, expected) or [], name, expected)


def strings(body: Json, name: str) -> tuple[str, ...]:
    """Return a string or an array of them, without empty ones."""
    expected = "a string or an array of strings"
    value = _field(body, name, (str, list), expected) or []
    items = [value] if isinstance(value, str) else value
    return tuple(filter(None, _array_of(str, items, name, expected)))


def _field(body: Json, name: str, kind: Any, expected: str) -> Any:
    """Return a field of this type, None if it is absent."""
    value = body.get(name)
    if value is None or isinstance(value, kind):
        return value
    raise wrong_field(name, expected)


def _array_of(kind: type[_T], items: list[Any], name: str, expected: str) -> list[_T]:
    if not all(isinstance(item, kind) for item in items):
        raise wrong_field(name, expected)
    return items


def read_format(form: Json) -> JsonAnswer | None:
    """Read `response_format`, or `text.format` of Responses."""
    match text(form, "type"):
        case "" | "text":
            return None
        case "json_object":
            return JsonAnswer()
        case "json_schema":
            inner = mapping(form, "json_schema") or form
            schema = mapping(inner, "schema")
            return JsonAnswer(schema, text(inner, "name") or JsonAnswer().name)
        case kind:
            raise feature_refusal(f"byok does not know the format {kind[:60]!r}")


def read_parts(
    body: Json, name: str, read_part: Callable[[Json], TextPart | ImagePart]
) -> list[TextPart | ImagePart]:
    """Read a string, or parts with text and images."""
    content = body.get(name)
    if content is None or isinstance(content, str):
        return [TextPart(content or "")]
    return [read_part(part) for part in objects(body, name)]


def write_source(url: str, title: str) -> dict[str, Any]:
    """Write a source of an answer; the words that it belongs to are unknown."""
    return {"url": url, "title": title or url, "start_index": 0, "end_index": 0}


def read_data_url(url: str) -> ImagePart:
    """Read an image in a data URL.

    Raises:
        BadRequest: it is no picture, or another URL: byok fetches nothing.
    """
    return read_image(*_split_data_url(url, "pictures"))


def read_image(media_type: str, data: str) -> ImagePart:
    """Read an image in base64.

    Raises:
        BadRequest: it is not a valid image.
    """
    if not media_type.startswith("image/"):
        raise wrong_field("the media type of a picture", "image/*")
    if (image := check_image(data, media_type)) is None:
        raise wrong_field("the data of a picture", "in base64")
    return image


def read_file_url(url: str, title: str) -> TextPart | ImagePart:
    """Read a file in a data URL.

    Raises:
        BadRequest: as in `read_file`, or it is another URL.
    """
    return read_file(*_split_data_url(url, "files"), title)


def read_file(media_type: str, data: str, title: str) -> TextPart | ImagePart:
    """Read a file in base64: a text, below its title, or a picture.

    Raises:
        BadRequest: it is neither.
    """
    if not is_text(media_type.lower()):
        if media_type.startswith("image/"):
            return read_image(media_type, data)
        kind = media_type[:60]
        raise feature_refusal(f"byok does not translate a file of the type {kind!r}")
    try:
        content = b64decode(data, validate=True).decode()
    except ValueError:
        raise wrong_field("a file of text", "UTF-8 in base64") from None
    return titled_text(title, content)


def titled_text(*texts: str) -> TextPart:
    """Return a text below its titles, on lines of its own."""
    return TextPart("\n".join(["", *filter(None, texts), ""]))


def _split_data_url(url: str, plural: str) -> tuple[str, str]:
    """Return the media type and the data; `plural` names the contents in an error."""
    head = _DATA_URL.match(url[:200])
    if head is not None:
        return head[1], url[head.end() :]
    if url.startswith("data:"):
        raise wrong_field("a data URL", "of a media type, and in base64")
    raise feature_refusal(
        f"byok fetches no {plural}", "Send it as a data URL, with its bytes."
    )


def status_of(error: ByokError) -> int:
    """Return the HTTP status of an error: the upstream's, if it sent one.

    Other temporary failures are a gateway's 502 or 504, so that these clients repeat
    the request; unlike the editor, they give up after a few attempts. A prompt that is
    too long is always a 400: clients recognise it only with this status.
    """
    if isinstance(error, ContextLengthExceeded):
        return 400
    if isinstance(error, UpstreamRefused) and error.upstream_status >= 400:
        return error.upstream_status
    if isinstance(error, UpstreamError) and error.retryable:
        return 504 if isinstance(error, UpstreamTimeout) else 502
    return error.status


def openai_error(error: ByokError) -> dict[str, Any]:
    """Write an error as OpenAI's APIs do.

    Its `code` is OpenAI's if clients act on it, else the upstream's, else byok's.
    """
    code = ""
    if isinstance(error, UpstreamRefused):
        code = _OPENAI_CODES.get(error.kind, error.upstream_code)
    return {
        "error": {
            "message": error.sentence,
            "type": _error_type(error, _OPENAI_TYPES),
            "param": None,
            "code": code or error.code,
        }
    }


def anthropic_error(error: ByokError, request_id: str = "") -> dict[str, Any]:
    """Write an error as Anthropic's API does.

    Clients recognise by the message that a prompt is too long, and shorten it.
    """
    kind, message = _error_type(error, _ANTHROPIC_TYPES), error.sentence
    if isinstance(error, UpstreamRefused) and error.kind is RefusalKind.OVERLOADED:
        kind = "overloaded_error"
    if isinstance(error, ContextLengthExceeded) and _TOO_LONG not in message:
        message = f"{_TOO_LONG}: {message}"
    return {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": request_id or None,
    }


def response_error(error: ByokError) -> dict[str, str]:
    """Write the error of a failed response, with the codes that clients act on."""
    code = "server_error"
    if isinstance(error, UpstreamRefused):
        code = _RESPONSE_CODES.get(error.kind, code)
    return {"code": code, "message": error.sentence}


def _error_type(error: ByokError, types: dict[int, str]) -> str:
    match error:
        case NotAllowed():
            return "authentication_error"
        case ContextLengthExceeded():
            return _INVALID
        case BadRequest() | ConfigError():
            return types.get(error.status, _INVALID)
        case NotReady():
            return "server_error" if types is _OPENAI_TYPES else "overloaded_error"
        case UpstreamRefused():
            return types.get(error.upstream_status, "api_error")
        case _:
            return "api_error"
