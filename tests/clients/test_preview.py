"""Changes as lines."""

import pytest

from byok.clients.editor import preview_change
from byok.core.redact import Redactor
from tests.fakes.settings_files import BOM


@pytest.mark.case("B142")
def test_preview_shows_a_change_without_secrets() -> None:
    redactor = Redactor()
    redactor.add("token-of-byok")
    old = b'{\n  "x": 0,\n  "a.apiToken": "official-0123456789"\n}\n'
    new = b'{\n  "x": 0,\n  "a.apiToken": "token-of-byok"\n}\n'
    lines = preview_change("/f", old, new, redactor)
    assert lines[:2] == ["--- /f", "+++ /f"]
    assert lines[2:] == [
        "@@ -2,3 +2,3 @@",
        '   "x": 0,',
        '-  "a.apiToken": "[redacted]"',
        '+  "a.apiToken": "[redacted]"',
        " }",
    ]


def test_preview_tells_new_and_removed_files() -> None:
    assert preview_change("/f", None, b"a\n", str)[:2] == ["--- (no file)", "+++ /f"]
    assert preview_change("/f", b"a\n", None, str)[:2] == ["--- /f", "+++ (no file)"]


def test_preview_does_not_show_line_ends_as_changes() -> None:
    lines = preview_change("/f", BOM + b"a\r\nb\r\n", BOM + b"a\r\nb\r\nc\r\n", str)
    assert lines[3:] == [" b", "+c"]
