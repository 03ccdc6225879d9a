"""Completions: in time, only the newest, remembered, and never an error."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from byok.core.events import StreamEvent
from byok.upstream.base import Plan
from byok.upstream.demo import DemoUpstream
from tests.fakes.daemon import Answer, Editor, daemon_with, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, answer, delta, event

BODY = {"prompt": "def f():\n    ", "suffix": "\n", "path": "a.py"}
SESSION = {"X-Request-Session-Id": "s-1"}
ENDLESS = Script([delta(content="a()\n    b()\n    c(")], end="hang")


async def complete(editor: Editor, prompt: str = "", **body: Any) -> Answer:
    headers = body.pop("headers", SESSION)
    sent = {**BODY, "prompt": BODY["prompt"] + prompt, **body}
    return await editor.post("/completion", sent, headers=headers)


def settings(fake: FakeUpstream, **completion: Any) -> dict[str, Any]:
    own = {"timeout_ms": 60_000, **completion}
    return {**settings_for(fake.url, timeout=60), "completion": own}


def asked_at(editor: Editor, fake: FakeUpstream, **body: Any) -> asyncio.Task[Answer]:
    fake.reached.clear()
    return asyncio.ensure_future(complete(editor, **body))


async def test_completion_leaves_the_upstream_when_enough_came(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="return 1\n\n\ndef g():\n    ")], end="hang"))
    async with running(settings(fake)) as editor:
        reply = await asyncio.wait_for(complete(editor), PATIENCE)
        await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)
    assert reply.json["text"] == "return 1"


async def test_completion_deadline_gives_whole_lines(fake: FakeUpstream) -> None:
    fake.play(ENDLESS, Script([delta(content="a(")], end="hang"))
    async with running(settings(fake, timeout_ms=2000)) as editor:
        whole = await complete(editor)
        await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)
        none = await complete(editor, path="b.py")
    assert (whole.status, whole.json["text"]) == (200, "a()\n    b()")
    assert (none.status, none.json["completion_items"]) == (200, [])


async def test_completion_is_superseded_by_a_newer_one_of_the_same_file(
    fake: FakeUpstream,
) -> None:
    fake.play(ENDLESS, answer("b()"))
    async with running(settings(fake)) as editor:
        older = asked_at(editor, fake)
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        newer = await complete(editor, "x = ")
        outdated = await asyncio.wait_for(older, PATIENCE)
        await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)
    assert (newer.status, newer.json["text"]) == (200, "b()")
    assert (outdated.status, outdated.json["completion_items"]) == (200, [])


@pytest.mark.parametrize(
    "other",
    [
        {"path": "b.py"},
        {"headers": {"X-Request-Session-Id": "s-2"}},
        {"headers": {}},
    ],
)
async def test_completion_of_another_editor_or_file_goes_on(
    fake: FakeUpstream, other: dict[str, Any]
) -> None:
    go_on = asyncio.Event()
    slow = Script([delta(content="a()\n"), go_on, *answer("    b()")])
    fake.play(slow, answer("c()"))
    async with running(settings(fake)) as editor:
        first = asked_at(
            editor, fake, **({"headers": {}} if "headers" in other else {})
        )
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        second = await complete(editor, "x = ", **other)
        go_on.set()
        assert (await first).json["text"] == "a()\n    b()"
    assert second.json["text"] == "c()"


async def test_completion_typed_along_is_answered_without_a_request(
    fake: FakeUpstream,
) -> None:
    fake.play(answer("return 1"))
    async with running(settings(fake)) as editor:
        for typed in ("", "ret", "return "):
            reply = await complete(editor, typed)
            assert reply.json["text"] == "return 1"[len(typed) :]
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("typed", "body"),
    [
        ("return 1", {}),
        ("rex", {}),
        ("ret", {"suffix": ")"}),
        ("ret", {"path": "b.py"}),
        ("ret", {"model": "byok:fake:other"}),
    ],
)
async def test_completion_after_other_typing_is_requested_again(
    fake: FakeUpstream, typed: str, body: dict[str, Any]
) -> None:
    fake.play(answer("return 1"), answer("more"))
    async with running(settings(fake)) as editor:
        await complete(editor)
        assert (await complete(editor, typed, **body)).json["text"] == "more"


async def test_a_completion_does_not_queue(fake: FakeUpstream) -> None:
    fake.play(Script([delta(content="One")], end="hang"))
    limits = {"streams": 1, "waiting": 5, "wait_seconds": 60}
    async with running({**settings(fake), "limits": limits}) as editor:
        chat = asyncio.ensure_future(editor.chat())
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        reply = await asyncio.wait_for(complete(editor), PATIENCE)
        chat.cancel()
        await asyncio.gather(chat, return_exceptions=True)
    assert (reply.status, reply.json["completion_items"]) == (200, [])
    assert len(fake.requests) == 1


async def test_completion_failure_is_logged_once(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    refused = Script([b'{"error":{"message":"SECRET"}}'], 401)
    fake.play(refused, refused, answer("a()"), refused)
    async with running(settings(fake)) as editor:
        for typed in ("a", "b", "c", "d"):
            await complete(editor, typed)
    assert caplog.text.count("no completions from fake: refused with 401") == 2
    assert "SECRET" not in caplog.text


class Faulty(DemoUpstream):
    """Has a fault."""

    async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        raise KeyError(plan.model)
        yield []


async def test_completion_internal_error_is_no_error_for_the_editor(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with daemon_with(Faulty()) as editor:
        reply = await complete(editor)
    assert (reply.status, reply.json["completion_items"]) == (200, [])
    assert "Traceback" in caplog.text
    assert "error=internal" in caplog.text


async def test_completion_probe_reports_facts_without_a_request(
    fake: FakeUpstream,
) -> None:
    name = "ab" * 32
    blobs = {"checkpoint_id": None, "added_blobs": [name], "deleted_blobs": []}
    async with running(settings(fake)) as editor:
        reply = await complete(editor, probe_only=True, blobs=blobs)
    assert reply.json["completion_items"] == []
    assert reply.json["unknown_blob_names"] == [name]
    assert reply.json["unknown_memory_names"] == [name]
    assert fake.requests == []


async def test_a_probe_neither_repeats_nor_ends_a_completion(
    fake: FakeUpstream,
) -> None:
    fake.play(answer("return 1"), Script([delta(content="a()"), 0.2, *answer("")]))
    async with running(settings(fake)) as editor:
        await complete(editor)
        assert (await complete(editor, probe_only=True)).json["text"] == ""
        slow = asked_at(editor, fake, suffix="\n#")
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        await complete(editor, probe_only=True)
        assert (await slow).json["text"] == "a()"


async def test_completion_settings_count(fake: FakeUpstream) -> None:
    chosen = {
        **settings(fake, max_tokens=64, way="chat"),
        "routing": {"models": {"completion": "byok:fake:coder"}},
        "prompts": {"completion": "ADDED"},
    }
    async with running(chosen) as editor:
        await complete(editor, model="byok:fake:big")
    [sent] = fake.requests
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == (
        "coder",
        64,
        0.2,
    )
    assert sent["messages"][0]["content"].endswith("ADDED")


async def test_completion_uses_fim_where_the_upstream_has_it(
    fake: FakeUpstream,
) -> None:
    said = event({"content": "return 1\n", "stop": True})
    fake.play(Script([json.dumps({"error": "no"}).encode()], 501), answer("x"), [said])
    upstream = settings_for(fake.url, type="llamacpp")
    async with running(upstream) as editor:
        by_chat = await complete(editor)
    async with running(upstream) as editor:
        by_infill = await complete(editor)
    assert (by_chat.json["text"], by_infill.json["text"]) == ("x", "return 1")
    assert fake.paths == ["/infill", "chat/completions", "/infill"]
    assert fake.requests[2]["input_prefix"] == BODY["prompt"]
    assert fake.requests[2]["n_predict"] == 256


async def test_completion_never_sends_a_secret_file_the_user_did_not_open(
    fake: FakeUpstream,
) -> None:
    fake.play(answer("KEY=1"))
    async with running(settings(fake)) as editor:
        replies = [await complete(editor, path=p) for p in (".env", "a/id_rsa")]
        assert [reply.json["completion_items"] for reply in replies] == [[], []]
        assert fake.requests == []
        chat = await editor.post("/chat-input-completion", {**BODY, "path": ".env"})
        assert chat.json["completion_items"]
    opened = {**settings(fake), "context": {"allow_secret": [".env"]}}
    async with running(opened) as editor:
        assert (await complete(editor, path=".env")).json["completion_items"]
