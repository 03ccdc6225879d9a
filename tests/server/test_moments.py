"""The model for each moment of a chat, from bodies as clients send them."""

from typing import Any

import pytest

from byok.core.routing import Purpose
from byok.server.generate import ModelChooser
from tests.fakes.bodies import PNG, exchange, image_node, result_node
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.upstream import FakeUpstream

SVG = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="
HUGE = PNG[:20] + "AAAA" * (6 * 2**20)
SEEN = [{"type": 2, "image_content": {"image_data": PNG, "format": 1}}]


def offering(*names: str, **fields: str) -> dict[str, Any]:
    tools = [{"name": name, "input_schema_json": "{}", **fields} for name in names]
    return {"mode": "AGENT", "tool_definitions": tools}


def long(tokens: int) -> list[dict[str, Any]]:
    return [exchange("a" * int(tokens * 3.5), "Yes.")]


SAID = {"message": "Look."}
CONTINUES = {"message": "", "nodes": [result_node("t")]}
CHILD = {"conversation_id": "c", "parent_conversation_id": "p"}
HOME, FAR = {"model": "byok:home:h"}, {"model": "byok:far:f"}
SITUATIONS: list[tuple[str, dict[str, Any], str]] = [
    ("a plain chat", SAID, "home:small"),
    ("the client names a model", {**SAID, **FAR}, "far:f"),
    ("a new picture", {**SAID, "nodes": [image_node()]}, "far:eyes"),
    ("a picture alone", {"nodes": [image_node()]}, "far:eyes"),
    (
        "a picture, the client names a model",
        {**FAR, "nodes": [image_node()]},
        "far:eyes",
    ),
    (
        "a picture, the client keeps the chat on this machine",
        {**HOME, "nodes": [image_node()]},
        "home:h",
    ),
    ("a picture that is an SVG", {**SAID, "nodes": [image_node(SVG)]}, "home:small"),
    ("a picture of 24 MB", {**SAID, "nodes": [image_node(HUGE)]}, "home:small"),
    (
        "a picture that is broken",
        {**SAID, "nodes": [image_node(PNG[8:])]},
        "home:small",
    ),
    (
        "a picture in an earlier turn",
        {
            **SAID,
            "chat_history": [exchange("Look.", "Ok.", nodes=[image_node()])],
        },
        "home:small",
    ),
    (
        "results of the turn of a picture",
        {
            **CONTINUES,
            "chat_history": [exchange("Look.", nodes=[image_node()], calls="t")],
        },
        "far:eyes",
    ),
    (
        "a picture in the results of a turn",
        {
            "nodes": [result_node("t", content_nodes=SEEN)],
            "chat_history": [exchange("Look.", calls="t")],
        },
        "home:small",
    ),
    ("a long chat", {**SAID, "chat_history": long(7600)}, "far:wide"),
    ("a chat that is nearly long", {**SAID, "chat_history": long(6400)}, "home:small"),
    (
        "a long chat of a model whose window nobody knows",
        {**SAID, **FAR, "chat_history": long(90_000)},
        "far:f",
    ),
    (
        "a long chat with a picture",
        {"nodes": [image_node()], "chat_history": long(7600)},
        "far:eyes",
    ),
    (
        "a turn that became long by its results",
        {
            **CONTINUES,
            "chat_history": [
                exchange("a" * 20_000, calls="t"),
                exchange(nodes=[result_node("t", "b" * 9000)], calls="u"),
            ],
        },
        "home:small",
    ),
    ("a sub-agent", {**SAID, **CHILD}, "home:helper"),
    ("a sub-agent that names a model", {**SAID, **CHILD, **FAR}, "home:helper"),
    (
        "a long chat of a sub-agent, whose window is larger",
        {**SAID, **CHILD, "chat_history": long(7600)},
        "home:helper",
    ),
    (
        "a conversation that is its own parent",
        {**SAID, "conversation_id": "p", "parent_conversation_id": "p"},
        "home:small",
    ),
    ("ids that are numbers", {**SAID, "parent_conversation_id": 7}, "home:helper"),
    (
        "ids that are no ids",
        {**SAID, "conversation_id": {}, "parent_conversation_id": [1, None]},
        "home:small",
    ),
    ("tools that read", {**SAID, **offering("view", "diagnostics")}, "home:planner"),
    (
        "tools of which one writes",
        {**SAID, **offering("view", "save-file")},
        "home:small",
    ),
    ("a tool that nobody knows", {**SAID, **offering("view", "look")}, "home:small"),
    (
        "a tool of a server that is called as one that reads",
        {**SAID, **offering("view", mcp_server_name="box")},
        "home:small",
    ),
    ("an agent without tools", {**SAID, **offering()}, "home:small"),
    (
        "a chat with tools that read",
        {**SAID, **offering("view"), "mode": "CHAT"},
        "home:small",
    ),
    ("a sub-agent that reads", {**SAID, **CHILD, **offering("view")}, "home:helper"),
    (
        "a silent job with a picture",
        {**SAID, "silent": True, "nodes": [image_node()]},
        "home:small",
    ),
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


def chooser(editor: Editor) -> ModelChooser:
    services = editor.services
    return ModelChooser(
        services.settings.routing.models,
        services.router,
        services.fallbacks,
        services.moments,
        services.decoding,
    )


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
