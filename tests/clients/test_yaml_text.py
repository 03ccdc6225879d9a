"""Single changes of YAML."""

import pytest

from byok.clients import yaml_text
from byok.clients.settings_text import MISSING, SettingPath, TextEditor
from byok.clients.yaml_text import leaves, read
from tests.fakes.settings_files import AIDER_FULL, CONTINUE_FULL

EDITOR = TextEditor(yaml_text)
put, restore, drop = EDITOR.put, EDITOR.restore, EDITOR.drop
ITEM = ("models", "name=byok")
MODEL = {"name": "byok", "model": "a: #b"}
ADDED = '  - name: "byok"\n    model: "a: #b"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 'model: "v"\n'),
        ("# c", '# c\nmodel: "v"\n'),
        ("a: 1", 'a: 1\nmodel: "v"\n'),
        ("model: x # c\na: 1\n", 'model: "v" # c\na: 1\n'),
        ("model:\na: 1\n", 'model: "v"\na: 1\n'),
        ("model: # c\na: 1\n", 'model: "v" # c\na: 1\n'),
        ("model: 'it''s'\n", 'model: "v"\n'),
        ("model: |\n  x\n  y\na: 1\n", 'model: "v"\na: 1\n'),
        ("model: >-\n  x\n  y", 'model: "v"'),
        ("  a: 1\n  b: 2\n", '  a: 1\n  b: 2\n  model: "v"\n'),
        ("---\na: 1\n", '---\na: 1\nmodel: "v"\n'),
    ],
)
def test_yaml_put_changes_one_value(text: str, expected: str) -> None:
    assert put(text, ("model",), "v") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", f"models:\n{ADDED}"),
        ("a: 1", f"a: 1\nmodels:\n{ADDED}"),
        ("models: []\na: 1\n", f"models:\n{ADDED}a: 1\n"),
        ("models: # c: d\na: 1\n", f"models: # c: d\n{ADDED}a: 1\n"),
        ("models: null\n", f"models:\n{ADDED}"),
        (
            "models:\n  - name: x # c\n\na: 1\n",
            f"models:\n  - name: x # c\n{ADDED}\na: 1\n",
        ),
        ("models:\n- x", 'models:\n- x\n- name: "byok"\n  model: "a: #b"\n'),
        ("models:\n  - name: byok\n    old: 1\n  - x\n", f"models:\n{ADDED}  - x\n"),
    ],
)
def test_yaml_put_adds_an_element_of_a_list(text: str, expected: str) -> None:
    new = put(text, ITEM, MODEL)
    assert (new, read(new, ITEM)) == (expected, MODEL)


def test_yaml_drop_of_the_only_element_leaves_an_empty_list() -> None:
    text = "models: # a: b\n  # first: x\n  - name: byok\n    x: 1\nz: 1\n"
    assert drop(text, ITEM) == "models: [] # a: b\n  # first: x\nz: 1\n"


@pytest.mark.parametrize(
    "element",
    [
        "  - name: byok\n    x: 1\n",
        "  - model: 'a' # why\n    # and this\n\n    name: \"byok\"\n",
        "- name: byok\n  text: |\n    one\n\n      two\n",
        "  -   {name: byok, x: [1, 2]}\n",
        "    - name: byok\n      below:\n      - a: &b 1\n      - c: *b\n",
    ],
)
@pytest.mark.parametrize("rest", ["", "z: 1\n"])
def test_yaml_restore_of_an_element_gives_its_lines_back(
    element: str, rest: str
) -> None:
    margin = element[: element.index("-")]
    text = f"models:\n{margin}- a: 1\n{element}{margin}- b: 2\n{rest}"
    changed = put(text, ITEM, MODEL)
    assert changed != text
    assert restore(changed, ITEM, text) == text


def test_yaml_restore_of_an_element_below_its_dash_has_its_former_values() -> None:
    text = "models:\n  -\n    name: byok\n    x: 1\n"
    new = restore(put(text, ITEM, MODEL), ITEM, text)
    assert read(new, ITEM) == {"name": "byok", "x": 1}


