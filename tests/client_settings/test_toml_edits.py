"""Where a value of TOML goes, and what goes with it."""

import tomllib

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from byok.client_settings.setting import SettingPath
from byok.client_settings.toml_edits import new_item, ways_to_put, without_path
from byok.client_settings.toml_text import put, read, restore


@pytest.mark.parametrize(
    ("text", "due"),
    [
        (
            "[chat]\ntop_p = 1\n\n# of t\n[tools]\n",
            "[chat]\ntop_p = 1\n{}\n# of t\n[tools]\n",
        ),
        ("[chat]\n# of t\n[tools]\n", "[chat]\n{}# of t\n[tools]\n"),
        (
            "#[chat]\n# a\n#max_tokens = 1\n# b\n",
            "#[chat]\n[chat]\n# a\n#max_tokens = 1\n{}# b\n",
        ),
        (
            "[chat]\n#max_tokens = 1\ntop_p = 1\n",
            "[chat]\n#max_tokens = 1\n{}top_p = 1\n",
        ),
        (
            "[chat]\n#[completion]\n#max_tokens = 1\n",
            "[chat]\n{}#[completion]\n#max_tokens = 1\n",
        ),
        ("[tools]\n", "[tools]\n\n[chat]\n{}"),
        ("[tools]", "[tools]\n\n[chat]\n{}"),
        ("", "[chat]\n{}"),
        ("[chat]", "[chat]\n{}"),
        ("# [chat]", "# [chat]\n[chat]\n{}"),
        ("chat.top_p = 1 # a\n# b\n", "chat.top_p = 1 # a\nchat.{}# b\n"),
        ("#[chat]\nport = 1\n", "#[chat]\nport = 1\n\n[chat]\n{}"),
    ],
)  # fmt: skip
def test_a_new_value_has_a_place_where_people_look(text: str, due: str) -> None:
    new = put(text, ("chat", "max_tokens"), 5)
    assert new == due.format("max_tokens = 5\n")


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("", "{}"),
        ("a = 1", "a = 1\n{}"),
        ("a = 1\n\n# of t\n[t]\n", "a = 1\n{}\n# of t\n[t]\n"),
        ("# of t\n[t]\n", "{}# of t\n[t]\n"),
        ("#:schema x\n\n# of t\n[t]\n", "#:schema x\n{}\n# of t\n[t]\n"),
        ("# of the file", "# of the file\n{}"),
        ("# of a\na = 1 # b\n# end\n", "# of a\na = 1 # b\n{}# end\n"),
        ("a = 1\n# k = 'x'\n# more\n#[t]\n", "a = 1\n# k = 'x'\n{}# more\n#[t]\n"),
        ("a = [\n[1],\n]\n[t]\n", "a = [\n[1],\n]\n{}[t]\n"),
        ("a = 1 # x\u2028[foo]\n[b]\n", "a = 1 # x\u2028[foo]\n{}[b]\n"),
    ],
)
def test_a_value_above_the_tables_keeps_their_comments(text: str, due: str) -> None:
    assert put(text, ("k",), "v") == due.format('k = "v"\n')


def test_a_new_table_has_its_values() -> None:
    new = put("[t]\n", ("m", "x y"), {"a": "1", "b": "2"})
    assert new == '[t]\n\n[m."x y"]\na = "1"\nb = "2"\n'


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("m = { a = { n = 1 } }\n", 'm = { a = { n = "v" } }\n'),
        ("m = { b = 1 } # c\n", 'm = { b = 1, a = {n = "v"}} # c\n'),
        ("m = {}\n[t]\n", 'm = {a = {n = "v"}}\n[t]\n'),
        ("[m]\na.n = 'x'  # c\n", '[m]\na.n = "v"  # c\n'),
        ("[m]\n a.b = 1 # c\n# d\n", '[m]\n a.b = 1 # c\na.n = "v"\n# d\n'),
    ],
)
def test_a_value_goes_into_the_table_that_there_is(text: str, due: str) -> None:
    assert "".join(put(text, ("m", "a", "n"), "v").split()) == "".join(due.split())


