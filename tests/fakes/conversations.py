"""Random conversations as clients send them, and what must become of each."""

import base64
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import strategies as st

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
IDS = (
    "call_a", "call_b", "call_0_0", "call_0_1", "call_1_0", "functions.view:0", "",
    "", "x" * 40, "x" * 41, "y" * 300, "two words", "вызов", "😀", "a\tb",
)  # fmt: skip
NAMES = (
    "view", "save-file", "mcp.server/tool", "读取", "名", "a b", "-", "..", "view_",
    "z" * 64, "z" * 65, "z" * 70, "🛠", "launch-process",
)  # fmt: skip
INPUTS = ('{"path": "a.py"}', "{}", "", "[1]", '{"bad', None, '{"deep": [{"x": 1}]}')
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"input_schema_json": '{"type": "object", "properties": {"path": {}}}'},
    {"input_schema_json": "not JSON"},
    {"input_schema_json": '{"anyOf": [{"type": "object"}], "$schema": "x"}'},
    {"input_schema": {"properties": {"n": {"$ref": "#"}}, "type": ["object", "null"]}},
    {"parameters": {"type": "object"}},
    {},
)
CONTEXT: tuple[dict[str, Any], ...] = (
    {"type": 3, "image_id_node": {"image_id": "i1", "format": 1}},
    {
        "type": 4,
        "ide_state_node": {
            "workspace_folders": [{"folder_root": "/w", "repository_root": "/w"}],
            "current_terminal": {"current_working_directory": "/w/x"},
        },
    },
    {"type": 4, "ide_state_node": {"workspace_folders_unchanged": True}},
    {
        "type": 5,
        "edit_events_node": {
            "edit_events": [
                {"path": "a.py", "edits": [{"before_text": "a", "after_text": "b"}]}
            ]
        },
    },
    {"type": 6, "checkpoint_ref_node": {"request_id": "r"}},
    {"type": 7, "change_personality_node": {"custom_instructions": "Be calm."}},
    {"type": 9, "file_id_node": {"file_name": "a.pdf"}},
    {"type": 77, "new_node": {"x": 1}},
    {"type": 0, "content": "an old answer that is not the user's"},
)
PICTURES: tuple[dict[str, Any], ...] = (
    {"type": 2, "image_node": {"image_data": PNG, "format": 1}},
    {"type": 2, "image_node": {"image_data": f"data:image/png;base64,{PNG}"}},
    {"type": 2, "image_node": {"image_data": "http://169.254.169.254/x", "format": 0}},
    {"type": 2, "image_node": {"image_data": PNG[:32] + "!!!!", "format": 1}},
    {"type": 2, "image_node": {"image_data": "aGVsbG8h", "format": [1]}},
    {"type": 8, "file_node": {"file_data": PNG, "format": "image/png"}},
    {"type": 8, "file_node": {"file_data": "aGVsbG8h", "format": "text/plain"}},
    {"type": 8, "file_node": {"file_data": "%%", "format": "application/pdf"}},
)
NULLABLE = (
    "model", "path", "lang", "prefix", "selected_code", "suffix", "rules", "blobs",
    "agent_memories", "persona_type", "third_party_override", "user_guidelines",
)  # fmt: skip