@pytest.mark.parametrize(
    ("text", "path", "what"),
    [
        ("models: [{name: x}]\n", ITEM, "models is written in one line"),
        ("models: text\n", ITEM, "models is written in one line"),
        ("{a: 1}\n", ("k",), "written in braces"),
        ("- a\n", ("k",), "no mapping"),
        ("k: 1\nk: 2\n", ("k",), "k stands there twice"),
        ("a: [1\n", ("k",), "line 2: expected"),
        ("a: !secret x\n", ("k",), "line 1: could not determine a constructor"),
        ("a: \x00", ("k",), "it is no YAML"),
        ("a: 1\n---\nb: 2\n", ("k",), "document"),
        ("a: \t1\n\tb: 2\n", ("k",), "token"),
        ("a: " + "[" * 300 + "]" * 300, ("k",), "nested too deeply"),
        ("".join(f"{' ' * n}a:\n" for n in range(900)), ("k",), "deep"),
    ],
)
def test_yaml_that_cannot_be_changed_is_refused(
    text: str, path: SettingPath, what: str
) -> None:
    value = MODEL if len(path) > 1 else "v"
    with pytest.raises(ValueError, match=what):
        list(leaves(put(text, path, value)))


@pytest.mark.case("B142")
def test_yaml_error_does_not_quote_the_file() -> None:
    with pytest.raises(ValueError, match="line 1") as caught:
        put("key: sk-0123 x: y\n", ("k",), "v")
    assert "sk-0123" not in str(caught.value)


def test_yaml_with_anchors_and_merged_keys_is_changed_beside_them() -> None:
    text = (
        "base: &b\n  provider: openai\nmodels:\n"
        "  - &x\n    <<: *b\n    name: own\n  - *x\n"
    )
    new = put(text, ITEM, MODEL)
    assert new == text + ADDED
    merged = {"provider": "openai", "name": "own"}
    assert read(new, ("models",)) == [merged, merged, MODEL]
    assert drop(new, ITEM) == text
    followed = f"{text}  # of mine\n\n# c\nz: 1\n"
    assert put(followed, ITEM, MODEL) == f"{text}{ADDED}  # of mine\n\n# c\nz: 1\n"


def test_yaml_of_many_aliases_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ValueError, match="too many values"):
        list(leaves("\n".join(lines)))


def test_yaml_drop_of_an_element_in_one_line_is_refused() -> None:
    with pytest.raises(ValueError, match="one line"):
        drop("models: [{name: byok}]\n", ITEM)


def test_yaml_reads_values() -> None:
    found = read(CONTINUE_FULL, ("models", "name=Qwen"))
    assert isinstance(found, dict)
    assert found["roles"] == ["chat", "edit"]
    assert read(CONTINUE_FULL, ("models", "name=none")) is MISSING
    assert read(AIDER_FULL, ("read",)) == ["CONVENTIONS.md", "docs/style.md"]
    assert drop(AIDER_FULL, ("none",)) == drop(AIDER_FULL, ITEM) == AIDER_FULL
    assert list(leaves("# nothing")) == []


def test_yaml_restore_of_nothing_leaves_the_colon() -> None:
    text = "model: # c\nx: 1\n"
    assert restore(put(text, ("model",), "v"), ("model",), text) == text
    assert drop("- a\n", ("model",)) == "- a\n"


def test_yaml_elements_are_mappings() -> None:
    with pytest.raises(ValueError, match="must be a mapping"):
        put("", ITEM, "v")
    with pytest.raises(ValueError, match="not in the former text"):
        restore("", ITEM, "")


def test_an_element_that_is_not_there_is_not_taken_out() -> None:
    text = "a: 1\n"
    assert yaml_text.without_path(text, ITEM) == text


def test_yaml_text_in_lines_is_replaced_and_comes_back() -> None:
    text = "model: |+\n x\n\na: b"
    new = put(text, ("model",), "☃ # :")
    assert read(new, ("model",)) == "☃ # :"
    assert restore(new, ("model",), text) == text
