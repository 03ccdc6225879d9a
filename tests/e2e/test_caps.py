"""Caps through the real server: what is refused, how it is told, over restarts."""

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clients import openai_client
from tests.fakes.clock import Clock
from tests.fakes.daemon import Answer, Watcher, running, settings_for
from tests.fakes.journal_entries import NOW
from tests.fakes.program import (
    COUNTED,
    PRICES,
    Program,
    configure,
    hang_up,
    serving,
)
from tests.fakes.raw import RawAnswer
from tests.fakes.upstream import FakeUpstream, answer, delta

HI = [delta(content="Hi."), delta("stop"), COUNTED]  # 1,009 tokens
NOON = Clock(NOW)
REACHED = "A cap of your settings is reached: "


async def chat(program: Program, conversation: str = "") -> RawAnswer:
    asked = {"message": "Hello.", "conversation_id": conversation}
    return await program.post("/chat-stream", **asked)


def capped(fake: FakeUpstream, **caps: float) -> dict[str, Any]:
    return {**settings_for(fake.url, model="m"), "caps": caps}


def is_refused(reply: Answer) -> bool:
    return REACHED in reply.raw.decode()


async def test_a_chat_over_a_cap_is_told_in_the_chat(fake: FakeUpstream) -> None:
    fake.play(HI)
    async with running(capped(fake, tokens_per_day=2000), clock=NOON) as editor:
        replies = [await editor.chat(conversation_id="one") for _ in range(3)]
        status = (await editor.post("/byok/daemon")).json["features"]
    first, second, last = replies
    assert (first.text, second.text.startswith("Hi.")) == ("Hi.", True)
    assert len(fake.requests) == 2
    assert last.status == 200
    assert f"[byok] {REACHED}2,018 of 2,000 tokens today. Raise tokens_per_day" in (
        last.text
    )
    assert (last.last["stop_reason"], last.last["error"]["code"]) == (1, "cap_reached")
    assert [(row["name"], row["used"]) for row in status["caps"]] == [
        ("tokens_per_day", 2018)
    ]


QUESTION = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
EDIT = {"instruction": "x", "selected_text": "a", "path": "a.py"}
REFUSED = {
    "silent": ("/chat-stream", {"message": "x", "silent": True}),
    "whole": ("/chat", {"message": "x"}),
    "edit": ("/instruction-stream", EDIT),
    "openai": ("/v1/chat/completions", QUESTION),
    "openai stream": ("/v1/chat/completions", {**QUESTION, "stream": True}),
    "anthropic": ("/v1/messages", {**QUESTION, "max_tokens": 9}),
}


@pytest.mark.parametrize(("path", "body"), REFUSED.values(), ids=[*REFUSED])
async def test_every_kind_of_request_is_refused_before_a_model_is_asked(
    fake: FakeUpstream, path: str, body: dict[str, Any]
) -> None:
    fake.play(HI)
    async with running(capped(fake, requests_per_day=1), clock=NOON) as editor:
        await editor.chat()
        reply = await editor.post(path, body)
    assert len(fake.requests) == 1
    assert reply.status == 402
    assert is_refused(reply)
    kind = {
        "/v1/messages": "billing_error",
        "/v1/chat/completions": "insufficient_quota",
    }
    assert reply.json["error"].get("type") == kind.get(path)


async def test_an_sdk_does_not_ask_again_at_a_cap(fake: FakeUpstream) -> None:
    openai: Any = pytest.importorskip("openai", reason="the openai client is missing")
    fake.play(HI)
    watcher = Watcher()
    settings = capped(fake, requests_per_day=1)
    async with running(settings, observers=[watcher], clock=NOON) as editor:
        await editor.chat()
        async with openai_client(
            editor.daemon.url, editor.token, max_retries=3
        ) as client:
            with pytest.raises(openai.APIStatusError) as e:
                await client.chat.completions.create(**QUESTION)
    assert e.value.status_code == 402
    assert [record.error for record in watcher.finished] == ["", "cap_reached"]


async def test_completions_count_and_are_refused_without_a_word(
    fake: FakeUpstream,
) -> None:
    fake.play(answer("return 1"))
    body = {"prompt": "def f():\n", "path": "a.py"}
    async with running(capped(fake, requests_per_day=1), clock=NOON) as editor:
        await editor.post("/completion", body)
        reply = await editor.post("/completion", {**body, "prompt": "def g():\n"})
        chat = await editor.chat()
    assert len(fake.requests) == 1
    assert reply.status == 200
    assert not any(item["text"] for item in reply.json["completion_items"])
    assert is_refused(chat)


async def test_a_cap_in_dollars_does_not_stop_a_model_on_this_machine(
    fake: FakeUpstream,
) -> None:
    fake.play(HI)
    settings = capped(fake, usd_per_day=0.001)
    priced = {"price_input": 2, "price_output": 10}
    settings["upstreams"]["fake"]["facts"] = {"m": priced}
    async with running(settings, clock=NOON) as editor:
        paid = [await editor.chat(model="byok:fake:m") for _ in range(2)]
        local = [await editor.chat(model="byok:fake:here") for _ in range(2)]
        [cap] = (await editor.post("/byok/daemon")).json["features"]["caps"]
    assert [is_refused(reply) for reply in (*paid, *local)] == [
        *(False, True),
        *(False, False),
    ]
    assert cap["unpriced"] == 0


async def test_a_days_cap_holds_over_a_restart(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    caps = "[caps]\nrequests_per_day = 3\nusd_per_day = 1.0\n"
    configure(home, fake.url, PRICES + caps)
    fake.play(HI)
    async with serving(home) as program:
        await chat(program, "one")
        await hang_up(program, fake, "cancelled")
        fake.play(HI)
        await program.ended(signal.SIGTERM)
    async with serving(home) as program:
        last = await chat(program, "one")
        over = await chat(program, "two")
        told = await program.post("/byok/daemon")
        caps_now = told.json["features"]["caps"]
        configure(home, fake.url, PRICES + "[caps]\nrequests_per_day = 4\n")
        assert (await program.post("/byok/reload")).status == 200
        assert b"Hi." in (await chat(program)).body
        await program.ended(signal.SIGTERM)
    assert b"Hi." in last.body
    assert b"3 of 3 requests today" in over.body
    assert len(fake.requests) == 4
    assert caps_now[0]["used"] == 3
    assert caps_now[1]["unpriced"] == 1  # the cancelled one
    assert caps_now[1]["used"] == pytest.approx(2 * 0.00209)
