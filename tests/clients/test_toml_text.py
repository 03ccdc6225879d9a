"""Single values of TOML change; every other byte stays."""

import difflib
import tomllib
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from byok.clients import toml_text
from byok.clients.connection import DaemonAddress, settings_for
from byok.clients.document import put_all, take_out, value_digest
from byok.clients.locations import ClientKind
from byok.clients.settings_text import (
    MISSING,
    SettingPath,
    TextEditor,
    TextFormat,
    find_value,
)
from byok.clients.toml_text import (
    read,
    write_value,
)
from tests.fakes.settings_files import TEXTS, TOML

EDITOR = TextEditor(toml_text)
put, restore, drop = EDITOR.put, EDITOR.restore, EDITOR.drop
TABLE = ("model_providers", "byok", "name")
PATHS: dict[SettingPath, Any] = {
    ("chat", "temperature"): 0.25,
    ("chat", "system_prompt"): 'a\n"""b"""\\ # c\n',
    ("routing", "default"): 'q"x',
    ("routing", "models", "commit"): "byok:x:y",
    ("routing", "fallback", "chat"): ["byok:a:c", "byok:n:n"],
    ("upstreams", "a", "base_url"): "https://n.example/v1",
    ("upstreams", "new"): {},
    ("tools", "repair"): "off",
    ("metrics", "enabled"): True,
}
ADDRESS = DaemonAddress("http://127.0.0.1:8317", "token", PurePath("/t"), "byok:a:m")
LINES = (
    "\n",
    "\n\n",
    "# note\n",
    "  # indented\n",
    '#model = "x"\n',
    "#[model_providers.byok]\n#name = 1\n",
    "  model = 'x'  # c\n",
    '\'model_provider\'="""\n[y]\n""" # d\n',
    "dotted . key = 1\n",
    'inline = {a = 1, b={}} # "\n',
    "list = [\n  1, # one\n]\n",
    "[tui]\n",
    "[model_providers.azure] # h\n",
    " [ model_providers ]\n",
    "[model_providers.'byok']\nname = 'n' # mine\n",
    "[model_providers.byok.auth]\nargs = [\n 'a', # b\n]\n",
    "[[list_of.tables]]\n",
)


