"""Whole answers: one object, or an error."""

import json

import pytest

from byok.core.events import Finish, FinishReason
from tests.fakes.daemon import running, settings_for
from tests.fakes.raw import check_error
from tests.fakes.upstream import FakeUpstream, Script, answer, delta

FINISH = Finish(FinishReason.STOP)


def refusal(status: int, message: str = "no", **headers: str) -> Script:
    """Script an error answer."""
    body = json.dumps({"error": {"message": message}}).encode()
    return Script([body], status, {"Content-Type": "application/json", **headers})


async def test_a_whole_answer_is_one_object(fake: FakeUpstream) -> None:
    fake.play(answer("One ", "two."))
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.post("/chat", {"message": "x"})
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/json"
    assert (reply.json["text"], reply.json["stop_reason"]) == ("One two.", 1)
    assert "error" not in reply.json


@pytest.mark.parametrize(
    ("script", "status", "code", "retryable"),
    [
        pytest.param(refusal(400), 422, "upstream_refused", False, id="400"),
        pytest.param(refusal(401), 422, "upstream_auth", False, id="401"),
        pytest.param(refusal(403), 422, "upstream_auth", False, id="403"),
        pytest.param(refusal(404), 422, "upstream_not_found", False, id="404"),
        pytest.param(refusal(418), 422, "upstream_refused", False, id="418"),
        pytest.param(refusal(500), 422, "upstream_failed", True, id="500"),
        pytest.param(refusal(501), 422, "upstream_refused", True, id="501"),
        pytest.param(
            refusal(302, Location="http://127.0.0.1:9/"),
            422,
            "upstream_redirect",
            False,
            id="302",
        ),
        pytest.param(Script([]), 422, "upstream_empty", True, id="nothing"),
        pytest.param(
            Script([b"<html>Welcome</html>"]),
            422,
            "upstream_not_json",
            False,
            id="page",
        ),
    ],
)
async def test_a_whole_answer_that_fails_before_any_text_is_an_error(
    fake: FakeUpstream, script: Script, status: int, code: str, retryable: bool
) -> None:
    fake.play(script)
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.post("/chat", {"message": "x"})
    assert reply.status == status
    check_error(reply.json)
    error = reply.json["error"]
    assert (error["code"], error["retryable"]) == (code, retryable)
    assert error["message"].startswith("fake: ")


@pytest.mark.case("F02")
async def test_a_whole_answer_that_fails_later_keeps_its_text(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="One")]))
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.post("/chat", {"message": "x"})
    assert reply.status == 200
    assert reply.json["text"].startswith("One\n[byok] fake: ")
    assert reply.json["stop_reason"] == 0
    assert reply.json["error"]["code"] == "upstream_cut"


@pytest.mark.case("F09")
async def test_whole_answer_keeps_a_rate_limit_with_its_wait(
    fake: FakeUpstream,
) -> None:
    fake.play(refusal(429, "slow down", **{"Retry-After": "60"}))
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.post("/chat", {"message": "x"})
    assert reply.status == 429
    assert reply.headers["Retry-After"] == "60"
    assert reply.json["error"]["code"] == "upstream_rate_limit"
    assert reply.json["error"]["retryable"] is True
    assert len(fake.requests) == 1
