"""Single changes of TOML."""

import tomllib
from typing import Any

import pytest

from byok.client_settings.setting import MISSING, Leaf, SettingPath
from byok.client_settings.toml_text import (
    drop,
    leaves,
    put,
    read,
    restore,
    value_leaves,
)
from tests.fakes.settings_files import PROSE, PROVIDERS, TOML

TABLE = ("model_providers", "byok", "name")


@pytest.mark.parametrize("text", ["", TOML, PROVIDERS, PROSE])
@pytest.mark.parametrize(
    "path", [("model",), ("model_provider",), TABLE, (*TABLE[:2], "a", "b")]
)
def test_toml_put_sets_the_value_and_changes_no_other(
    text: str, path: SettingPath
) -> None:
    new = put(text, path, "☃")
    assert read(new, path) == "☃"
    mine = [leaf for leaf in leaves(new) if leaf.path != path]
    assert sorted(mine) == sorted(leaf for leaf in leaves(text) if leaf.path != path)
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert [line for line in comments if line not in new.splitlines()] == []
    if read(text, path) is MISSING:
        assert tomllib.loads(drop(new, path)) | {"model_providers": 0} == tomllib.loads(
            text
        ) | {"model_providers": 0}
    else:
        assert restore(new, path, text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 'k = "v"\n'),
        ("a = 1", 'a = 1\nk = "v"\n'),
        ("a = 1\n\n# of t\n[t]\n", 'a = 1\nk = "v"\n\n# of t\n[t]\n'),
        ("# of t\n[t]\n", 'k = "v"\n# of t\n[t]\n'),
        ("#:schema x\n\n# of t\n[t]\n", '#:schema x\nk = "v"\n\n# of t\n[t]\n'),
        ("a = [\n[1],\n]\n[t]\n", 'a = [\n[1],\n]\nk = "v"\n[t]\n'),
        ("k = 'x'  # c\n", 'k = "v"  # c\n'),
    ],
)
def test_toml_put_above_the_tables_keeps_their_comments(
    text: str, expected: str
) -> None:
    assert put(text, ("k",), "v") == expected


def test_toml_put_goes_into_an_inline_table() -> None:
    new = put('model_providers = { a = { name = "A" } }\n', TABLE, "v")
    assert read(new, TABLE) == "v"
    assert read(new, ("model_providers", "a", "name")) == "A"


@pytest.mark.parametrize(
    ("text", "path", "what"),
    [
        ("model_providers = 1\n", TABLE, "model_providers is no table"),
        ("a = \n", ("a",), "line 1"),
        ("a = 1\na = 2\n", ("a",), "already"),
        ("[[c]]\n[a]\n[[c]]\n", ("a",), "cannot be written back"),
        (
            "model_providers.byok.name = 'q'\n[model_providers.byok.auth]\n"
            "[model_providers.byok]\nname = 'n'\n",
            TABLE,
            "already",
        ),
        ("a = " + "[" * 3000 + "]" * 3000, ("a",), "deep"),
    ],
)
def test_toml_that_cannot_be_changed_is_refused(
    text: str, path: SettingPath, what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        put(text, path, "v")


def test_toml_restore_wants_a_former_value() -> None:
    with pytest.raises(ValueError, match=r"^Key .model_providers. does not exist"):
        restore(TOML, TABLE, TOML)


def test_toml_read_of_what_is_not_there_is_missing() -> None:
    assert read(TOML, ("model", "x")) is MISSING
    assert read(TOML, TABLE) is MISSING
    assert drop(TOML, TABLE) == TOML


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1\n\n[t]\n\n# of u\n[u]\n", "a = 1\n\n# of u\n[u]\n"),
        ("[ 't' ] # h\n# of u\n[u]\n", "# of u\n[u]\n"),
        ("[u]\nb = '[t]'\n[t]\n# end\n", "[u]\nb = '[t]'\n# end\n"),
        ("x = [\n[1],\n]\n[t]\n# end\n", "x = [\n[1],\n]\n# end\n"),
        ('s = """\n[t]\n# no\n"""\n[t]\n# c', 's = """\n[t]\n# no\n"""\n# c'),
        ("[t]\n[u]\n# of u\n", "[u]\n# of u\n"),
        ("[t]\n# c\n[[v]]\n", "# c\n[[v]]\n"),
    ],
)
def test_toml_drop_of_an_empty_table_keeps_comments(text: str, expected: str) -> None:
    assert drop(text, ("t",)) == expected


def test_toml_drop_finds_a_table_in_another() -> None:
    text = "[a.b]\n# of c\n[c]\n[a.d]\n# e\n"
    assert drop(text, ("a", "b")) == "# of c\n[c]\n[a.d]\n# e\n"


def test_toml_put_above_the_tables_knows_lines_by_their_line_feeds() -> None:
    text = "a = 1 # x\u2028[foo]\n[b]\n"
    assert put(text, ("k",), "v") == 'a = 1 # x\u2028[foo]\nk = "v"\n[b]\n'


def test_toml_put_reads_a_long_list_only_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_characters = 0
    loads = tomllib.loads

    def count(text: str) -> dict[str, Any]:
        nonlocal read_characters
        read_characters += len(text)
        return loads(text)

    monkeypatch.setattr(tomllib, "loads", count)
    text = "x = [\n" + "[1],\n" * 200 + "]\n[y]\n"
    assert put(text, ("k",), "v").endswith(']\nk = "v"\n[y]\n')
    assert read_characters < 5 * len(text)


def test_toml_leaves_name_the_elements_of_lists() -> None:
    value = {"a": [{"name": "x", "y": 1}, {}, 2], "b": {}}
    assert list(value_leaves(value, ())) == [
        Leaf(("a", "name=x", "name"), "'x'"),
        Leaf(("a", "name=x", "y"), "1"),
        Leaf(("a", "[]"), ""),
        Leaf(("a", "[]"), "2"),
        Leaf(("b",), ""),
    ]
