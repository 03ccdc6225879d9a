"""Bodies become questions for a model, with code, or are answered without one."""

import logging
from pathlib import Path
from typing import Any

import pytest

from byok.core.chat import ChatRequest, TextPart
from byok.core.code_query import (
    BlobNames,
    CodeContextBlock,
    CodeQuestion,
    UnknownBlobs,
)
from byok.core.errors import ConfigError, NotReady
from byok.core.events import Finish, FinishReason
from byok.core.routing import Purpose
from byok.protocols.augment.chat_job import chat_lines
from byok.protocols.augment.chat_reply import ChatReply
from byok.protocols.augment.reply_job import ReplyFacts, ReplyJob
from byok.search.index.types import IndexOptions
from byok.search.retrieval.code_context import CodeContext
from byok.server.generate import Grounding, ModelChooser
from byok.settings.sections import ChatSettings
from tests.fakes.bodies import PNG, exchange, image_node, result_node
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.jobs import PLAIN
from tests.fakes.patience import PATIENCE
from tests.fakes.raw import check_error
from tests.fakes.upstream import FakeUpstream

FINISH = Finish(FinishReason.STOP)


async def test_generate_without_a_question_is_an_empty_turn(
    fake: FakeUpstream, client: Editor
) -> None:
    stream = await client.chat("")
    whole = await client.post("/chat", {})
    assert (stream.text, stream.last["stop_reason"]) == ("", 1)
    assert (whole.json["text"], whole.json["stop_reason"]) == ("", 1)
    assert fake.requests == []


async def test_generate_reports_an_unknown_node_type_once(
    caplog: pytest.LogCaptureFixture, client: Editor
) -> None:
    caplog.set_level(logging.INFO, "byok.server.generate")
    nodes = [{"id": 1, "type": 0, "text_node": {"content": "x"}}, {"id": 2, "type": 99}]
    for _ in range(2):
        assert (await client.chat("", nodes=nodes)).text == "Hi."
    reports = [r.getMessage() for r in caplog.records if r.name.endswith(".generate")]
    assert [report[-4:] for report in reports] == [": 99"]


async def test_generate_refuses_a_model_of_a_removed_upstream(
    fake: FakeUpstream, client: Editor
) -> None:
    gone = "byok:gone:m"
    chat = await client.chat("Hi?", model=gone)
    edit = await client.post(
        "/edit", {"model": gone, "instruction": "x", "selected_text": "y"}
    )
    completion = await client.post("/completion", {"model": gone, "prompt": "x = "})
    openai = await client.post("/v1/chat/completions", {"model": gone, "messages": []})
    assert chat.status == 200
    assert chat.text.startswith("\n[byok] The chosen model belongs to")
    assert "byok models" in chat.text and chat.text.count("[byok]") == 1
    assert chat.last["error"]["code"] == "model_not_found"
    assert edit.status == 422
    check_error(edit.json)
    assert (completion.status, completion.json["completion_items"]) == (200, [])
    assert openai.status == 404
    assert openai.json["error"]["code"] == "model_not_found"
    assert fake.requests == []


async def test_a_substituted_model_is_said_once_and_in_no_conversation(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "byok.upstream.router")
    settings = settings_for(fake.url, models=["qwen3", "claude-sonnet-4-5"])
    async with running(settings) as editor:
        replies = [
            await editor.chat(model=model, conversation_id=conversation)
            for model in ("sonnet4.5", "glm-9")
            for conversation in "ab"
        ]
        told = (await editor.post("/byok/catalog")).json["substitutes"]
    assert [reply.text for reply in replies] == ["Hi."] * 4
    asked = [sent["model"] for sent in fake.requests]
    assert asked == [*["claude-sonnet-4-5"] * 2, *["qwen3"] * 2]
    sonnet, glm = "byok:fake:claude-sonnet-4-5", "byok:fake:qwen3"
    assert told == [
        {"asked": "sonnet4.5", "model": sonnet, "alias": f'"sonnet4.5" = "{sonnet}"'},
        {"asked": "glm-9", "model": glm, "alias": f'"glm-9" = "{glm}"'},
    ]
    assert caplog.text.count("sonnet4.5") == 2  # the name, and the alias to write


