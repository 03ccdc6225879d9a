"""Checked access to the fields of a body: absent and null are alike, the rest exact.

What is neither absent nor of its type is a BadRequest that names the field. (Editors'
bodies are read tolerantly: `protocols/augment/body.py`.)
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
_MOST = 2**53  # beyond it a number is no count


def wrong_field(name: str, what: str) -> BadRequest:
    """Return the error for a field that is not what it must be."""
    return BadRequest(f"{name} must be {what}.", code="bad_field")


def feature_refusal(what: str, hint: str = "") -> BadRequest:
    """Return the error for something that byok does not translate."""
    return BadRequest(f"{what}.", code="not_supported", hint=hint)


def refuse_fields(body: Json, names: Iterable[str]) -> None:
    """Check that a body asks for nothing that byok does not translate.

    Raises:
        BadRequest: it has one of these fields.
    """
    for name in names:
        if body.get(name):
            raise feature_refusal(f"byok does not translate {name}")


def text(body: Json, name: str) -> str:
    """Return a string, "" without one."""
    return _field(body, name, str, "a string") or ""


def number(body: Json, name: str) -> float | None:
    """Return a number of at most 2**53, None without one."""
    found = _field(body, name, (int, float), "a number")
    if found is None:
        return None
    # The comparison is false of what is not a number.
    if isinstance(found, bool) or not abs(found) <= _MOST:
        raise wrong_field(name, "a number")
    return float(found)


def count(body: Json, name: str) -> int | None:
    """Return a whole number above 0, None without one."""
    found = number(body, name)
    if found is None:
        return None
    if found < 1 or found != int(found):
        raise wrong_field(name, "a whole number above 0")
    return int(found)


def flag(body: Json, name: str) -> bool | None:
    """Return true or false, None without one."""
    found: bool | None = _field(body, name, bool, "true or false")
    return found


def mapping(body: Json, name: str) -> dict[str, Any]:
    """Return an object, {} without one."""
    return _field(body, name, dict, "an object") or {}


def objects(body: Json, name: str) -> list[dict[str, Any]]:
    """Return an array of objects, [] without one."""
    what = "an array of objects"
    return _array_of(dict, _field(body, name, list, what) or [], name, what)


def strings(body: Json, name: str) -> tuple[str, ...]:
    """Return a string or an array of them, without empty ones."""
    what = "a string or an array of strings"
    found = _field(body, name, (str, list), what) or []
    listed = [found] if isinstance(found, str) else found
    return tuple(filter(None, _array_of(str, listed, name, what)))


def _field(body: Json, name: str, kind: Any, what: str) -> Any:
    """Return a field if it is of this kind, None without one."""
    found = body.get(name)
    if found is None or isinstance(found, kind):
        return found
    raise wrong_field(name, what)


def _array_of(kind: type[_T], found: list[Any], name: str, what: str) -> list[_T]:
    if not all(isinstance(item, kind) for item in found):
        raise wrong_field(name, what)
    return found


# Fields that both protocols of OpenAI share.


def read_format(form: Json) -> JsonAnswer | None:
    """Read `response_format`."""
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
    given = body.get(name)
    if given is None or isinstance(given, str):
        return [TextPart(given or "")]
    return [read_part(part) for part in objects(body, name)]


def write_source(url: str, title: str) -> dict[str, Any]:
    """Write a source of an answer; which words it is for is not known."""
    return {"url": url, "title": title or url, "start_index": 0, "end_index": 0}


# Read images and files in bodies: only those whose bytes come with the request.


_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[^;,]+)*;base64,", re.ASCII)


def read_data_url(url: str) -> ImagePart:
    """Read an image in a data URL.

    Raises:
        BadRequest: it is elsewhere, as byok fetches nothing, or no picture.
    """
    return read_image(*_split_data_url(url, "pictures"))


def read_image(media_type: str, data: str) -> ImagePart:
    """Check an image in base64.

    Raises:
        BadRequest: it is none.
    """
    if not media_type.startswith("image/"):
        raise wrong_field("the media type of a picture", "image/*")
    if (image := check_image(data, media_type)) is None:
        raise wrong_field("the data of a picture", "in base64")
    return image


def read_file_url(url: str, title: str) -> TextPart | ImagePart:
    """Read a file in a data URL.

    Raises:
        BadRequest: as of `read_file`, or it is elsewhere.
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
        said = b64decode(data, validate=True).decode()
    except ValueError:
        raise wrong_field("a file of text", "UTF-8 in base64") from None
    return titled_text(title, said)


