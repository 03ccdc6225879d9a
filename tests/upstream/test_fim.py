"""Which way to fill a gap is tried, and which one next."""

import json
from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    FimRequest,
    Message,
    NextEditRequest,
    Role,
    Sampling,
    TextPart,
)
from byok.core.errors import UpstreamError
from byok.core.events import Finish, StreamEvent, TextDelta
from byok.dialects.base import Codec
from byok.dialects.fim_codecs import codecs_of, next_edit_codecs
from byok.dialects.fim_templates import FimMode, FimProfile
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.ask import ask
from byok.upstream.base import Destination
from byok.upstream.client import HttpUpstream
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import Key
from tests.fakes.upstream import DONE, FakeUpstream, Script, answer, event

ALL = (FimMode.INFILL, FimMode.TEMPLATE, FimMode.SUFFIX, FimMode.CHAT)
CHAT = ChatRequest(
    (Message(Role.USER, (TextPart("Fill it."),)),), fim=FimRequest("def f(", ")")
)
NO_FIM = "Infill is not supported by this model: prefix token is missing."


def refusal(status: int, message: str = NO_FIM) -> Script:
    return Script([json.dumps({"error": {"message": message}}).encode()], status)


def text(said: str) -> list[bytes]:
    choice = {"index": 0, "text": said, "finish_reason": "stop"}
    return [event({"choices": [choice]}), DONE]


def infilled(said: str) -> list[bytes]:
    return [event({"content": said, "stop": True})]


CODECS: dict[FimMode, Codec | None] = {**codecs_of(FimProfile()), FimMode.CHAT: None}


class Asked:
    """An upstream, and what it says; `ask` gives the text of an answer."""

    def __init__(self, fake: FakeUpstream, *modes: FimMode, **fields: Any) -> None:
        self.transports = Transports()
        codecs = {mode: CODECS[mode] for mode in modes or ALL}
        api = Api(OpenAIChat(), fake.url)
        spec = UpstreamSpec("fake", (api,), fim=codecs, **fields)
        self.upstream = HttpUpstream(spec, self.transports, Key("sk-1"))
        self.formats: list[str] = []

    async def ask(self, model: str = "m", chat: ChatRequest = CHAT) -> str:
        events: list[StreamEvent] = []
        try:
            async for batch in ask(Destination(self.upstream, model), chat):
                events += batch
        finally:
            await self.transports.close()
        self.formats += [e.format for e in events if isinstance(e, Finish)]
        return "".join(e.text for e in events if isinstance(e, TextDelta))


async def test_fim_leaves_chat_requests_alone(fake: FakeUpstream) -> None:
    assert await Asked(fake).ask(chat=ChatRequest(CHAT.messages)) == "Hi."
    assert fake.paths == ["chat/completions"]


@pytest.mark.parametrize("status", [400, 404, 405, 422, 501])
async def test_fim_tries_the_next_dialect_when_one_is_missing(
    fake: FakeUpstream, status: int
) -> None:
    fake.play(refusal(status), refusal(status), answer("by chat"))
    asked = Asked(fake)
    assert await asked.ask() == "by chat"
    assert fake.paths == ["/infill", "completions", "chat/completions"]
    assert "suffix" in fake.requests[1]
    assert await asked.ask() == "by chat"  # which is remembered
    assert fake.paths[3:] == ["chat/completions"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/llama3.2 does not support insert"),  # ollama
        pytest.param(400, "suffix is not currently supported", id="vllm"),
        pytest.param(400, "Invalid model: mistral-large-latest", id="mistral"),
    ],
)
async def test_fim_recognises_a_missing_dialect_by_the_servers_words(
    fake: FakeUpstream, status: int, message: str
) -> None:
    fake.play(refusal(status, message), answer("by chat"))
    assert await Asked(fake, FimMode.SUFFIX, FimMode.CHAT).ask() == "by chat"


async def test_fim_dialects_are_remembered_per_model(fake: FakeUpstream) -> None:
    fake.play(refusal(501), text("raw"), infilled("x"))
    asked = Asked(fake, *ALL[:2], FimMode.CHAT)
    assert await asked.ask("qwen2.5-coder") == "raw"
    assert fake.requests[1]["prompt"].startswith("<|fim_prefix|>")
    assert await asked.ask("other") == "x"
    assert fake.paths == ["/infill", "completions", "/infill"]