MODELS = {
    "edit": "byok:fake:editor",
    "next_edit": "byok:fake:predictor",
    "small": "byok:fake:tiny",
    "title": "listed",
    "enhance": "byok:fake:enhancer",
}
TO_ENHANCE = "Reply with <augment-enhanced-prompt> only."
ASKED = {"model": "byok:fake:asked"}


def chooser(editor: Editor) -> ModelChooser:
    services = editor.services
    return ModelChooser(
        services.settings.routing.models,
        services.router,
        services.fallbacks,
        services.moments,
        services.decoding,
    )


@pytest.mark.parametrize(
    ("purpose", "body", "model"),
    [
        (Purpose.EDIT, ASKED, "editor"),
        (Purpose.NEXT_EDIT, ASKED, "predictor"),
        (Purpose.NEXT_EDIT, {"instruction": "Rename it."}, "editor"),
        (Purpose.COMMIT, ASKED, "tiny"),
        (Purpose.ENHANCE, {}, "enhancer"),
        (Purpose.TITLE, {}, "listed"),
        (Purpose.COMPLETION, ASKED, "asked"),
        (Purpose.CHAT, ASKED, "asked"),
        (Purpose.CHAT, {}, "usual"),
        (Purpose.CHAT, {**ASKED, "silent": True}, "tiny"),
        (Purpose.CHAT, {"silent": True, "message": TO_ENHANCE}, "enhancer"),
    ],
)
async def test_a_purpose_has_its_model(
    fake: FakeUpstream, purpose: Purpose, body: dict[str, Any], model: str
) -> None:
    fake.models = []
    upstreams = settings_for(fake.url, models=["usual", "listed"])
    async with running({**upstreams, "routing": {"models": MODELS}}) as editor:
        found = await chooser(editor).choose(purpose, body)
    assert found.model == model


async def test_a_chat_that_names_no_model_has_one_too(fake: FakeUpstream) -> None:
    routing = {"models": {"chat": "byok:fake:talker"}}
    async with running({**settings_for(fake.url), "routing": routing}) as editor:
        found = await chooser(editor).choose(Purpose.CHAT, {})
        silent = await chooser(editor).choose(Purpose.CHAT, {"silent": True})
    assert found.model == "talker"
    assert silent.model == "fake-model"


GPTS = ["gpt-3.5-turbo", "gpt-5.5", "gpt-5.4-mini", "gpt-4"]


@pytest.mark.parametrize(
    ("purpose", "body", "model"),
    [
        (Purpose.CHAT, {}, "gpt-5.5"),
        (Purpose.EDIT, {}, "gpt-5.5"),
        (Purpose.COMMIT, {}, "gpt-5.4-mini"),
        (Purpose.TITLE, {"model": "byok:fake:gpt-5.5"}, "gpt-5.4-mini"),
        (Purpose.COMPLETION, {}, "gpt-5.4-mini"),
        (Purpose.ENHANCE, {}, "gpt-5.5"),
        (Purpose.CHAT, {"silent": True}, "gpt-5.5"),
        (Purpose.COMMIT, {"model": "byok:fake:gpt-4"}, "gpt-4"),
    ],
)
async def test_where_nobody_chose_a_model_small_jobs_get_a_small_one(
    fake: FakeUpstream, purpose: Purpose, body: dict[str, Any], model: str
) -> None:
    fake.models = GPTS
    upstreams = {"fake": {"type": "openai", "base_url": fake.url}}
    async with running({"upstreams": upstreams}) as editor:
        editor.services.catalog.refresh()
        await editor.services.catalog.settle(PATIENCE)
        found = await chooser(editor).choose(purpose, body)
    assert found.model == model


async def test_a_default_of_the_settings_does_the_small_jobs_too(
    fake: FakeUpstream,
) -> None:
    fake.models = GPTS
    given = {
        "upstreams": {"fake": {"type": "openai", "base_url": fake.url}},
        "routing": {"default": "gpt-5.5"},
    }
    async with running(given) as editor:
        editor.services.catalog.refresh()
        await editor.services.catalog.settle(PATIENCE)
        found = await chooser(editor).choose(Purpose.COMMIT, {})
        other = await chooser(editor).choose(Purpose.COMMIT, {"model": "byok:none:m"})
    assert (found.model, other.model) == ("gpt-5.5", "m")


