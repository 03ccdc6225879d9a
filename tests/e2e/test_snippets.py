"""Code in answers: clickable where the client shows it so, a plain fence elsewhere.

The upstream does what it was told: it writes excerpts in tags if its system message
shows the tags, else in a fence. What it writes arrives as it is, however it is cut.
"""

import json
from typing import Any

import pytest

from tests.fakes.clients import ask
from tests.fakes.daemon import Answer, Editor, running, settings_for
from tests.fakes.occasions import LARGE, OCCASIONS, TOOLS, definitions
from tests.fakes.upstream import FakeUpstream, Script, answer
from tests.fakes.values import singles

TAG = "<augment_code_snippet"
CODE = 'def log_in(name: str) -> "Session":\n\t"""Grüße: ```x```"""\n    ...\n'
PLAIN = f"It is here.\n\nsrc/login.py:\n```python\n{CODE}```\n\nThat is all.\n"
SNIPPET = (
    f'It is here.\n\n{TAG} path="src/a b/login.py" mode="EXCERPT">\n'
    f"````python\n{CODE}````\n</augment_code_snippet>\n\nThat is all.\n"
)
MODELS = ("fake-model", "qwen3-coder", "deepseek-chat", "kimi-k2", "hermes-4")


def system_of(body: dict[str, Any]) -> str:
    first = body["messages"][0]
    return first["content"] if first["role"] == "system" else ""


def obey(body: dict[str, Any]) -> Script:
    """Answer in the form that the system message shows."""
    text = SNIPPET if TAG in system_of(body) else PLAIN
    if body.get("stream"):
        return Script(answer(*singles(text)))
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    said = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    content = json.dumps({**said, "choices": [choice]}).encode()
    return Script([content], headers={"Content-Type": "application/json"})


def texts_of(reply: Answer) -> list[str]:
    """Return the text of an answer, as its pieces give it and as its node does."""
    return [reply.text, *(n["content"] for n in reply.nodes if n["type"] == 0)]


@pytest.mark.parametrize("tools", [(), TOOLS], ids=["no tools", "tools"])
@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("CHAT", SNIPPET), ("AGENT", SNIPPET), ("agent", SNIPPET),
        ("CLI_AGENT", PLAIN), ("REMOTE_AGENT", PLAIN), (None, PLAIN), ("", PLAIN),
    ],
)  # fmt: skip
async def test_excerpts_are_clickable_where_the_client_shows_them_so(
    fake: FakeUpstream,
    editor: Editor,
    mode: str | None,
    wanted: str,
    tools: tuple[str, ...],
) -> None:
    fake.reply = obey
    fields = {"mode": mode, "tool_definitions": definitions(tools)}
    reply = await editor.chat("Where?", **fields)
    whole = await editor.post("/chat", {"message": "Where?", **fields})
    assert texts_of(reply) == [wanted, wanted]
    assert whole.json["text"] == wanted
    told = system_of(fake.requests[0])
    assert (TAG in told) is (wanted is SNIPPET)
    if TAG in told:
        assert f'{TAG} path="' in told and 'mode="EXCERPT"' in told
        opening = told[told.index(f"{TAG} path=") :].split("\n")
        assert opening[1].startswith("````") and not opening[1].startswith("`````")
        assert "</augment_code_snippet>" in opening[: opening.index("````") + 2]


@pytest.mark.parametrize("occasion", OCCASIONS, ids=lambda occasion: occasion.name)
def test_only_clients_that_show_them_are_promised_snippets(occasion: Any) -> None:
    asked = TAG in occasion.golden()
    shows = occasion.body.get("mode") in ("CHAT", "AGENT")
    assert shows or not asked
    if shows and occasion.window >= LARGE and not occasion.body.get("silent"):
        assert asked or "small" in occasion.defaults().fit.variants


async def every_cut(
    fake: FakeUpstream, editor: Editor, text: str, **fields: Any
) -> None:
    """Cut an answer in two in its tags and fences; it must arrive as it is."""
    for place in (n for n in range(1, len(text)) if {*text[n - 1 : n + 1]} & {*"<>`"}):
        fake.play(answer(text[:place], text[place:]))
        assert texts_of(await editor.chat("Where?", **fields)) == [text, text], place


async def test_a_snippet_arrives_as_it_is_wherever_it_is_cut(
    fake: FakeUpstream, editor: Editor
) -> None:
    await every_cut(fake, editor, SNIPPET, mode="CHAT")


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
async def test_a_snippet_is_no_call_and_no_thought_of_any_family(
    fake: FakeUpstream, model: str
) -> None:
    fake.models = [model]
    async with running(settings_for(fake.url, model=model)) as editor:
        tools = definitions(TOOLS)
        short = SNIPPET[SNIPPET.index(TAG) :]
        await every_cut(fake, editor, short, mode="AGENT", tool_definitions=tools)
        fake.play(answer(*singles(SNIPPET)))
        reply = await editor.chat("Where?", mode="AGENT", tool_definitions=tools)
    assert texts_of(reply) == [SNIPPET, SNIPPET]


async def test_a_snippet_goes_back_to_the_model_as_it_was_written(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.reply = obey
    reply = await editor.chat("Where?", mode="CHAT")
    past = {"request_message": "Where?", "response_nodes": reply.nodes}
    await editor.chat("And?", mode="CHAT", chat_history=[past])
    # Another client goes on with the conversation: nothing is taken out of it.
    fake.reply = None
    fake.play(answer(*singles(SNIPPET)))
    other = await editor.chat("And?", mode="CLI_AGENT", chat_history=[past])
    said = [m for body in fake.requests[1:] for m in body["messages"]]
    told = [m["content"] for m in said if m["role"] == "assistant"]
    assert told == [SNIPPET, SNIPPET]
    assert other.text == SNIPPET


async def test_the_sdk_gets_plain_fences(fake: FakeUpstream, editor: Editor) -> None:
    fake.reply = obey
    said = await ask(editor, "Where?")
    assert said == PLAIN
