"""Checked access to fields: what is absent, what is read, what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from byok.core.chat import ImagePart, TextPart, ToolChoice, ToolUse
from byok.core.errors import (
    MODEL_NOT_FOUND,
    BadRequest,
    ByokError,
    ContextLengthExceeded,
    NotAllowed,
    NotReady,
    RefusalKind,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.protocols.v1 import fields
from byok.protocols.v1.fields import (
    anthropic_error,
    openai_error,
    read_data_url,
    read_file_url,
    read_image,
    response_error,
    status_of,
)
from byok.protocols.v1.turns import MAX_TOOLS, ToolList

READ: list[tuple[Callable[[Any, str], Any], Any, Any, list[Any]]] = [
    (fields.text, "", "x", [1, [], {}, True]),
    (fields.number, None, 0.5, ["1", True, float("inf"), float("nan"), 10**400]),
    (fields.count, None, 7, [0, -1, 1.5, "7", True]),
    (fields.flag, None, True, [1, "true", []]),
    (fields.mapping, {}, {"a": 1}, [[], "x", 1]),
    (fields.objects, [], [{"a": 1}], [{}, [1], "x"]),
]


@pytest.mark.parametrize(("read", "absent", "good", "bad"), READ)
def test_fields_are_read_or_refused(
    read: Callable[[Any, str], Any], absent: Any, good: Any, bad: list[Any]
) -> None:
    assert read({}, "f") == read({"f": None}, "f") == absent
    assert read({"f": good}, "f") == good
    for value in bad:
        with pytest.raises(BadRequest, match="f must be"):
            read({"f": value}, "f")


def test_fields_strings_may_be_one_or_many() -> None:
    assert fields.strings({}, "f") == ()
    assert fields.strings({"f": "x"}, "f") == ("x",)
    assert fields.strings({"f": ["x", "", "y"]}, "f") == ("x", "y")
    wrong: list[Any] = [1, {}, ["x", 1]]
    for value in wrong:
        with pytest.raises(BadRequest):
            fields.strings({"f": value}, "f")


# Pictures in bodies: only those that come with them


PNG = "iVBORw0KGgo="


@pytest.mark.parametrize(
    "head", ["data:image/jpeg;base64,", "data:image/png;charset=x;base64,"]
)
def test_images_data_url_is_read(head: str) -> None:
    assert read_data_url(head + PNG) == ImagePart("image/png", PNG)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://example.com/a.png", "fetches no pictures"),
        ("file:///etc/passwd", "fetches no pictures"),
        ("data:text/html;base64,aaaa", "must be image"),
        ("data:image/png,aaaa", "a data URL must be"),
        ("data:image/png;base64,a", "in base64"),
        ("data:image/png;base64,a\nb=", "in base64"),
    ],
)
def test_images_others_are_refused(url: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        read_data_url(url)


def test_images_media_type_must_be_that_of_an_image() -> None:
    with pytest.raises(BadRequest, match="media type"):
        read_image("application/pdf", PNG)


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("data:text/plain;base64,w6Q=", TextPart("\na.x\nä\n")),
        ("data:application/json;charset=utf-8;base64,e30=", TextPart("\na.x\n{}\n")),
        ("data:application/javascript;base64,MQ==", TextPart("\na.x\n1\n")),
        ("data:image/svg+xml;base64,PHN2Zy8+", TextPart("\na.x\n<svg/>\n")),
        (f"data:image/png;base64,{PNG}", ImagePart("image/png", PNG)),
    ],
)
def test_files_are_texts_or_pictures(url: str, part: object) -> None:
    assert read_file_url(url, "a.x") == part


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("data:application/pdf;base64,aaaa", "application/pdf"),
        ("data:text/plain;base64,_w==", "UTF-8"),
        ("data:text/plain;base64,/w==", "UTF-8"),
        ("https://example.com/a.txt", "fetches no files"),
    ],
)
def test_files_others_are_refused(url: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        read_file_url(url, "")


# Tools of clients: definitions, free-form ones, choices


def test_tools_without_a_name_or_too_many_are_refused() -> None:
    tools = ToolList()
    with pytest.raises(BadRequest, match="name of a tool"):
        tools.add("", "", {})
    for number in range(MAX_TOOLS):
        tools.add(str(number), "", {})
    with pytest.raises(BadRequest, match="2000"):
        tools.add("one more", "", {})


@pytest.mark.parametrize(
    "form",
    [
        {"type": "grammar", "syntax": "lark", "definition": "start: X"},
        {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}},
    ],
)
def test_tools_of_free_form_are_functions_of_one_text(form: object) -> None:
    tools = ToolList()
    tools.add_freeform({"name": "patch", "description": "Patch.", "format": form})
    tools.add_freeform({"name": "plain", "format": {"type": "text"}})
    patch, plain = tools.definitions
    assert patch.description.startswith("Patch.\n\nThe input is a text of this lark")
    assert patch.description.endswith("start: X")
    assert patch.parameters["required"] == ["input"]
    assert plain.description == ""
    assert tools.freeform == {"patch", "plain"}


def test_tools_choice_is_among_them() -> None:
    tools = ToolList()
    assert tools.choose(ToolUse.REQUIRED) == ToolChoice()
    tools.add("a", "", {})
    tools.add("b", "", {})
    assert tools.choose(ToolUse.REQUIRED, "a") == ToolChoice(ToolUse.REQUIRED, "a")
    tools.keep_only(["b"])
    with pytest.raises(BadRequest, match="cannot pass on"):
        tools.choose(ToolUse.REQUIRED, "a")


# Errors in the shapes of both APIs, with their status


INVALID, AUTH = "invalid_request_error", "authentication_error"


def refused(status: int, code: str = "") -> UpstreamRefused:
    return UpstreamRefused("No.", upstream_status=status, upstream_code=code)


@pytest.mark.parametrize(
    ("error", "status", "kind", "code", "anthropic"),
    [
        (NotAllowed("x", status=401), 401, AUTH, "not_allowed", AUTH),
        (
            BadRequest("x", code=MODEL_NOT_FOUND, status=404),
            404,
            INVALID,
            "model_not_found",
            "not_found_error",
        ),
        (
            BadRequest("x", status=413),
            413,
            INVALID,
            "bad_request",
            "request_too_large",
        ),
        (NotReady("x"), 503, "server_error", "not_ready", "overloaded_error"),
        (refused(400, "bad_value"), 400, INVALID, "bad_value", INVALID),
        (refused(401), 401, AUTH, "upstream_refused", AUTH),
        (
            refused(429, "slow_down"),
            429,
            "rate_limit_error",
            "slow_down",
            "rate_limit_error",
        ),
        (refused(529), 529, "api_error", "upstream_refused", "overloaded_error"),
        (refused(0), 422, "api_error", "upstream_refused", "api_error"),
        (UpstreamGarbled("x"), 422, "api_error", "upstream_garbled", "api_error"),
        (UpstreamTimeout("x"), 504, "api_error", "upstream_timeout", "api_error"),
        (ByokError("x"), 500, "api_error", "internal", "api_error"),
    ],
)
def test_errors_have_a_status_a_type_and_a_code(
    error: ByokError, status: int, kind: str, code: str, anthropic: str
) -> None:
    assert status_of(error) == status
    shape = openai_error(error)["error"]
    assert (shape["type"], shape["code"], shape["param"]) == (kind, code, None)
    assert anthropic_error(error)["error"]["type"] == anthropic


def test_errors_have_the_message_and_the_hint() -> None:
    error = ByokError("It broke.", hint="Mend it.")
    assert openai_error(error)["error"]["message"] == "It broke. Mend it."
    assert anthropic_error(error, "id") == {
        "type": "error",
        "error": {"type": "api_error", "message": "It broke. Mend it."},
        "request_id": "id",
    }


@pytest.mark.parametrize("status", [0, 400, 413, 500])
def test_errors_of_a_long_prompt_are_those_after_which_clients_shorten_it(
    status: int,
) -> None:
    long = ContextLengthExceeded("x", upstream_status=status, upstream_code="y")
    assert status_of(long) == 400
    shape = openai_error(long)["error"]
    assert (shape["type"], shape["code"]) == (INVALID, "context_length_exceeded")
    said = anthropic_error(long)["error"]
    assert said["type"] == INVALID
    assert "prompt is too long" in said["message"]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (RefusalKind.QUOTA, "insufficient_quota"),
        (RefusalKind.RATE_LIMIT, "rate_limit_exceeded"),
    ],
)
def test_errors_have_the_codes_on_which_clients_act(
    kind: RefusalKind, code: str
) -> None:
    error = UpstreamRefused("x", kind=kind, upstream_code="its own")
    assert openai_error(error)["error"]["code"] == code


def test_errors_inside_a_stream_have_the_code_that_clients_act_on() -> None:
    busy = UpstreamRefused("x", kind=RefusalKind.OVERLOADED)
    assert anthropic_error(busy)["error"]["type"] == "overloaded_error"
    assert response_error(busy)["code"] == "server_is_overloaded"
    long = ContextLengthExceeded("x")
    assert response_error(long)["code"] == "context_length_exceeded"
    assert response_error(refused(0))["code"] == "server_error"
    assert response_error(ByokError("x"))["code"] == "server_error"
