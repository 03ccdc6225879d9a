"""Settings put into a text and taken out, with proof."""

from collections.abc import Iterator

import pytest

from byok.clients import jsonc
from byok.clients.document import EDITORS, put_all, take_out, value_digest
from byok.clients.editor import Setting, SettingPath, TextEditor, TextFormat
from tests.fakes.settings_files import OPENCODE_FULL

JSONC = TextFormat.JSONC
WANTED = (Setting(("a", "b", "c"), "x"), Setting(("z",), ["y"]))


def written(settings: tuple[Setting, ...]) -> dict[SettingPath, frozenset[str]]:
    return {path: frozenset({value_digest(value)}) for path, value in settings}


def test_document_whose_settings_are_gone_stays_as_it_is() -> None:
    taken = take_out('{"b": 1}', "", written(WANTED).items(), JSONC)
    assert taken == ('{"b": 1}', ())


def test_document_keeps_an_object_that_others_emptied() -> None:
    base = '{"a": {"own": 1}}'
    text = EDITORS[JSONC].drop(put_all(base, WANTED, JSONC), ("a", "own"))
    taken = take_out(text, base, written(WANTED).items(), JSONC)
    assert EDITORS[JSONC].read(taken.text, ()) == {"a": {}}


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
    text = EDITORS[JSONC].put(text, ("a", "mine"), "1")
    taken = take_out(text, OPENCODE_FULL, written(WANTED).items(), JSONC)
    assert EDITORS[JSONC].read(taken.text, ("a",)) == {"mine": "1"}
