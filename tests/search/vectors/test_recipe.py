"""What is embedded: the text of a chunk, whatever the code; and blobs in groups."""

from pathlib import Path

import pytest

from byok.core.redact import Redactor
from byok.search.index.contents import Entry
from byok.search.index.types import Span
from byok.search.vectors.filling import read_texts
from byok.search.vectors.recipe import MAX_TEXT_CHARS, is_embedded, key_of, texts_of
from tests.fakes.engines import indexed, project

_PYTHON = """\
import json

class Provider:
    \"\"\"Reads and writes.\"\"\"

    # Written for humans.
    def dumps(
        self,
        value,
    ) -> str:
        if value:
            return json.dumps(value)
        return ""

def other():
    pass
""".splitlines()


def _texts(lines: list[str], *ranges: tuple[int, int], path: str = "a.py") -> list[str]:
    spans = [Span(first, last, 0) for first, last in ranges]
    return [found.text for found in texts_of(path, lines, spans)]


def test_a_text_says_where_a_chunk_is_and_how_it_begins() -> None:
    assert _texts(_PYTHON, (5, 12), path="src/json.py") == [
        "src/json.py\nclass Provider:\n# Written for humans.\ndef dumps(\n    self,\n"
        "    value,\n) -> str:\n    if value:\n        return json.dumps(value)"
    ]


def test_the_outline_of_a_chunk_comes_before_its_first_lines() -> None:
    body = [f"    line{n}()" for n in range(7)]
    lines = ["def a():", *body, "# so", "def b(", "    c,", ") -> str:", "x = 1", "}"]
    [text] = _texts(lines, (0, len(lines)))
    shown = ["a.py", "def b(", "x = 1", "def a():", *body[:6]]
    assert text.split("\n") == shown


@pytest.mark.parametrize(
    ("lines", "first", "enclosing"),
    [
        (_PYTHON, 0, []),
        (_PYTHON, 10, ["class Provider:", "def dumps("]),
        (_PYTHON, 11, ["class Provider:", "def dumps(", "if value:"]),
        (_PYTHON, 14, []),
        (["void f()", "{", "\tint a;", "}"], 2, ["void f()"]),
        (["fn f() {", "    a();", "}", "fn g() {", "    b();", "}"], 4, ["fn g() {"]),
        (["module A", "  class B", "    x", "  end", "  y"], 4, ["module A"]),
        (
            ["class A {", "  /**", "   * Says.", "   */", "  void b() {}"],
            2,
            ["class A {"],
        ),
        (["class A {", "#if B", "  int c;"], 2, ["class A {"]),
        (["a:", "  b:", "    c:", "      d:", "        e: 1"], 4, ["b:", "c:", "d:"]),
        (["import a", "/**", " * Says.", " */", "class A {}"], 2, []),
    ],
)
def test_enclosing_lines_are_seen_by_indentation(
    lines: list[str], first: int, enclosing: list[str]
) -> None:
    [text] = _texts(lines, (first, first))
    assert text.split("\n")[1:-1] == enclosing


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/app.py", True),
        ("deploy/values.yaml", True),
        ("tests/test_app.py", False),
        ("README.md", False),
        ("vendor/lib.go", False),
    ],
)
def test_only_code_and_configuration_are_embedded(path: str, expected: bool) -> None:
    assert is_embedded(path) is expected
    assert bool(_texts(["a = 1"], (0, 0), path=path)) is expected


def test_no_part_of_a_secret_is_in_a_text() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    far_right = " " * 0 + "x = 1; " * 20 + f'token = "{secret}"'
    key = ["-----BEGIN RSA PRIVATE KEY-----", *["MIIEpAIBAAKCAQEA" * 4] * 30, "x = 1"]
    lines = [f'with connect("{secret}"):', f'    key = "{secret}"', far_right, *key]
    texts = _texts(lines, (0, 0), (1, 1), (2, 2), (3, 9), (10, len(lines)))
    joined = "\n".join([*texts, *_texts(["a = 1"], (0, 0), path=f"{secret}/a.py")])
    assert "ghp_" not in joined
    assert "a1B2" not in joined
    assert "MIIEpAIB" not in joined


@pytest.mark.parametrize("before", [4, 60, 100, 140, 156])
def test_no_part_of_a_key_of_the_user_is_left_by_a_cut(before: int) -> None:
    key = "correct-horse-battery-staple"
    redactor = Redactor()
    redactor.add(key)
    long = "b" * before + key
    lines = [f"def {long}(", *[f"{n}{long}" for n in range(9)], f"    x {long}"]
    spans = [Span(0, 9, 0), Span(10, 10, 0)]
    path = f"{key}{'c' * (160 - before)}.py"
    found = texts_of(path, lines, spans, redact=redactor.remove_known)
    assert len(found) == 2
    for text in found:
        assert "corr" not in text.text
        assert "taple" not in text.text
        assert text.key == key_of(text.text)


@pytest.mark.parametrize(
    "line",
    [
        "x = 1 " * 200_000,
        "\t" * 100_000 + "x",
        "x" + "\t" * 100_000,
        "\ud800\udfff x \udc80",
        "\x00\x01 x \u202e",
        "数据库连接" * 1000,
    ],
    ids=["1 MiB", "tabs", "more tabs", "surrogates", "controls", "Chinese"],
)
def test_a_hostile_line_becomes_a_short_text_that_can_be_sent(line: str) -> None:
    for text in _texts([line] * 3, (0, 0), (1, 2)):
        assert len(text) <= MAX_TEXT_CHARS
        assert text.encode()


def test_a_chunk_without_letters_is_not_embedded() -> None:
    spans = [Span(0, 1, 4), Span(2, 2, 5)]
    found = texts_of("a.c", ["}", "", "int a;"], spans)
    assert [text.ordinal for text in found] == [1]


def test_equal_texts_have_one_key_of_32_bytes() -> None:
    first, second = texts_of("a.py", ["a = 1", "a = 1"], [Span(0, 0, 5), Span(1, 1, 5)])
    assert first.key == second.key == key_of(first.text)
    assert len(first.key) == 32
    assert key_of("a") != key_of("b")


# What cannot be read is told


async def test_texts_of_blobs_that_can_be_read(tmp_path: Path) -> None:
    root = project(tmp_path / "root", a__py="def alpha(): pass\n", b__py="beta = 1\n")
    async with indexed(tmp_path / "data", root) as made:
        with made.store.reading() as db:
            rows = db.execute("SELECT id, path, spans FROM blob ORDER BY path")
            one, other = [Entry(*row) for row in rows]
        (root / "b.py").write_text("something else\n")
        stale = Entry(one.blob_id, one.path, one.packed * 2)
        gone = Entry(99, "c.py", one.packed)
        found = read_texts(made.contents, [one, other, gone], texts_of)
        texts = found[one.blob_id]
        assert texts is not None
        assert "def alpha()" in texts[0].text
        assert found[other.blob_id] is None
        assert found[99] is None
        assert read_texts(made.contents, [stale], texts_of) == {one.blob_id: None}
