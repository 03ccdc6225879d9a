"""Single values of TOML change; every other byte stays."""

import difflib
import tomllib
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from byok.client_settings.client_kind import ClientKind
from byok.client_settings.document import TextFormat, put_all, take_out, value_digest
from byok.client_settings.setting import MISSING, SettingPath, find_value
from byok.client_settings.toml_text import drop, leaves, put, read, restore, same_value
from byok.client_settings.wanted_settings import DaemonAddress, settings_for
from tests.fakes.own_settings import TEXTS
from tests.fakes.settings_files import PROSE, PROVIDERS, TOML

TABLE = ("model_providers", "byok", "name")
PATHS: dict[SettingPath, Any] = {
    ("chat", "temperature"): 0.25,
    ("chat", "max_tokens"): 99,
    ("chat", "system_prompt"): 'a\n"""b"""\\ # c\n',
    ("routing", "default"): 'q"x',
    ("routing", "models", "commit"): "byok:x:y",
    ("routing", "fallback", "chat"): ["byok:a:c", "byok:n:n"],
    ("upstreams", "a", "base_url"): "https://n.example/v1",
    ("upstreams", "new"): {},
    ("tools", "repair"): "off",
    ("caps", "usd_per_day"): 7,
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
    assert mine == [leaf for leaf in leaves(text) if leaf.path != path]
    assert [line for line in comments(text) if line not in comments(new)] == []
    if read(text, path) is MISSING:
        assert tomllib.loads(drop(new, path)) | {"model_providers": 0} == tomllib.loads(
            text
        ) | {"model_providers": 0}
    else:
        assert restore(new, path, text) == text


@pytest.mark.parametrize("path", PATHS, ids=".".join)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
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
        ("a.b.c = 1\n", ("a", "b"), "a > b is a table"),
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


@pytest.mark.parametrize(
    ("text", "path"),
    [("[a]\n[[a.b]]\nc = 1\n", "a"), ("a = {b.c = 1, d = 1}\n", "a.b.c")],
)
def test_toml_that_tomlkit_cannot_do_without_a_part_is_refused(
    text: str, path: str
) -> None:
    with pytest.raises(ValueError, match="could not be removed"):
        drop(text, tuple(path.split(".")))


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


@pytest.mark.parametrize(
    ("one", "other", "due"),
    [(1, True, False), (1, 1.0, True), ([1], [1, 2], False), ({"a": 1}, {"a": 1}, True),
     (float("nan"), float("nan"), True), ("1", 1, False)],
)  # fmt: skip
def test_values_are_the_same_as_toml_has_them(one: Any, other: Any, due: bool) -> None:
    assert same_value(one, other) is due


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
