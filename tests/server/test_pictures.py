"""Pictures for a model that sees none: another one describes each of them once."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from tests.fakes.bodies import PNG, exchange, image_node
from tests.fakes.daemon import Answer, Editor, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, answer, refusal

SEEN = "A red button that says Save."
EYES, TALKER = "byok:fake:eyes", "byok:fake:talker"
BLIND = {"talker": {"images": False}}


def settings(fake: FakeUpstream, facts: Any = BLIND, **models: str) -> dict[str, Any]:
    named = models or {"vision": EYES}
    section = settings_for(fake.url, models=["talker", "eyes"], facts=facts)
    routing = {"models": named, "fallback": {"chat": [TALKER]}}
    return {**section, "routing": routing}


def reply(body: dict[str, Any]) -> Script:
    """Answer as a model that sees pictures, and as one that refuses them."""
    if body["model"] == "eyes":
        return Script(answer(SEEN))
    if "image_url" in json.dumps(body):
        return refusal(400, "This model does not support image input.")
    return Script(answer("Ok."))


def asked(fake: FakeUpstream, model: str) -> list[dict[str, Any]]:
    return [body for body in fake.requests if body["model"] == model]


async def show(editor: Editor, data: str = PNG, **fields: Any) -> Answer:
    return await editor.chat("What is this?", nodes=[image_node(data)], **fields)


async def test_picture_is_described_once_in_ten_turns(fake: FakeUpstream) -> None:
    fake.reply = reply
    picture = exchange("What is this?", "Ok.", nodes=[image_node()])
    async with running(settings(fake)) as editor:
        replies = [await show(editor, conversation_id="c")]
        for turn in range(9):
            history = [picture, *(exchange(f"And {n}?", "Ok.") for n in range(turn))]
            said = {"conversation_id": "c", "chat_history": history}
            replies.append(await editor.chat(f"And {turn}?", **said))
    [question] = asked(fake, "eyes")
    assert PNG in json.dumps(question["messages"])
    told = [body["messages"] for body in asked(fake, "talker")]
    assert len(told) == 10
    for before, after in pairwise(told):
        assert after[: len(before)] == before
    sent = json.dumps(told)
    assert (sent.count(f"described by {EYES}"), "image_url" in sent) == (10, False)
    assert sent.count(SEEN) == 10
    notices = [line.text.count("[byok]") for line in replies]
    assert notices == [1, *[0] * 9]


async def test_description_outlasts_the_daemon(fake: FakeUpstream) -> None:
    fake.reply = reply
    for _ in range(2):
        async with running(settings(fake)) as editor:
            await asyncio.gather(show(editor), show(editor))
    assert len(asked(fake, "eyes")) == 1
    assert len(asked(fake, "talker")) == 4


async def test_picture_is_described_after_a_refusal(fake: FakeUpstream) -> None:
    fake.reply = reply
    async with running(settings(fake, facts={})) as editor:
        replies = [await show(editor) for _ in range(2)]
    assert ["Ok." in said.text for said in replies] == [True, True]
    refused, *answered = asked(fake, "talker")
    assert "image_url" in json.dumps(refused)
    assert len(answered) == 2
    assert all(SEEN in json.dumps(body) for body in answered)
    assert len(asked(fake, "eyes")) == 1


@pytest.mark.case("B131")
@pytest.mark.parametrize(
    ("data", "models", "questions"),
    [
        (PNG, {"vision": EYES}, 1),
        (PNG, {"vision": TALKER}, 0),
        ("A" * 40, {"vision": EYES}, 0),
    ],
)
async def test_picture_that_nobody_describes_is_a_placeholder(
    fake: FakeUpstream, data: str, models: dict[str, str], questions: int
) -> None:
    fake.reply = lambda body: (
        refusal(400, "Bad.") if body["model"] == "eyes" else reply(body)
    )
    past = [exchange("What is this?", "Ok.", nodes=[image_node(data)])]
    async with running(settings(fake, **models)) as editor, asyncio.timeout(PATIENCE):
        replies = [await show(editor, data) for _ in range(2)]
        replies.append(await editor.chat("And now?", chat_history=past))
    assert ["Ok." in said.text for said in replies] == [True] * 3
    assert [said.text.count("[byok]") for said in replies] == [2, 2, 0]
    assert len(asked(fake, "eyes")) == questions  # a failed one rests
    for body in asked(fake, "talker"):
        assert "a picture stood here" in json.dumps(body)


async def test_turn_of_a_picture_is_answered_by_its_model(fake: FakeUpstream) -> None:
    fake.reply = reply
    async with running(settings(fake, image=EYES)) as editor:
        first = await show(editor, conversation_id="c")
        again = await show(editor, conversation_id="c")
        chosen = (await editor.post("/byok/choices")).json
    assert (first.text.count("[byok]"), again.text) == (1, SEEN)
    assert first.text.startswith(SEEN)
    assert asked(fake, "talker") == []
    assert chosen["vision"] == EYES
    assert [(row["rule"], row["model"]) for row in chosen["choices"]] == [
        ("image", EYES),
        ("image", EYES),
    ]
