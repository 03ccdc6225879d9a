"""Texts of settings files: their bytes, paths in them, and changes as lines."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.clients import jsonc
from byok.clients.document import TEXT_EDITORS, put_all, take_out, value_digest
from byok.clients.settings_text import (
    Leaf,
    Setting,
    SettingPath,
    TextEditor,
    TextFormat,
    decode_text,
    encode_text,
    list_changes,
    preview_change,
    value_leaves,
)
from byok.core.redact import Redactor
from tests.fakes.settings_files import BOM, OPENCODE_FULL

ENDS = st.sampled_from(["\n", "\r\n", "\r", "", "a", "\ufeff", "é"])


@given(st.lists(ENDS).map("".join), st.booleans())
def test_encoding_gives_the_same_bytes(text: str, has_bom: bool) -> None:
    raw = (BOM if has_bom else b"") + text.encode()
    assert encode_text(decode_text(raw)) == raw


@pytest.mark.parametrize(
    ("raw", "text", "more"),
    [
        (b"a\r\nb", "a\nb", b"a\r\nb\r\n"),
        (b"a\r\nb\n", "a\r\nb\n", b"a\r\nb\n\n"),
        (BOM + b"a", "a", BOM + b"a\n"),
    ],
)
def test_encoding_keeps_the_line_ends_of_new_lines(
    raw: bytes, text: str, more: bytes
) -> None:
    decoded = decode_text(raw)
    assert decoded.text == text
    assert encode_text(decoded._replace(text=f"{text}\n")) == more


def test_encoding_other_than_utf8_is_refused_with_its_line() -> None:
    with pytest.raises(ValueError, match=r"line \d: it is not UTF-8"):
        decode_text(b"a\n\xe9")


def test_setting_leaves_name_the_elements_of_lists() -> None:
    value = {"a": [{"name": "x", "y": 1}, {}, 2], "b": {}}
    assert list(value_leaves(value, ())) == [
        Leaf(("a", "name=x", "name"), "'x'"),
        Leaf(("a", "name=x", "y"), "1"),
        Leaf(("a", "[]"), ""),
        Leaf(("a", "[]"), "2"),
        Leaf(("b",), ""),
    ]


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


def test_preview_does_not_show_line_ends_as_changes() -> None:
    lines = preview_change("/f", BOM + b"a\r\nb\r\n", BOM + b"a\r\nb\r\nc\r\n", str)
    assert lines[3:] == [" b", "+c"]


def test_changes_are_lines_with_their_numbers_and_without_secrets() -> None:
    before = b'{\n  "size": 14,\n  "apiToken": "old-secret"\n}\n'
    after = b'{\n  "size": 14,\n  "apiToken": "new-secret"\n}\n'
    hidden = '  "apiToken": ' + "\u2022" * 8
    rows = [tuple(row) for row in list_changes(before, after, str)]
    assert rows == [
        (" ", 2, '  "size": 14,'),
        ("-", 3, hidden),
        ("+", 3, hidden),
        (" ", 4, "}"),
    ]


@pytest.mark.parametrize("before", [None, b"a: 1\n"])
def test_changes_go_through_what_hides_keys(before: bytes | None) -> None:
    rows = list_changes(before, b"b: 2\n", lambda text: f"<{text}>")
    assert tuple(rows[-1]) == ("+", 1, "<b: 2>")
    assert len(rows) == (1 if before is None else 2)


JSONC = TextFormat.JSONC
WANTED = (Setting(("a", "b", "c"), "x"), Setting(("z",), ["y"]))


def written(settings: tuple[Setting, ...]) -> dict[SettingPath, frozenset[str]]:
    return {path: frozenset({value_digest(value)}) for path, value in settings}


def test_document_whose_settings_are_gone_stays_as_it_is() -> None:
    taken = take_out('{"b": 1}', "", written(WANTED).items(), JSONC)
    assert taken == ('{"b": 1}', ())


def test_document_keeps_an_object_that_others_emptied() -> None:
    base = '{"a": {"own": 1}}'
    text = TEXT_EDITORS[JSONC].drop(put_all(base, WANTED, JSONC), ("a", "own"))
    taken = take_out(text, base, written(WANTED).items(), JSONC)
    assert TEXT_EDITORS[JSONC].read(taken.text, ()) == {"a": {}}


def test_document_that_could_not_be_read_any_more_is_refused() -> None:
    """An alias of YAML to a value that byok replaces."""
    text = "model: &m gpt\nweak-model: *m\n"
    with pytest.raises(ValueError, match="model"):
        put_all(text, [Setting(("model",), "x")], TextFormat.YAML)


@pytest.mark.parametrize("result", ['{"a": 1, "b": 2, "z": "x"}', '{"a": 1}', '{"z"'])
def test_editor_trusts_no_finder(result: str) -> None:
    class Clumsy:
        leaves, read = staticmethod(jsonc.leaves), staticmethod(jsonc.read)
        read_raw, write_value = (
            staticmethod(jsonc.read_raw),
            staticmethod(jsonc.write_value),
        )

        def ways_to_put(self, text: str, path: SettingPath, raw: str) -> Iterator[str]:
            yield result

        def without_path(self, text: str, path: SettingPath) -> str:
            return result

    editor = TextEditor(Clumsy())
    with pytest.raises(ValueError, match="z could not be set"):
        editor.put('{"a": 1}', ("z",), "x")
    with pytest.raises(ValueError, match="z could not be removed"):
        editor.drop('{"a": 2, "z": "x"}', ("z",))


def test_document_value_digest_depends_on_the_value_alone() -> None:
    assert value_digest({"a": "1", "b": "2"}) == value_digest({"b": "2", "a": "1"})
    assert value_digest("1") != value_digest(1)


def test_document_keeps_what_somebody_added_beside() -> None:
    text = put_all(OPENCODE_FULL, WANTED, JSONC)
    text = TEXT_EDITORS[JSONC].put(text, ("a", "mine"), "1")
    taken = take_out(text, OPENCODE_FULL, written(WANTED).items(), JSONC)
    assert TEXT_EDITORS[JSONC].read(taken.text, ("a",)) == {"mine": "1"}