async def test_fim_dialect_that_is_gone_is_searched_again(fake: FakeUpstream) -> None:
    fake.play(refusal(501), answer("by chat"), refusal(404), infilled("x"))
    asked = Asked(fake, FimMode.INFILL, FimMode.CHAT)
    assert await asked.ask() == "by chat"
    with pytest.raises(UpstreamError):
        await asked.ask()
    assert await asked.ask() == "x"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(refusal(401), id="the key"),
        pytest.param(Script([]), id="nothing"),
        # an error after text
        Script([event({"content": "x"}), event({"error": {"code": 400}})]),
    ],
)
async def test_fim_passes_on_any_other_failure(
    fake: FakeUpstream, script: Script
) -> None:
    fake.play(script)
    with pytest.raises(UpstreamError, match="fake: "):
        await Asked(fake).ask()
    assert fake.paths == ["/infill"]


async def test_fim_with_one_configured_dialect_tries_no_other(
    fake: FakeUpstream,
) -> None:
    fake.play(refusal(501))
    with pytest.raises(UpstreamError, match=r"prefix token is missing"):
        await Asked(fake, FimMode.INFILL).ask()
    with pytest.raises(UpstreamError, match="fake: no template is known for m"):
        await Asked(fake, FimMode.TEMPLATE).ask()
    assert fake.paths == ["/infill"]


# Next edits: in the format of a model that is made for them, where it is served

EDIT = ChatRequest(
    CHAT.messages,
    next_edit=NextEditRequest("def f(x):\n    ret", "urn x\n", path="a.py", line=2),
    sampling=Sampling(0.2, 0.9, 100),
)


async def test_next_edit_is_asked_by_a_raw_prompt(fake: FakeUpstream) -> None:
    fake.play(text("def f(y):\n    return y\n"))
    asked = Asked(fake, next_edit=next_edit_codecs("llamacpp"))
    assert await asked.ask("zeta-2.gguf", EDIT) == "def f(y):\n    return y\n"
    assert asked.formats == ["zeta-2"]
    assert fake.paths == ["completions"]
    [body] = fake.requests
    assert "ret<|user_cursor|>urn x" in body["prompt"]
    assert body["stop"][0] == ">>>>>>> UPDATED"
    assert (body["temperature"], body["max_tokens"], body["stream"]) == (0, 100, True)


async def test_next_edit_that_is_not_served_is_asked_by_a_chat(
    fake: FakeUpstream,
) -> None:
    fake.play(refusal(404), answer("EDIT: x"), answer("NONE"), infilled("y"))
    asked = Asked(fake, next_edit=next_edit_codecs("llamacpp"))
    assert await asked.ask("sweep-next-edit-0.5b", EDIT) == "EDIT: x"
    assert await asked.ask("sweep-next-edit-0.5b", EDIT) == "NONE"  # remembered
    assert await asked.ask("sweep-next-edit-0.5b") == "y"  # a gap is another question
    assert asked.formats == [""] * 3
    paths = ["completions", "chat/completions", "chat/completions", "/infill"]
    assert fake.paths == paths


@pytest.mark.parametrize(
    ("model", "vendor"),
    [("qwen2.5-coder", "llamacpp"), ("zeta-2", "groq"), ("mercury-coder", "vercel")],
)
async def test_next_edit_of_any_other_model_is_a_chat(
    fake: FakeUpstream, model: str, vendor: str
) -> None:
    asked = Asked(fake, next_edit=next_edit_codecs(vendor))
    await asked.ask(model, EDIT)
    assert (fake.paths, asked.formats) == (["chat/completions"], [""])


async def test_next_edit_of_mercury_is_one_message_and_one_document(
    fake: FakeUpstream,
) -> None:
    said = {"message": {"content": "```\nx\n```"}, "finish_reason": "stop"}
    fake.play([json.dumps({"choices": [said]}).encode()])
    asked = Asked(fake, next_edit=next_edit_codecs("inception"))
    assert await asked.ask("mercury-edit-2", EDIT) == "```\nx\n```"
    assert (fake.paths, asked.formats) == (["edit/completions"], ["mercury"])
    [body] = fake.requests
    [message] = body.pop("messages")
    assert message["role"] == "user"
    assert "ret<|cursor|>urn x" in message["content"]
    limits = {"max_tokens": 100, "stream": False}
    assert body == {"model": "mercury-edit-2", **limits}


async def test_next_edit_of_codestral_fills_the_gap_at_the_cursor(
    fake: FakeUpstream,
) -> None:
    fake.play(answer("x"))
    asked = Asked(fake, next_edit=next_edit_codecs("mistral"))
    assert await asked.ask("codestral-latest", EDIT) == "x"
    assert (fake.paths, asked.formats) == (["fim/completions"], ["codestral"])
    assert fake.requests[0]["prompt"] == "def f(x):\n    ret"
    assert fake.requests[0]["suffix"] == "urn x\n"