def test_a_value_that_there_is_has_one_way() -> None:
    assert [*ways_to_put("[a]\nb = 1 # c\n", ("a", "b"), 2)] == ["[a]\nb = 2 # c\n"]


def test_heads_in_comments_are_tried_only_a_few_times() -> None:
    text = "#[a]\n" * 50 + "a = {}\n"
    assert len([*ways_to_put(text, ("a", "b"), 1)]) == 7
    assert put(text, ("a", "b"), 1) == text.replace("{}", "{b = 1}")


def test_comments_within_a_list_stay() -> None:
    text = '[a]\nx = [\n  "1", # one\n  "2", # two\n]\n'
    new = put(text, ("a", "x"), ["1", "2", "3"])
    assert new.startswith('[a]\nx = [\n  "1", # one\n  "2", # two\n')
    assert restore(new, ("a", "x"), text) == text
    one = put(text.replace("2", "1", 1), ("a", "x"), ["1"])
    assert read(one, ("a", "x")) == ["1"]
    assert "# one" in one


def test_a_text_of_several_lines_is_written_as_such() -> None:
    assert put("", ("k",), 'a\n\\ "b".') == 'k = """\na\n\\\\ "b"."""\n'


@given(st.text(alphabet='ab\n\r"\\\0\t\u2028', max_size=12))
def test_a_text_is_written_so_that_it_reads_the_same(value: str) -> None:
    text = tomlkit.dumps({"k": new_item(value)})
    assert tomllib.loads(text)["k"] == value


@pytest.mark.parametrize(
    ("text", "path", "due"),
    [
        ("a = 1\n\n[t]\n\n# of u\n[u]\n", "t", "a = 1\n\n# of u\n[u]\n"),
        ("a = 1\n\n[t]\nb = 1\n", "t", "a = 1\n"),
        ("a = 1\n\n[t]\n[t.u]\n\n[t.v]\n\n# w\n", "t", "a = 1\n\n# w\n"),
        ("a = 1\n\n[t]\n[u]\n", "t", "a = 1\n\n[u]\n"),
        ("\n[t]\n", "t", ""),
        ("[ 't' ] # h\n# of u\n[u]\n", "t", "# of u\n[u]\n"),
        ("[u]\nb = '[t]'\n[t]\n# end\n", "t", "[u]\nb = '[t]'\n# end\n"),
        ("x = [\n[1],\n]\n[t]\n# end\n", "t", "x = [\n[1],\n]\n# end\n"),
        ('s = """\n[t]\n# no\n"""\n[t]\n# c', "t", 's = """\n[t]\n# no\n"""\n# c'),
        ("[t]\n[u]\n# of u\n", "t", "[u]\n# of u\n"),
        ("[t]\n# c\n[[v]]\n", "t", "# c\n[[v]]\n"),
        ("[a.b]\n# of c\n[c]\n[a.d]\n# e\n", "a.b", "# of c\n[c]\n[a.d]\n# e\n"),
        ("a = { b = 1,c = 2 } # d\n", "a.b", "a = { c = 2 } # d\n"),
        ("a = {b = {c = 1}} # d\n", "a.b", "a = {} # d\n"),
        ("a . b = 1 # d\n# e\na.c = 2\n", "a.b", "# e\na.c = 2\n"),
        ("a.b.c = 1 # d\na.b.d = 1\n", "a.b", ""),
        ("\n a.b = 1\n\n[t]\n", "a.b", "\n\n[t]\n"),
        (
            "[u.a]\nmodel = 'x' # gone\n[u.b]\n# of a\n"
            "[u.a.facts.'m']\nwindow = 1\n\n# of tools\n[tools]\n",
            "u.a",
            "[u.b]\n# of a\n\n# of tools\n[tools]\n",
        ),
    ],
)
def test_what_is_taken_out_leaves_comments_and_no_gap(
    text: str, path: str, due: str
) -> None:
    assert without_path(text, _path(path)) == due


def _path(dotted: str) -> SettingPath:
    return tuple(dotted.split("."))