def lines_of(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def removed_lines(old: str, new: str) -> list[str]:
    end = "" if old.endswith("\n") or not old else "\n"
    rows = difflib.ndiff(lines_of(old + end), lines_of(new))
    return [row[2:] for row in rows if row.startswith("- ")]


def comments(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()[:1] == "#"]


@pytest.mark.parametrize("path", PATHS, ids=".".join)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.slow
def test_toml_put_takes_no_line_away(text: str, path: SettingPath) -> None:
    before = read(text, path)
    if text == TEXTS["list of tables"] and path[:2] == ("upstreams", "a"):
        pytest.skip("nobody can write beside it")
    new = put(text, path, PATHS[path])
    assert find_value(tomllib.loads(new), path) == PATHS[path]
    if before is MISSING and "{" not in text:
        assert removed_lines(text, new) == []
    assert [note for note in comments(text) if note not in comments(new)] == []
    assert put(new, path, PATHS[path]) == new
    assert before is MISSING or restore(new, path, text) == text


@pytest.mark.parametrize("path", PATHS, ids=".".join)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.slow
def test_toml_drop_leaves_the_rest(text: str, path: SettingPath) -> None:
    new = drop(text, path)
    assert find_value(tomllib.loads(new), path) is MISSING
    lost = [note for note in comments(text) if note not in comments(new)]
    assert lost == (["# then"] if "fallback" in path and "# then" in text else [])
    if read(text, path) is MISSING:
        assert new == text


@pytest.mark.parametrize(
    ("text", "path", "what"),
    [
        ("model_providers = 1\n", TABLE, "model_providers is no table"),
        ("model_providers.byok = 1\n", TABLE, "model_providers > byok is no table"),
        ("[[chat]]\nx = 1\n", ("chat", "top_p"), "chat is no table"),
        ("a.b.c = 1\n", ("a", "b"), "a > b could not be set"),
        ("[[c]]\n[a]\n[[c]]\n", ("a",), "a could not be set"),
        ("a = \n", ("a",), "line 1"),
        ("a = 1\na = 2\n", ("a",), "Cannot overwrite a value"),
        (
            "model_providers.byok.name = 'q'\n[model_providers.byok.auth]\n"
            "[model_providers.byok]\nname = 'n'\n",
            TABLE,
            "Cannot declare",
        ),
        ("a = " + "[" * 3000 + "]" * 3000, ("a",), "deep"),
        ("a = 1\n" + "b." * 200 + "b = 1\n", ("a",), "deep"),
    ],
)
def test_toml_that_cannot_be_changed_is_refused(
    text: str, path: SettingPath, what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        put(text, path, "v")


def test_toml_that_cannot_be_without_a_part_is_refused() -> None:
    with pytest.raises(ValueError, match="could not be removed"):
        drop("[a]\n[[a.b]]\nc = 1\n", ("a",))


def test_toml_restore_wants_a_former_value() -> None:
    with pytest.raises(ValueError, match="byok > name is not in the former text"):
        restore(TOML, TABLE, TOML)


@pytest.mark.parametrize(
    ("text", "base", "due"),
    [
        ("[a]\n# c\n", "a = {}\n", "[a]\n# c\n"),
        ("a = { }  # c\n", "a = {}\n", "a = {}  # c\n"),
        ("[a]\n[b]\n", "b = 1\n[a]\n", "[a]\n[b]\n"),
    ],
)
def test_toml_restore_of_an_empty_table_makes_no_second(
    text: str, base: str, due: str
) -> None:
    assert restore(text, ("a",), base) == due


def test_toml_read_of_what_is_not_there_is_missing() -> None:
    assert read(TOML, ("model", "x")) is MISSING
    assert read(TOML, TABLE) is MISSING
    assert drop(TOML, TABLE) == TOML


def test_toml_is_read_only_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
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


@given(st.lists(st.sampled_from(LINES), max_size=10).map("".join))
def test_toml_settings_put_and_taken_out_give_the_same_bytes(text: str) -> None:
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    made = find_value(given, TABLE[:2])
    assume(made is MISSING or "[model_providers.'byok']" in text)
    settings = settings_for(ClientKind.CODEX, ADDRESS, text)
    new = put_all(text, settings, TextFormat.TOML)
    digests = [(path, frozenset({value_digest(value)})) for path, value in settings]
    assert take_out(new, text, digests, TextFormat.TOML).text == text
    own = "\n[own]\n"
    assert take_out(new + own, text, digests, TextFormat.TOML).text == text + own
    assert comments(new) == [note for note in comments(text) if note in comments(new)]


_VALUES: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=40),
    st.lists(st.text(max_size=10), max_size=4),
)


@given(
    name=st.sampled_from(sorted(TEXTS)),
    steps=st.lists(st.tuples(st.sampled_from(sorted(PATHS)), _VALUES), max_size=6),
)
def test_toml_changes_and_their_reverse_give_all_values_back(
    name: str, steps: list[tuple[SettingPath, Any]]
) -> None:
    """And no comment is lost on the way."""
    first = text = TEXTS[name]
    usable = [
        (path, value)
        for path, value in steps
        if len(path) > 2 or path[0] != "upstreams"
    ]
    undo = []
    for path, value in usable:
        former = text
        try:
            text = put(text, path, value)
        except ValueError:
            continue  # such as a key in what is no table
        assert find_value(tomllib.loads(text), path) == value
        undo.append((path, former))
    for path, former in reversed(undo):
        if read(former, path) is MISSING:
            text = drop(text, path)
        else:
            text = restore(text, path, former)
    assert comments(text) == comments(first)
    assert _filled(tomllib.loads(text)) == _filled(tomllib.loads(first))


def _filled(given: Any) -> Any:
    """Return tables without the empty ones in them."""
    if not isinstance(given, dict):
        return given
    below = {name: _filled(value) for name, value in given.items()}
    return {name: value for name, value in below.items() if value != {}}


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
    assert tomllib.loads(f"k = {write_value(value)}")["k"] == value


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
    assert drop(text, tuple(path.split("."))) == due