async def test_a_model_of_no_upstream_is_told_at_the_start(fake: FakeUpstream) -> None:
    routing = {"models": {"edit": "byok:none:x"}}
    with pytest.raises(ConfigError, match="edit model 'byok:none:x'"):
        async with running({**settings_for(fake.url), "routing": routing}):
            pass


BODY = {"message": "Where?", "blobs": {"added_blobs": ["a" * 64]}}


class Context(CodeContext):
    """Fails whatever it is asked for."""

    error: Exception = NotReady("It is not open.")

    async def passages(self, wanted: CodeQuestion, length: int) -> CodeContextBlock:
        raise self.error

    async def find_unknown(self, names: BlobNames) -> UnknownBlobs:
        raise self.error


def failing(folder: Path, error: Exception) -> Context:
    files = (folder / "data.db", folder / "index")
    return Context(*files, IndexOptions(), error=error)


async def run(work: Any) -> Any:
    return work()


async def grounded(
    context: Context, body: Any = BODY, *, keeps_uploads: bool = True, **settings: Any
) -> tuple[ChatRequest, ReplyFacts]:
    job: ReplyJob[ChatReply] = chat_lines(body, PLAIN)
    grounding = Grounding(
        context, ChatSettings(**settings), keeps_uploads=keeps_uploads
    )
    return await grounding.ground(job, body, "r", run)


@pytest.mark.parametrize(
    ("error", "level"),
    [(NotReady("The disk is full."), "WARNING"), (KeyError("fault"), "ERROR")],
)
async def test_grounding_failure_is_logged_once_and_the_chat_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception, level: str
) -> None:
    chat, facts = await grounded(failing(tmp_path, error))
    assert chat.messages[-1].parts == (TextPart("Where?"),)
    assert facts == ReplyFacts("r")
    [record] = caplog.records
    assert record.levelname == level
    assert record.getMessage().startswith("a chat continues without code")
    assert (record.exc_info is not None) == (level == "ERROR")


@pytest.mark.parametrize("error", [NotReady("The disk is full."), KeyError("fault")])
async def test_grounding_calls_nothing_unknown_where_blobs_cannot_be_looked_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    _, facts = await grounded(failing(tmp_path, error), {**BODY, "mode": "AGENT"})
    assert facts == ReplyFacts("r")
    [record] = caplog.records
    assert record.getMessage().startswith("nothing is said of blobs")


SVG = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="
HUGE = PNG[:20] + "AAAA" * (6 * 2**20)
SEEN = [{"type": 2, "image_content": {"image_data": PNG, "format": 1}}]


SAID = {"message": "Look."}


def said(**fields: Any) -> dict[str, Any]:
    return {**SAID, **fields}


def shown(data: str = PNG, **fields: Any) -> dict[str, Any]:
    return said(nodes=[image_node(data)], **fields)


def offering(*names: str, server: str = "") -> dict[str, Any]:
    of = {"mcp_server_name": server} if server else {}
    tools = [{"name": name, "input_schema_json": "{}", **of} for name in names]
    return said(mode="AGENT", tool_definitions=tools)


def long(tokens: int) -> list[dict[str, Any]]:
    return [exchange("a" * int(tokens * 3.5), "Yes.")]


