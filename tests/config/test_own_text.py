"""Single settings change; every other byte of the file stays."""

import difflib
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.client_settings.setting import MISSING, SettingPath
from byok.config.own_text import drop_setting, find_value, put_setting, same_value
from tests.fakes.own_settings import TEXTS

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
def test_a_value_is_put_and_nothing_else_changes(text: str, path: SettingPath) -> None:
    before = find_value(tomllib.loads(text), path)
    if text == TEXTS["list of tables"] and path[:2] == ("upstreams", "a"):
        pytest.skip("nobody can write beside it")
    new = put_setting(text, path, PATHS[path])
    assert find_value(tomllib.loads(new), path) == PATHS[path]
    if before is MISSING and "{" not in text:
        assert removed_lines(text, new) == []
    assert [note for note in comments(text) if note not in comments(new)] == []
    assert put_setting(new, path, PATHS[path]) == new


@pytest.mark.parametrize("path", PATHS, ids=".".join)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_value_that_is_taken_out_leaves_the_rest(
    text: str, path: SettingPath
) -> None:
    new = drop_setting(text, path)
    assert find_value(tomllib.loads(new), path) is MISSING
    lost = [note for note in comments(text) if note not in comments(new)]
    assert lost == (["# then"] if "fallback" in path and "# then" in text else [])
    if find_value(tomllib.loads(text), path) is MISSING:
        assert new == text


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
        ("[chat]", "[chat]\n{}"),
        ("chat.top_p = 1 # a\n# b\n", "chat.top_p = 1 # a\nchat.{}# b\n"),
        ("#[chat]\nport = 1\n", "#[chat]\nport = 1\n\n[chat]\n{}"),
    ],
)  # fmt: skip
def test_a_new_value_has_a_place_where_people_look(text: str, due: str) -> None:
    new = put_setting(text, ("chat", "max_tokens"), 5)
    assert new == due.format("max_tokens = 5\n")


def test_comments_within_a_list_stay() -> None:
    text = '[a]\nx = [\n  "1", # one\n  "2", # two\n]\n'
    assert put_setting(text, ("a", "x"), ["1", "2", "3"]).startswith(
        '[a]\nx = [\n  "1", # one\n  "2", # two\n'
    )


def test_an_upstream_goes_with_its_tables_and_without_comments_of_others() -> None:
    text = (
        "[upstreams.a]\nmodel = 'x' # gone\n[upstreams.b]\n# of a\n"
        "[upstreams.a.facts.'m']\nwindow = 1\n\n# of tools\n[tools]\n"
    )
    assert drop_setting(text, ("upstreams", "a")) == (
        "[upstreams.b]\n# of a\n\n# of tools\n[tools]\n"
    )


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("chat = 1\n", ("chat", "top_p")),
        ("[[chat]]\nx = 1\n", ("chat", "top_p")),
        ("a = ", ("chat", "top_p")),
    ],
)
def test_what_cannot_be_put_is_refused(text: str, path: SettingPath) -> None:
    with pytest.raises(ValueError):
        put_setting(text, path, 1)


@pytest.mark.parametrize(
    ("one", "other", "due"),
    [(1, True, False), (1, 1.0, True), ([1], [1, 2], False), ({"a": 1}, {"a": 1}, True),
     (float("nan"), float("nan"), True), ("1", 1, False)],
)  # fmt: skip
def test_values_are_the_same_as_toml_has_them(one: Any, other: Any, due: bool) -> None:
    assert same_value(one, other) is due


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
def test_changes_and_their_reverse_give_all_values_back(
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
        former = find_value(tomllib.loads(text), path)
        try:
            text = put_setting(text, path, value)
        except ValueError:
            continue  # such as a key in what is no table
        assert find_value(tomllib.loads(text), path) == value
        undo.append((path, former))
    for path, former in reversed(undo):
        if former is MISSING:
            text = drop_setting(text, path)
        else:
            text = put_setting(text, path, former)
    assert comments(text) == comments(first)
    assert _filled(tomllib.loads(text)) == _filled(tomllib.loads(first))


def _filled(given: Any) -> Any:
    """Return tables without the empty ones in them."""
    if not isinstance(given, dict):
        return given
    below = {name: _filled(value) for name, value in given.items()}
    return {name: value for name, value in below.items() if value != {}}
