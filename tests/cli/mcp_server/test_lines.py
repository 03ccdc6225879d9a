"""Lines of JSON-RPC: whole messages, and an error for every bad line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCRequest

from byok.cli.mcp_server.stdio import Lines, decode, encode


@given(st.lists(st.binary(max_size=30)), st.integers(1, 9))
def test_lines_come_out_whole_however_the_bytes_are_cut(
    texts: list[bytes], step: int
) -> None:
    expected = [text.replace(b"\n", b" ") for text in texts]
    data = b"".join(text + b"\n" for text in expected)
    lines = Lines()
    found = [
        line
        for start in range(0, len(data), step)
        for line in lines.feed(data[start : start + step])
    ]
    assert found == expected


@pytest.mark.parametrize("step", [1, 3, 7, 100])
def test_of_a_line_that_is_too_long_only_that_is_told(step: int) -> None:
    data = b"1234\n" + b"x" * 20 + b"\n56\n"
    lines = Lines(max_line=10)
    found = [
        line
        for start in range(0, len(data), step)
        for line in lines.feed(data[start : start + step])
    ]
    assert found == [b"1234", None, b"56"]


def test_mcp_lines_of_a_request_and_a_notification() -> None:
    request, error = decode(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert isinstance(request, JSONRPCRequest)
    assert error is None
    notification, error = decode(b'{"jsonrpc":"2.0","method":"notifications/x"}\r')
    assert isinstance(notification, JSONRPCNotification)
    assert error is None


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (None, -32600, None),
        (b"nonsense", -32700, None),
        (b'{"half', -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"null", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7),
        (b'{"id":"a","method":"ping"}', -32600, "a"),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
    ],
    ids=lambda value: repr(value)[:40],
)
@pytest.mark.case("B82")
def test_a_bad_line_is_answered_with_its_error(
    line: bytes | None, code: int, id: Any
) -> None:
    message, error = decode(line)
    assert message is None
    assert error is not None
    told = json.loads(encode(error))
    assert (told["jsonrpc"], told["id"], told["error"]["code"]) == ("2.0", id, code)


@pytest.mark.parametrize("line", [b"", b" \r", b'{"id":1,"result":5}'])
def test_mcp_lines_that_need_no_answer_get_none(line: bytes) -> None:
    assert decode(line) == (None, None)


def test_a_message_is_written_as_one_line() -> None:
    message, _ = decode(b'{"jsonrpc":"2.0","id":1,"method":"a\\nb"}')
    assert message is not None
    assert encode(message) == b'{"jsonrpc":"2.0","id":1,"method":"a\\nb"}\n'