LOOKED = exchange("Look.", "Ok.", nodes=[image_node()])
LOOKING = {"chat_history": [exchange("Look.", nodes=[image_node()], calls="t")]}
RESULT_SHOWN = {
    "nodes": [result_node("t", content_nodes=SEEN)],
    "chat_history": [exchange("Look.", calls="t")],
}
VERY_LONG = {"chat_history": long(90_000)}
GROWN = {
    "chat_history": [
        exchange("a" * 20_000, calls="t"),
        exchange(nodes=[result_node("t", "b" * 9000)], calls="u"),
    ],
}
OWN_PARENT = {"conversation_id": "p", "parent_conversation_id": "p"}
NO_IDS: dict[str, Any] = {"conversation_id": {}, "parent_conversation_id": [1, None]}
CONTINUES = {"message": "", "nodes": [result_node("t")]}
CHILD = {"conversation_id": "c", "parent_conversation_id": "p"}
HOME, FAR = {"model": "byok:home:h"}, {"model": "byok:far:f"}
SITUATIONS: list[tuple[str, dict[str, Any], str]] = [
    ("a plain chat", SAID, "home:small"),
    ("the client names a model", said(**FAR), "far:f"),
    ("a new picture", shown(), "far:eyes"),
    ("a picture alone", {"nodes": [image_node()]}, "far:eyes"),
    ("a picture, the client names a model", shown(**FAR), "far:eyes"),
    ("a picture, the client keeps the chat on this machine", shown(**HOME), "home:h"),
    ("a picture that is an SVG", shown(SVG), "home:small"),
    ("a picture of 24 MB", shown(HUGE), "home:small"),
    ("a picture that is broken", shown(PNG[8:]), "home:small"),
    ("a picture in an earlier turn", said(chat_history=[LOOKED]), "home:small"),
    ("results of the turn of a picture", {**CONTINUES, **LOOKING}, "far:eyes"),
    ("a picture in the results of a turn", RESULT_SHOWN, "home:small"),
    ("a long chat", said(chat_history=long(7600)), "far:wide"),
    ("a chat that is nearly long", said(chat_history=long(6400)), "home:small"),
    ("a long chat, nobody knows the window", said(**FAR, **VERY_LONG), "far:f"),
    ("a long chat with a picture", shown(chat_history=long(7600)), "far:eyes"),
    ("a turn that became long by its results", {**CONTINUES, **GROWN}, "home:small"),
    ("a sub-agent", said(**CHILD), "home:helper"),
    ("a sub-agent that names a model", said(**CHILD, **FAR), "home:helper"),
    (
        "a long chat of a sub-agent",
        said(**CHILD, chat_history=long(7600)),
        "home:helper",
    ),
    ("a conversation that is its own parent", said(**OWN_PARENT), "home:small"),
    ("ids that are numbers", said(parent_conversation_id=7), "home:helper"),
    ("ids that are no ids", said(**NO_IDS), "home:small"),
    ("tools that read", offering("view", "diagnostics"), "home:planner"),
    ("tools of which one writes", offering("view", "save-file"), "home:small"),
    ("a tool that nobody knows", offering("view", "look"), "home:small"),
    (
        "one of a server, as one that reads",
        offering("view", server="box"),
        "home:small",
    ),
    ("an agent without tools", offering(), "home:small"),
    ("a chat with tools that read", {**offering("view"), "mode": "CHAT"}, "home:small"),
    ("a sub-agent that reads", {**offering("view"), **CHILD}, "home:helper"),
    ("a silent job with a picture", shown(silent=True), "home:small"),
]
SETTINGS = {
    "upstreams": {
        "home": {
            "base_url": "http://127.0.0.1:9/v1",
            "models": ["small", "helper", "planner"],
            "facts": {"small": {"window": 10_000}, "helper": {"window": 90_000}},
        },
        "far": {"base_url": "https://far.example/v1", "models": ["f", "eyes", "wide"]},
    },
    "routing": {
        "models": {
            "image": "byok:far:eyes",
            "long_context": "byok:far:wide",
            "subagent": "byok:home:helper",
            "plan": "planner",
        }
    },
}


@pytest.mark.case("B130")
async def test_each_moment_of_a_chat_has_its_model() -> None:
    async with running(SETTINGS) as editor:
        models = chooser(editor)
        found = {
            name: (await models.choose(Purpose.CHAT, body)).model_id
            for name, body, _ in SITUATIONS
        }
    assert found == {name: f"byok:{model}" for name, _, model in SITUATIONS}


async def test_rules_hold_for_other_clients_as_far_as_their_bodies_tell(
    fake: FakeUpstream,
) -> None:
    models = {"image": "byok:fake:eyes", "plan": "byok:fake:planner"}
    section = settings_for(fake.url, models=["small"])
    url = {"url": f"data:image/png;base64,{PNG}"}
    shown = [{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]
    answered = [*shown, {"role": "assistant", "content": "A button."}]
    said = [{"role": "user", "content": "Hi."}]
    unreadable = [{"role": "user", "content": [{"type": "video_url"}]}]
    async with running({**section, "routing": {"models": models}}) as editor:
        for messages in (said, shown, [*answered, *said], unreadable):
            body = {"model": "byok:fake:small", "messages": messages}
            await editor.post("/v1/chat/completions", body)
    assert [sent["model"] for sent in fake.requests] == [
        "small",
        "eyes",
        "small",
        "small",
    ]