@dataclass
class Conversation:
    """A body, and the unique words in it that must reach the upstream.

    `newest` is in the user's current text, "" where there is none; `paired` maps the
    words of a result to the id of the call that it answers; `hidden` must not arrive.
    """

    body: dict[str, Any] = field(default_factory=dict)
    newest: str = ""
    must_ask: bool = False
    kept: list[str] = field(default_factory=list)
    paired: dict[str, str] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Draw a conversation from everything that a client may send."""
    return _Maker(draw).make()


class _Maker:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._numbers = count(1)
        self._open: list[str] = []  # ids of the calls that the next turn may answer
        self._seen: list[str] = []
        self._said_by: dict[int, str] = {}  # result -> its words
        self._out = Conversation()

    def make(self) -> Conversation:
        out, body = self._out, self._out.body
        body["chat_history"] = [self._exchange() for _ in range(self._upto(5))]
        turn = self._turn("message", ("nodes", "structured_request_nodes"))
        body.update(turn, conversation_id="c")
        if self._one_in(2):
            body["tool_definitions"] = [self._tool() for _ in range(self._upto(4))]
        body["mode"] = self._of("CHAT", "AGENT", "CLI_AGENT", 7, None)
        body["silent"] = self._of(False, False, False, True)
        body["feature_detection_flags"] = self._of(
            {"support_parallel_tool_use": True, "support_tool_use_start": True}, {}
        )
        if self._one_in(3):
            body.update(path="a.py", lang="python", prefix="p", selected_code="s = 1")
        if self._one_in(4):
            body.update(user_guidelines="Be brief.", rules=["One.", {"text": "Two."}])
        body.update(dict.fromkeys(self._some(NULLABLE)))
        if self._one_in(8):
            out.body = camel_case(body)
        return out

    def _exchange(self) -> dict[str, Any]:
        names = ("request_nodes", "structured_request_nodes", "nodes")
        item = self._turn("request_message", names)
        self._out.newest, self._out.must_ask = "", False
        return {**item, **self._reply()}

    def _turn(self, message: str, carriers: tuple[str, ...]) -> dict[str, Any]:
        """Draw one request; what it says is put down in the expectations."""
        out = self._out
        nodes: list[dict[str, Any]] = []
        summarised = self._one_in(12)
        if summarised:
            out.kept.clear()
            out.paired.clear()
            self._open = []
            nodes.append(self._summary())
        nodes += self._results()
        out.must_ask = bool(nodes)
        nodes += self._some(CONTEXT)
        pictures = self._some(PICTURES)
        nodes += pictures
        words = self._words() if self._one_in(1, 3) else ""
        fields: dict[str, Any] = {message: self._of("", "...", "----", None)}
        if words:
            out.newest = words
            out.kept.append(words)
            place = self._of("message", "nodes", "both")
            if place != "nodes":
                fields[message] = words
            if place != "message":
                nodes.append({"type": 0, "text_node": {"content": words}})
        else:
            out.newest = ""
        out.must_ask = out.must_ask or bool(pictures or words)
        nodes = self._draw(st.permutations(nodes)) if self._one_in(3) else nodes
        self._pair(nodes)
        numbered = [{"id": n, **node} for n, node in enumerate(nodes)]
        cut = self._upto(len(numbered)) if self._one_in(4) else len(numbered)
        fields[carriers[0]], fields[carriers[1]] = numbered[:cut], numbered[cut:]
        return fields

    def _results(self) -> list[dict[str, Any]]:
        """Draw results for the open calls: some missing, strange, twice, late."""
        wanted = [i for i in self._open if not self._one_in(5)]
        if self._one_in(4):
            wanted = list(self._draw(st.permutations(wanted)))
        if self._one_in(4):
            wanted += self._some((*self._seen, *IDS))
        nodes = []
        for call_id in wanted:
            words = self._words()
            self._out.kept.append(words)
            nodes.append({"type": 1, "tool_result_node": self._result(call_id, words)})
        return nodes

    def _pair(self, nodes: list[dict[str, Any]]) -> None:
        """Put down which result answers which call: the first one of its id."""
        for node in nodes:
            result = node.get("tool_result_node", {})
            call_id = result.get("tool_use_id")
            if call_id and call_id in self._open:
                self._open.remove(call_id)
                self._out.paired[self._said_by[id(result)]] = call_id
        self._open = []

    def _result(self, call_id: str, words: str) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [{"type": 1, "text_content": words}]
        if self._one_in(3):
            picture = {"image_data": self._of(PNG, "?"), "format": 1}
            parts.append({"type": 2, "image_content": picture})
        shape = self._of(0, 0, 1, 2)
        long = words + " and so on" * 1200
        node: dict[str, Any] = {
            "tool_use_id": call_id or self._of("", None),
            "content": ("" if shape == 1 else self._of(words, words, long)),
            "is_error": self._of(False, False, True, None),
        }
        if shape:
            node["content_nodes"] = parts
        self._said_by[id(node)] = words
        return node

    def _reply(self) -> dict[str, Any]:
        nodes: list[dict[str, Any]] = []
        fields: dict[str, Any] = {}
        if self._one_in(1, 3):
            words = self._words()
            self._out.kept.append(words)
            said = words
            if self._one_in(6):
                notice = self._words()
                self._out.hidden.append(notice)
                said = f"{words}\n[byok] {notice}"
            match self._of("text", "node", "finished", "both"):
                case "text":
                    fields["response_text"] = said
                case "node":
                    nodes.append({"type": 0, "content": said})
                case "finished":
                    nodes.append({"type": 2, "content": said})
                case _:
                    fields["response_text"] = said
                    nodes.append({"type": 0, "content": said})
        if self._one_in(6):
            nodes.append({"type": 8, "thinking": {"summary": "hm"}})
        calls = [self._call() for _ in range(self._of(0, 0, 1, 1, 2, 4))]
        self._open = list(dict.fromkeys(call["tool_use_id"] for call in calls))
        self._seen += self._open
        for call in calls:
            kinds = self._of((5,), (5,), (7, 5), (7,), (5, 7))
            nodes += [{"type": kind, "tool_use": call} for kind in kinds]
        numbered = [{"id": n, **node} for n, node in enumerate(nodes)]
        fields[self._of("response_nodes", "structured_output_nodes")] = numbered
        return fields

    def _call(self) -> dict[str, Any]:
        return {
            "tool_use_id": self._of(*IDS),
            "tool_name": self._of(*NAMES),
            "input_json": self._of(*INPUTS),
            "is_partial": False,
        }

    def _summary(self) -> dict[str, Any]:
        words = "" if self._one_in(3) else self._words()
        self._out.kept.append(words)
        templates = (
            "Before: {summary} {x} {end_part_full}",
            "So: {summary}",
            None,
            "",
        )
        payload = {
            "summary_text": words,
            "history_beginning_dropped_num_exchanges": 3,
            "history_middle_abridged_text": "{summary}",
            "history_end": [{"request_message": "Run it.", "response_text": "Yes."}],
            "message_template": self._of(*templates),
        }
        return {"type": 10, "history_summary_node": payload}

    def _tool(self) -> dict[str, Any]:
        row = {"name": self._of(*NAMES), "description": "d", **self._of(*SCHEMAS)}
        return {"definition": row} if self._one_in(6) else row

    def _words(self) -> str:
        return f"words-{next(self._numbers)}."

    def _of(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def _some(self, choices: tuple[Any, ...]) -> list[Any]:
        """Draw none of them mostly, else one to three."""
        return [self._of(*choices) for _ in range(self._of(0, 0, 0, 1, 2, 3))]

    def _upto(self, most: int) -> int:
        return self._draw(st.integers(0, most))

    def _one_in(self, many: int, less: int = 0) -> bool:
        """Draw true once in `many`; with (1, n) true unless once in n."""
        if less:
            return self._upto(less - 1) > 0
        return self._upto(many - 1) == many - 1


def camel_case(value: Any) -> Any:
    """Spell every key of a body as older clients do."""
    if isinstance(value, list):
        return [camel_case(item) for item in value]
    if isinstance(value, dict):
        return {_camel(key): camel_case(item) for key, item in value.items()}
    return value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
