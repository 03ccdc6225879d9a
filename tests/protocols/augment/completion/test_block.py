"""Where a completion ends."""

import pytest

from byok.protocols.augment.completion import MOST_LINES, Cursor, IndentedBlock, OneLine

MORE = "\n\n\ndef other():\n    pass\n"


def block(before: str, after: str, said: str) -> tuple[str, bool]:
    """Return what is taken of a text after which more might have come."""
    extent = IndentedBlock(Cursor(before, after))
    extent.feed(said)
    return extent.take(whole=True), extent.enough


@pytest.mark.parametrize(
    ("before", "after", "said", "taken"),
    [
        pytest.param("def f(x):\n    ", "", f"return x{MORE}", "return x", id="body"),
        pytest.param(
            "def f(x):", "", f"\n    return x{MORE}", "\n    return x", id="head"
        ),
        pytest.param(
            "def f(x):", "", "\n    a\n\n    b\nc\n", "\n    a\n\n    b",
            id="paragraphs inside",
        ),
        pytest.param("x = [", "", "\n  1,\n]\n", "\n  1,\n]", id="closed at once"),
        pytest.param("def f(x):\n", "", f"    a\n  {MORE}", "    a", id="column 0"),
        pytest.param(
            "    a()", "\n", "\n    b()\n\n    c()\n", "\n    b()", id="next statement"
        ),
        pytest.param(
            "    if a:\n        b()", "\n", f"\n    return c{MORE}", "\n    return c",
            id="next statement further out",
        ),
        pytest.param(
            "    return a", "\n", f"{MORE}\n\nclass A:\n", MORE.rstrip(),
            id="next paragraph",
        ),
        pytest.param("  b();", "", "\n}\n\nc();\n", "\n}", id="the end of a block"),
        pytest.param("a\n    ", "\n", "\ndef b():\n", "", id="nothing here"),
        pytest.param(
            "namespace x {\n\n", "\n\n}\n", "int f() {\n  a();\n}\n\n}\n",
            "int f() {\n  a();\n}", id="a bracket of its own that looks alike",
        ),
        pytest.param(
            "x = ", "\n]\ny = 2\n", "[\n  1,\n]\ny = 2\n", "[\n  1,",
            id="a bracket that is there",
        ),
        pytest.param("f(\n", "\ng()\n", "  a\n)\n", "  a", id="not its place"),
        pytest.param("a(\n)", "\n)\n", "\nb\n)\n", "\nb", id="brackets below"),
        pytest.param("{\n", "", "  a\nb\n", "  a", id="its own indentation"),
        pytest.param("f(\n  a,\n  ", "", "b)\n  c\n", "b)", id="all is closed"),
        pytest.param("x = ", "\n", "1\ny = 2\nz = 3\n", "1", id="statement"),
        pytest.param(
            "x = [", "", "\n  1,\n  2,\n]\ny = 2\n", "\n  1,\n  2,\n]", id="closed"
        ),
        pytest.param(
            "if (a) {", "", "\n  b();\n} else {\n  c();\n}\nd();\n",
            "\n  b();\n} else {\n  c();\n}", id="else",
        ),
        pytest.param(
            "function f() {\n  ", "\n}\n", "return 1;\n}\n\nf();\n", "return 1;",
            id="a bracket of the outer block",
        ),
        pytest.param(
            "import os\n", "", "import re\n\nimport sys\nx = 1\n", "import re",
            id="paragraph",
        ),
        pytest.param(
            "    a()\n    ", "\n    return 1\n", "b()\n    return 1\n    c()\n", "b()",
            id="the line below",
        ),
        pytest.param(
            "    a()\n    ", "\n    return 1\n", "return 1\n    c()\n", "",
            id="the line below alone",
        ),
        pytest.param(
            "x = f(", "\n)\n", "{\n  1: 2,\n  3: g(\n    4\n  ),\n}\n)\n",
            "{\n  1: 2,\n  3: g(\n    4\n  ),\n}", id="brackets of its own",
        ),
    ],
)  # fmt: skip
def test_a_block_ends_where_another_begins(
    before: str, after: str, said: str, taken: str
) -> None:
    assert block(before, after, said) == (taken, True)


def test_an_unclosed_block_is_not_enough_and_is_taken() -> None:
    assert block("def f():\n    ", "", "a\n    b") == ("a\n    b", False)


def test_a_block_has_an_end_at_last() -> None:
    text, enough = block("", "", "x\n" * 100)
    assert enough
    assert text.count("x") == MOST_LINES


@pytest.mark.parametrize(
    ("again", "said", "taken", "enough"),
    [
        ("", "a, b\nc", "a, b", True),
        ("", "a, b", "a, b", False),
        ("", "\na", "", True),
        ("\n  ", "a\n  b", "a\n  ", True),
        ("\n  ", "a\n ", "a", False),
        ("\n  ", "a\nb", "a", True),
        ("\n", "a\n", "a\n", True),
    ],
)
def test_a_block_of_one_line_ends_with_its_line(
    again: str, said: str, taken: str, enough: bool
) -> None:
    extent = OneLine(again)
    extent.feed(said)
    assert (extent.take(whole=True), extent.enough) == (taken, enough)
