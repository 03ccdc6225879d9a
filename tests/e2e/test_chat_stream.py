"""Chat through the real daemon against a scripted upstream."""

import asyncio
import json
import re

from byok.core.language import speaking
from tests.fakes.bodies import tool
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.upstream import FakeUpstream, Script, answer, refusal, tool_answer


async def test_chat_stream_text_comes_as_deltas_then_once_more_as_a_node(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(answer("Hel", "lo."))
    reply = await editor.chat("Hi?")
    assert reply.text == "Hello."
    assert [(n["id"], n["type"], n["content"]) for n in reply.nodes] == [
        (1, 0, "Hello."),
        (2, 2, ""),
    ]
    assert reply.last["stop_reason"] == 1
    assert fake.requests[0]["messages"][1:] == [{"role": "user", "content": "Hi?"}]


async def test_chat_stream_tool_call_becomes_a_start_and_a_use_node(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(tool_answer("view", '{"path": "a.py"}'))
    reply = await editor.chat(tool_definitions=[tool(path="string")])
    assert [n["type"] for n in reply.nodes] == [7, 5, 2]
    assert reply.tool_uses[0]["input_json"] == '{"path": "a.py"}'
    assert reply.last["stop_reason"] == 3


async def test_a_failure_is_told_in_the_language_in_which_byok_was_started(
    fake: FakeUpstream,
) -> None:
    fake.play(refusal(401, "no such key"), answer("Hello."))
    with speaking("zh_CN"):
        async with running(settings_for(fake.url, model="m")) as editor:
            failed = await editor.chat("Hi?")
            assert failed.text.startswith("\n[byok] ")
            assert all(
                re.search("[一-鿿]", line) for line in failed.text.split("。")[:-1]
            )
            assert "密钥" in failed.text
            error = failed.last["error"]
            assert (error["code"], error["message"].isascii()) == (
                "upstream_auth",
                True,
            )
            said = {"request_message": "Hi?", "response_text": failed.text}
            await editor.chat("Again?", chat_history=[said])
    assert "[byok]" not in json.dumps(fake.requests[-1], ensure_ascii=False)


async def test_chat_stream_memory_holds_the_users_words_and_not_the_editors(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(tool_answer("remember", "{}"))
    reply = await editor.chat(
        "Tests run with make.",
        selected_code="import secret",
        path="a.py",
        tool_definitions=[tool("remember", memory="string")],
    )
    [use] = reply.tool_uses
    assert json.loads(use["input_json"])["memory"].startswith("Tests run with make.")
    assert "secret" not in use["input_json"]


async def test_chat_stream_parameter_refused_to_two_at_once_fails_neither(
    fake: FakeUpstream,
) -> None:
    refusal = Script(
        [0.2, b'{"error": {"message": "temperature is not supported"}}'],
        400,
        {"Content-Type": "application/json"},
    )
    fake.play(refusal, refusal, answer("Fine."))
    settings = settings_for(fake.url, temperature=0.5)
    async with running(settings) as editor:
        replies = await asyncio.gather(editor.chat("One?"), editor.chat("Two?"))
    assert [reply.text for reply in replies] == ["Fine.", "Fine."]
    sent = ["temperature" in body for body in fake.requests]
    assert sent == [True, True, False, False]
