"""The forms in which models print tool calls, as texts with the calls that they are.

Sources: the chat templates that vendors publish, the parsers of public inference
servers, and reports of calls that arrived as text. All are written for this test and
stand in `printed_forms.txt`, each below a line with its calls and its name.
"""

from typing import Any, TypeAlias

from tests.fakes.samples import read_samples

Calls: TypeAlias = list[tuple[str, dict[str, Any]]]

TOOLS: dict[str, dict[str, Any]] = {
    "view": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "line": {"type": "integer"},
            "all": {"type": "boolean"},
            "ranges": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["path"],
    },
    "save-file": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    "launch-process": {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "wait": {"type": "boolean"},
            "seconds": {"type": "number"},
            "mode": {"type": "string", "enum": ["quick", "slow"]},
        },
        "required": ["command", "wait"],
    },
    "codebase-retrieval": {
        "type": "object",
        "properties": {"information_request": {"type": "string"}},
        "required": ["information_request"],
    },
    "read-terminal": {"type": "object", "properties": {}},
}

_VIEW = ("view", {"path": "README.md"})
_CALLS: dict[str, Calls] = {
    "VIEW": [_VIEW],
    "LINE": [("view", {"path": "README.md", "line": 3})],
    "RUN": [("launch-process", {"command": 'grep -n "a b" *.py', "wait": True})],
    "SAVE": [("save-file", {"path": "a.py", "content": "if a < b:\n    f('x')\n"})],
    "LOOK": [("read-terminal", {})],
    "TWO": [_VIEW, ("view", {"path": "b.py"})],
}

FORMS: dict[str, tuple[str, Calls]] = {
    name: (text.removesuffix("\n").replace("{ns}", "ant" + "ml:"), _CALLS[calls])
    for calls, name, text in read_samples("printed_forms.txt")
}
