"""An agent's prompt is read from the upstream's cache, whatever the editor changes."""

from typing import Any

import pytest

from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.prefix_cache import CachingUpstream

GUIDELINES = "Write small functions. " * 400
TOOLS = [
    {
        "name": name,
        "description": f"Use {name} for what it does. " * 8,
        "input_schema_json": '{"type":"object","properties":{"path":{}}}',
    }
    for name in ("view", "launch-process", "save-file", "remove-files", "diagnostics")
]
CASES = [
    pytest.param({"type": "anthropic"}, "claude-sonnet-4-6", False, id="anthropic"),
    pytest.param(
        {"type": "openrouter"}, "anthropic/claude-sonnet-4.6", False, id="openrouter"
    ),
    pytest.param(
        {"type": "openai", "dialect": "openai_chat"}, "gpt-4.1", True, id="keyed"
    ),
]


@pytest.mark.parametrize(
    ("section", "model"),
    [
        ({"type": "anthropic"}, "claude-opus-5"),
        ({"type": "openrouter"}, "anthropic/claude-opus-5"),
    ],
)
async def test_claude_on_bedrock_and_vertex_is_read_from_the_cache(
    section: dict[str, Any], model: str
) -> None:
    """They take no cache point at the top of the body: those of blocks stay."""
    async with CachingUpstream(at_top=False) as upstream:
        settings = {**section, "base_url": upstream.url, "models": [model]}
        environ = {"BYOK_KEY_BOX": "k"}
        async with running({"upstreams": {"box": settings}}, environ=environ) as editor:
            await ask_ten_times(editor, changes=False)
    assert len(upstream.refusals) == 1
    assert len(upstream.reads) == 10
    assert min(upstream.reads[2:]) >= 0.9


async def ask_ten_times(editor: Editor, *, changes: bool) -> list[Answer]:
    """Run an agent for ten turns; in the sixth, with `changes`, the editor differs."""
    history: list[dict[str, Any]] = []
    answers: list[Answer] = []
    body: dict[str, Any] = {"path": "a.py", "agent_memories": "Tests run with pytest."}
    said: dict[str, Any] = {"message": "Rename the function.", "nodes": []}
    tools = TOOLS
    for turn in range(1, 11):
        if changes and turn == 6:
            body = {"path": "b.py", "agent_memories": "Use tabs."}
            tools = TOOLS[::-1]
        answer = await editor.chat(
            mode="CLI_AGENT",
            conversation_id="c-1",
            user_guidelines=GUIDELINES,
            tool_definitions=tools,
            chat_history=history,
            selected_code="def old(): ...",
            **body,
            **said,
        )
        answers.append(answer)
        past = {"request_message": said["message"], "request_nodes": said["nodes"]}
        history = [*history, {**past, "response_nodes": answer.nodes}]
        use = answer.tool_uses[0]
        result = {"tool_use_id": use["tool_use_id"], "content": "line of code\n" * 30}
        said = {
            "message": "",
            "nodes": [{"id": 1, "type": 1, "tool_result_node": result}],
        }
    return answers


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize(("section", "model", "keyed"), CASES)
async def test_nine_tenths_of_an_agents_prompt_are_read_from_the_cache(
    section: dict[str, Any], model: str, keyed: bool, changes: bool
) -> None:
    async with CachingUpstream(keyed=keyed) as upstream:
        upstream.models = [model]
        settings = {**section, "base_url": upstream.url, "model": model}
        environ = {"BYOK_KEY_BOX": "k"}
        async with running({"upstreams": {"box": settings}}, environ=environ) as editor:
            answers = await ask_ten_times(editor, changes=changes)
    assert len(upstream.reads) == 10
    assert min(upstream.reads[2:]) >= 0.9
    counts = [
        node["token_usage"]
        for answer in answers[2:]
        for node in answer.nodes
        if node["type"] == 10
    ]
    assert len(counts) == 8
    for count in counts:
        assert count["cache_read_input_tokens"] >= 0.9 * count["input_tokens"]
