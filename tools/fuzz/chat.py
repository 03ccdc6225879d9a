"""A client's body to an upstream's request that OpenAI's own rules accept."""

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from byok.core.chat import ChatRequest, Role, Sampling
from byok.core.errors import ByokError
from byok.core.wire.json_body import parse_body, write_json
from byok.dialects.base import Target as ModelTarget
from byok.dialects.base import write_request
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.protocols.augment.chat_job import code_question, with_passages
from byok.protocols.augment.chat_request import decode_chat, place_of
from byok.protocols.augment.prompts import completion
from byok.protocols.augment.reply_job import Defaults
from byok.upstream.window.compaction import Compaction, plan
from byok.upstream.window.estimate import weigh
from tests.fakes.clock import check_linear
from tests.fakes.strict import broken_rules
from tools.fuzz.target import Draw, Target

_OTHERS = ("mistral", "deepseek", "anthropic", "gemini", "zai")
_DEFAULTS = (Defaults(), Defaults("Be brief.", "Always.", Sampling(0.5, 0.9, 100)))
# The types of nodes, the field that has the payload of each, and names in the payload.
_NODES = (
    (0, "text_node", ("content", "")),
    (1, "tool_result_node", ("tool_use_id", "content", "is_error", "content_nodes")),
    (2, "image_node", ("image_data", "format")),
    (3, "image_id_node", ("image_id", "format")),
    (4, "ide_state_node", ("workspace_folders", "current_terminal")),
    (5, "edit_events_node", ("edit_events", "path")),
    (5, "tool_use", ("tool_use_id", "tool_name", "input_json", "is_partial")),
    (7, "tool_use", ("tool_use_id", "tool_name", "input_json", "is_partial")),
    (7, "change_personality_node", ("custom_instructions", "personality_type")),
    (8, "thinking", ("summary", "content", "encrypted_content")),
    (8, "file_node", ("file_data", "format")),
    (9, "file_id_node", ("file_name", "file_id")),
    (
        10,
        "history_summary_node",
        ("summary_text", "history_end", "message_template", "history_middle_abridged"),
    ),
)
_INNER = (
    *("request_message", "response_text", "request_id", "folder_root", "edits"),
    *("current_working_directory", "before_text", "after_text", "text_content"),
    *("image_content", "type", "name", "description", "input_schema_json"),
    *("input_schema", "parameters", "definition", "properties", "required"),
)
_FIELDS = (
    *("message", "model", "mode", "path", "lang", "prefix", "selected_code", "suffix"),
    *("diff", "blobs", "user_guidelines", "workspace_guidelines", "rules", "skills"),
    *("agent_memories", "memories_info", "persona_type", "silent", "prompt"),
    *("feature_detection_flags", "third_party_override", "system_prompt"),
    *("system_prompt_append", "system_prompt_replacements", "instruction"),
    *("disable_selected_code_details", "conversation_id", "user_guided_blobs"),
    *("user_specified_files", "disable_retrieval", "suffix", "edit_events"),
)
_TURN_NODES = ("nodes", "structured_request_nodes", "request_nodes")
_REPLY_NODES = ("response_nodes", "structured_output_nodes")
_TEXTS = (
    *("Hello", "", "...", "{summary}", "call_a", "call_b", "view", "mcp.x/y", "{}"),
    *('{"path": "a"}', "[1]", '{"bad', "iVBORw0KGgo=", "data:image/png;base64,iVBO"),
    *('{"type": "object", "properties": null}', "image/png", "\ud83d", "x" * 70, "-1"),
    '{"byok":1,"dialect":"d","upstream":"u","model":"m","data":{"s":1}}',
    *("[byok] no", "----", "\n", "9" * 40, "1e400", "true", "²", "is {x} {end_part}"),
)


def check(data: bytes) -> None:
    """Check raw bytes as a body, or a body built from what clients send."""
    draw = Draw(data)
    way = draw.byte()
    options: Any = {"settings": [draw.of(_DEFAULTS)], "others": [draw.of(_OTHERS)]}
    if way % 4 == 0:
        check_body(draw.rest(), **options)
        return
    body = json.dumps(_body(draw), ensure_ascii=way % 4 != 1)
    raw = body.encode("utf-8", "surrogatepass" if way > 200 else "replace")
    check_body(raw, **options)


def check_body(
    raw: bytes,
    settings: Sequence[Defaults] = _DEFAULTS,
    others: Sequence[str] = _OTHERS,
) -> None:
    """Check that a body becomes a request that breaks no rule, or a clear refusal."""
    try:
        body = parse_body(raw)
    except ByokError as error:
        assert 400 <= error.status < 500
        return
    place_of(body)
    completion.decode(body, Defaults())
    for defaults in settings:
        chat = decode_chat(body, defaults)
        code_question(body, chat)
        if not chat.messages:
            continue
        chat = with_passages(_compact(chat), "code\n")
        for name in ("openai", *others):
            _, request = write_request(OpenAIChat.of(name), chat, ModelTarget("m"))
            written = write_json(request.body)
            written.decode()
            if name == "openai":
                assert broken_rules(json.loads(written)) == []
            names = [tool["function"]["name"] for tool in request.body.get("tools", ())]
            assert {request.tool_names[name] for name in names} == {
                tool.name for tool in chat.tools
            }