def titled_text(*texts: str) -> TextPart:
    """Return a text below its titles, on lines apart from the texts beside it."""
    return TextPart("\n".join(["", *filter(None, texts), ""]))


def _split_data_url(url: str, what: str) -> tuple[str, str]:
    head = _DATA_URL.match(url[:200])
    if head is not None:
        return head[1], url[head.end() :]
    if url.startswith("data:"):
        raise wrong_field("a data URL", "of a media type, and in base64")
    raise feature_refusal(
        f"byok fetches no {what}", "Send it as a data URL, with its bytes."
    )


# Errors in the shapes of OpenAI's and Anthropic's API references.


_OVERLOADED = 529  # of Anthropic's API
_INVALID = "invalid_request_error"
_TOO_LONG = "prompt is too long"  # the words of Anthropic's API


def status_of(error: ByokError) -> int:
    """Return the HTTP status: the upstream's own, where it gave one.

    Other failures that may pass are a gateway's 502 and 504, so that these clients
    repeat the request: unlike the editor's, they give up after a few. That a prompt is
    too long is a 400, whoever noticed it: only there do clients look for that.
    """
    if isinstance(error, ContextLengthExceeded):
        return 400
    if isinstance(error, UpstreamRefused) and error.upstream_status >= 400:
        return error.upstream_status
    if isinstance(error, UpstreamError) and error.retryable:
        return 504 if isinstance(error, UpstreamTimeout) else 502
    return error.status


def openai_error(error: ByokError) -> dict[str, Any]:
    """Write an error; `code` is OpenAI's where clients act on it, else the upstream's.

    Without either it is byok's.
    """
    code = ""
    if isinstance(error, UpstreamRefused):
        code = _CODES.get(error.kind, error.upstream_code)
    return {
        "error": {
            "message": error.sentence,
            "type": _kind(error, _OPENAI),
            "param": None,
            "code": code or error.code,
        }
    }


def anthropic_error(error: ByokError, request_id: str = "") -> dict[str, Any]:
    """Write an error as Anthropic's API does.

    Clients know by its words that a prompt is too long, and shorten it.
    """
    kind, said = _kind(error, _ANTHROPIC), error.sentence
    if isinstance(error, UpstreamRefused) and error.kind is RefusalKind.OVERLOADED:
        kind = "overloaded_error"
    if isinstance(error, ContextLengthExceeded) and _TOO_LONG not in said:
        said = f"{_TOO_LONG}: {said}"
    return {
        "type": "error",
        "error": {"type": kind, "message": said},
        "request_id": request_id or None,
    }


def response_error(error: ByokError) -> dict[str, str]:
    """Write the error of a response that failed; the codes are those clients act on."""
    code = "server_error"
    if isinstance(error, UpstreamRefused):
        code = _FAILED.get(error.kind, code)
    return {"code": code, "message": error.sentence}


def _kind(error: ByokError, kinds: dict[int, str]) -> str:
    match error:
        case NotAllowed():
            return "authentication_error"
        case ContextLengthExceeded():
            return _INVALID
        case BadRequest() | ConfigError():
            return kinds.get(error.status, _INVALID)
        case NotReady():
            return "server_error" if kinds is _OPENAI else "overloaded_error"
        case UpstreamRefused():
            return kinds.get(error.upstream_status, "api_error")
        case _:
            return "api_error"


_OPENAI = {
    400: _INVALID,
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: _INVALID,
    413: _INVALID,
    422: _INVALID,
    429: "rate_limit_error",
}
_ANTHROPIC = {
    **_OPENAI,
    402: "billing_error",
    404: "not_found_error",
    413: "request_too_large",
    _OVERLOADED: "overloaded_error",
}
_CODES = {
    RefusalKind.CONTEXT_LENGTH: "context_length_exceeded",
    RefusalKind.QUOTA: "insufficient_quota",
    RefusalKind.RATE_LIMIT: "rate_limit_exceeded",
}
_FAILED = {
    **_CODES,
    RefusalKind.OVERLOADED: "server_is_overloaded",
    RefusalKind.CONTENT_FILTER: "invalid_prompt",
}
