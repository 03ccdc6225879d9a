"""Whole answers of the text endpoints, byte for byte as in tests/golden.

`pytest tests/e2e/test_golden.py --update-golden` writes them anew; read the difference.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.bodies import exchange
from tests.fakes.daemon import Editor
from tests.fakes.upstream import FakeUpstream, answer

GOLDEN = Path(__file__).parents[1] / "golden"
SELECTION = {
    "instruction": "rename",
    "prefix": 'G = "🚢"\r\n\r\n',
    "selected_text": "def fare(kind):\r\n",
    "suffix": "    return 1\r\n",
    "path": "fares.py",
}
CODE = ("```py", "thon\ndef fee(ki", "nd):\n```")
CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "/prompt-enhancer": ({"message": "faster"}, ("\nMake fares", " faster.\n")),
    "/generate-commit-message-stream": (
        {"diff": "diff --git a/x b/x\n+y\n"},
        ("```\nx: add", " y\n```"),
    ),
    "/generate-conversation-title": (
        {"chat_history": [exchange("Why is the ferry late?", "Fog.")]},
        ('"Ferry delays', ' in fog."'),
    ),
    "/edit": (SELECTION, CODE),
    "/instruction-stream": (SELECTION, CODE),
    "/smart-paste-stream": (
        {"code_block": "b = 2", "target_file_content": "a = 1\n"},
        ("```\na = 1\n", "b = 2\n```"),
    ),
    "/agents/edit-file": (
        {"file_contents": "a = 1\n", "edit_summary": "b"},
        ("a = 1\nb", " = 2"),
    ),
    "/next-edit-stream": (SELECTION, ("EDIT: rename it\n", "def fee(kind):\n")),
    "/completion": (
        {"prompt": "def fare(kind):\r\n    ", "suffix": "\r\n", "path": "fares.py"},
        ("```python\n    return", " 1\n    # all pay\n```"),
    ),
    "/chat-input-completion": (
        {"prompt": "Why is the fer"},
        ("Why is the ferry", " late?\nBecause"),
    ),
    "/next_edit_loc": (
        {"diagnostics": [{"location": {"path": "a.py", "line_start": 3}}]},
        ("1",),
    ),
}


@pytest.mark.parametrize("path", CASES)
async def test_golden_answer_is_unchanged(
    path: str, fake: FakeUpstream, editor: Editor, request: pytest.FixtureRequest
) -> None:
    body, said = CASES[path]
    fake.play([b"".join(answer(*said))])  # one read, so that lines are always cut alike
    reply = await editor.post(path, body)
    assert reply.status == 200
    raw = re.sub(rb"[0-9a-f]{16}(?=-1\")", b"REQUEST", reply.raw)
    file = GOLDEN / path.strip("/") / "whole.ndjson"
    if request.config.getoption("--update-golden"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)
    assert raw == file.read_bytes()