def _compact(chat: ChatRequest) -> ChatRequest:
    """Return a chat as it is sent if only half of it fits into the window."""
    first = int(chat.messages[0].role is Role.SYSTEM)
    system, body = chat.messages[:first], chat.messages[first:]
    budget = sum(map(weigh, body)) // 2
    cut = plan(body, budget, weigh, chat.own_words)
    if cut is None:
        return chat
    compaction = Compaction(0, ()).extend(cut, "Summary.")
    return replace(chat, messages=(*system, *compaction.apply(body)))


def check_time(data: bytes) -> None:
    """Check that a history twice as long takes twice the time."""
    draw = Draw(data)
    item = _exchange(draw)
    if not _large(item):

        def decode(size: int) -> None:
            body = {"message": "Go on.", "chat_history": [item] * size}
            chat = decode_chat(body, Defaults())
            OpenAIChat.of("openai").encode(chat, ModelTarget("m"))

        check_linear(decode, 400)


def _large(item: Any) -> bool:
    return len(json.dumps(item)) > 2000


def _body(draw: Draw) -> dict[str, Any]:
    body: dict[str, Any] = {
        "message": _text(draw),
        "chat_history": [_exchange(draw) for _ in range(draw.upto(4))],
        **{draw.of(_TURN_NODES): _nodes(draw) for _ in range(draw.upto(2))},
    }
    if draw.one_in(2):
        body["tool_definitions"] = [_tool(draw) for _ in range(draw.upto(4))]
    for _ in range(draw.upto(3)):
        body[draw.of(_FIELDS)] = _anything(draw, 0)
    return body


def _exchange(draw: Draw) -> dict[str, Any]:
    return {
        "request_message": _text(draw),
        "response_text": _text(draw),
        draw.of(_TURN_NODES): _nodes(draw),
        draw.of(_REPLY_NODES): _nodes(draw),
    }


def _nodes(draw: Draw) -> Any:
    if draw.one_in(12):
        return _anything(draw, 0)
    return [_node(draw) for _ in range(draw.upto(4))]


def _node(draw: Draw) -> dict[str, Any]:
    kind, field, names = draw.of(_NODES)
    if draw.one_in(16):
        kind = draw.upto(12)
    payload = {name: _field(draw) for name in names if not draw.one_in(6)}
    return {"id": draw.upto(3), "type": kind, field: payload, "content": _text(draw)}


def _field(draw: Draw) -> Any:
    return _anything(draw, 0) if draw.one_in(5) else _text(draw)


def _tool(draw: Draw) -> dict[str, Any]:
    tool = {name: _field(draw) for name in ("name", "description")}
    name = draw.of(("input_schema_json", "input_schema", "parameters", "nothing"))
    tool[name] = _field(draw)
    return {"definition": tool} if draw.one_in(6) else tool


def _anything(draw: Draw, depth: int) -> Any:
    match draw.upto(9) if depth < 5 else 0:
        case 0:
            return None
        case 1:
            return draw.one_in(2)
        case 2:
            return draw.of((0, 1, -1, 2, 5, 10**30, 1.5, 1e300))
        case 3:
            return [_anything(draw, depth + 1) for _ in range(draw.upto(3))]
        case 4 | 5:
            names: Sequence[str] = (*_INNER, *_FIELDS, *(n[1] for n in _NODES))
            return {
                draw.of(names): _anything(draw, depth + 1) for _ in range(draw.upto(3))
            }
        case 6:
            return [_node(draw) for _ in range(draw.upto(2))]
        case _:
            return _text(draw)


def _text(draw: Draw) -> str:
    if draw.one_in(5):
        return draw.raw(12).decode("utf-8", "surrogateescape")
    return draw.of(_TEXTS)


_BODY = {
    "message": "Go on.",
    "chat_history": [
        {
            "request_message": "Look",
            "response_nodes": [
                {
                    "id": 1,
                    "type": 5,
                    "tool_use": {
                        "tool_use_id": "c",
                        "tool_name": "view",
                        "input_json": "{}",
                    },
                }
            ],
        }
    ],
    "nodes": [
        {"id": 1, "type": 1, "tool_result_node": {"tool_use_id": "c", "content": "x"}}
    ],
}
TARGET = Target(
    check,
    seeds=[
        bytes(3) + json.dumps(_BODY).encode(),
        *(bytes([n, *((n * k) % 251 for k in range(9, 200))]) for n in range(1, 24)),
    ],
    words=[
        *(b'"%s"' % name.encode() for name in (*_FIELDS, *_INNER, *_TURN_NODES)),
        *(
            b"[[[[",
            b"]]]]",
            b"{}",
            b"null",
            b"\\ud83d",
            b"1e999",
            b'"type":',
            b"{" * 20,
        ),
    ],
    slow=check_time,
)
