"""Hostile requests of other clients: refused in the shape of their API, and quickly."""

import json
from typing import Any

import pytest

from tests.fakes.cases import case_param
from tests.fakes.daemon import Editor, check_alive
from tests.fakes.raw import RawAnswer, ask, check_head, filled, nested, request
from tests.fakes.upstream import FakeUpstream

MIB = 2**20
OPENAI, ANTHROPIC = b"/v1/responses", b"/v1/messages"
COUNT = b"/v1/messages/count_tokens"
KEY = b"X-Api-Key: TOKEN"
# The path that the fake's API serves itself only checks what every row checks.
TARGETS = (b"/v1/chat/completions", OPENAI, ANTHROPIC, COUNT)


async def put(editor: Editor, data: bytes) -> RawAnswer:
    """Send a request with placeholders; check what every answer obeys."""
    port = editor.daemon.port
    answer = await ask(port, filled(data, port, editor.token))
    check_head(answer)
    assert b"Traceback" not in answer.body
    return answer


BAD = [
    case_param(b"{", 400, id="B121-open"),
    case_param(b"[]", 422, id="B121-array"),
    case_param(b'{"model":"\xff"}', 400, id="B121-ff"),
    case_param(b'{"temperature":1e999}', 400, id="B121-1e999"),
    case_param(nested(129, b'"messages":[]'), 422, id="B121-129"),
    case_param(b'{"messages":[%s{}]}' % (b"{}," * 1_000_000), 413, id="B121-nodes"),
]


@pytest.mark.parametrize(("body", "status"), BAD)
async def test_b121_unreadable_body_of_another_client_is_refused(
    fake: FakeUpstream, editor: Editor, body: bytes, status: int
) -> None:
    for target in TARGETS:
        answer = await put(editor, request(target=target, body=body))
        assert (target, answer.status) == (target, status)
        assert set(answer.json["error"]) >= {"type", "message"}
        assert (answer.json.get("type") == "error") is (b"messages" in target)
    await check_alive(editor, fake)


HEADS = [
    case_param(request(target=ANTHROPIC, token=b""), 401, id="B122-none"),
    case_param(request(KEY, KEY, target=ANTHROPIC, token=b""), 400, id="B122-twice"),
    case_param(
        request(KEY, target=ANTHROPIC, token=b"Authorization: Bearer x"),
        401,
        id="B122-beside-a-wrong-one",
    ),
    case_param(request(KEY, token=b""), 401, id="B122-editors-path"),
    case_param(
        request(KEY, b"Origin: https://evil.example", target=ANTHROPIC, token=b""),
        403,
        id="B122-origin",
    ),
    case_param(
        request(KEY, target=ANTHROPIC, token=b"", host=b"Host: evil.example:PORT"),
        421,
        id="B122-host",
    ),
    case_param(
        request(KEY, target=ANTHROPIC, token=b"", kind=b"Content-Type: text/plain"),
        415,
        id="B122-type",
    ),
    case_param(
        request(
            KEY,
            target=ANTHROPIC,
            token=b"",
            length=b"Content-Length: %d" % (64 * MIB + 1),
            body=b"",
        ),
        413,
        id="B122-length",
    ),
]


@pytest.mark.parametrize(("data", "status"), HEADS)
async def test_b122_api_key_passes_no_other_check(
    fake: FakeUpstream,
    editor: Editor,
    data: bytes,
    status: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = await put(editor, data)
    assert answer.status == status
    assert editor.token.encode() not in answer.body
    assert editor.token not in caplog.text
    await check_alive(editor, fake)


VALUES: list[Any] = [10**30, "x" * 100_000, [{}], {"type": []}]
FIELDS = """
    messages input tools tool_choice system instructions max_tokens temperature stop
    reasoning thinking output_config response_format metadata stream_options text
"""


@pytest.mark.slow
@pytest.mark.case("B123")
async def test_b123_hostile_values_are_refused_or_answered(
    fake: FakeUpstream, editor: Editor
) -> None:
    hi = [{"role": "user", "content": "Hi?"}]
    for target in (OPENAI, ANTHROPIC):
        good = {"model": "m", "messages": hi, "input": hi, "max_tokens": 9}
        for field in FIELDS.split():
            for value in VALUES:
                body = json.dumps({**good, field: value}).encode()
                answer = await put(editor, request(target=target, body=body))
                assert answer.status in (200, 400), (target, field, value)


@pytest.mark.slow
@pytest.mark.case("B123")
async def test_b123_long_signatures_and_many_tools_are_read(
    fake: FakeUpstream, editor: Editor
) -> None:
    sealed = '{"byok":1,"dialect":"x","upstream":"x","model":"x","data":{"a":"'
    block = {"type": "thinking", "thinking": "", "signature": sealed + "x" * MIB}
    hi = {"role": "user", "content": "Hi?"}
    said = [hi, {"role": "assistant", "content": [block]}]
    tools = [{"name": f"t{n}", "input_schema": {}} for n in range(2000)]
    asked = {"messages": [*said, hi], "tools": tools, "max_tokens": 9}
    more = {**asked, "tools": [*tools, {"name": "one_more", "input_schema": {}}]}
    for body, status in ((asked, 200), (more, 400)):
        answer = await put(
            editor, request(target=ANTHROPIC, body=json.dumps(body).encode())
        )
        assert answer.status == status
    assert len(fake.requests[0]["messages"]) == 1
