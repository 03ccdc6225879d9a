"""What counts in a file, and what a model may write without harm."""

import pytest

from byok.trials.normal_form import NotParsed, find_meaning

BASE = "import a\nfrom b import c, d\n\n\ndef f(x, y=1):\n    return x + y\n"


@pytest.mark.parametrize(
    "text",
    [
        "from b import d, c\nimport a\ndef f(x,y=1): return (x+y) # sum",
        '"""Doc."""\n' + BASE,
        BASE.replace("    return", '    """Add."""\n    return'),
        BASE.replace("(x, y=1)", "(x: int, y: int = 1) -> int"),
        BASE.replace("\n", "\r\n"),
    ],
    ids=["layout", "docstring", "docstring of a function", "annotations", "CRLF"],
)
def test_python_of_another_layout_means_the_same(text: str) -> None:
    assert find_meaning("a.py", text) == find_meaning("a.py", BASE)


@pytest.mark.parametrize(
    "text",
    [
        BASE.replace("y=1", "y=2"),
        BASE.replace("x + y", "y + x"),
        BASE.replace("(x, y=1)", "(x, *, y=1)"),
        BASE.replace("import a\n", ""),
        BASE + "print(1)\n",
        BASE.replace("x + y", "'x + y'"),
    ],
)
def test_python_that_does_something_else_differs(text: str) -> None:
    assert find_meaning("a.py", text) != find_meaning("a.py", BASE)


LOOP = """
def f(x):
    total = 0
    for one in x:
        total += one
    return total
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("total", "y", True),
        ("one", "_", True),
        ("for one in x:", "for one in total:", False),
        ("return total", "return one", False),
        ("x", "y", False),
        ("    total = 0", "    global total\n    total = 0", False),
    ],
)
def test_names_of_local_variables_do_not_count(old: str, new: str, same: bool) -> None:
    """Those of parameters do, and whatever changes which variable is meant."""
    text = LOOP.replace(old, new)
    assert text != LOOP
    assert (find_meaning("a.py", text) == find_meaning("a.py", LOOP)) is same


def test_names_that_are_not_only_local_count() -> None:
    one, other = (f"def f():\n    global {n}\n    {n} = 1\n" for n in "ab")
    assert find_meaning("a.py", one) != find_meaning("a.py", other)
    assert find_meaning("a.py", "A = 1") != find_meaning("a.py", "B = 1")


def test_an_annotated_assignment_is_an_assignment() -> None:
    assert find_meaning("a.py", "a: int = 1\nb: int") == find_meaning(
        "a.py", "a = 1\nb: int"
    )


@pytest.mark.parametrize(
    ("path", "one", "other", "same"),
    [
        ("a.json", '{"a": 1, "b": [1, 2]}', '{\n"b":[1,2],"a":1}', True),
        ("a.json", '{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ("a.toml", "a = 1 # one\n[t]\nb = 2", "a=1\nt.b = 2", True),
        ("a.toml", "a = 1", "a = '1'", False),
        ("README.md", "# A\n\ntext  \n", "# A\ntext", True),
        ("README.md", "# A", "# a", False),
    ],
)
def test_other_files_are_compared_by_what_they_hold(
    path: str, one: str, other: str, same: bool
) -> None:
    assert (find_meaning(path, one) == find_meaning(path, other)) is same


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "def f(:"),
        ("a.py", "a = 1\0"),
        ("a.py", "(" * 1000 + ")" * 1000),
        ("a.py", "a" + ".b" * 20_000),
        ("a.py", "\n".join(f"{' ' * n}if x:" for n in range(300))),
        ("a.py", "-" * 50_000 + "1"),
        ("a.py", "\\\n".join(["-"] * 9000) + "1"),
        ("a.py", "\n+".join(["x"] * 9000).join("()")),
        ("a.py", "not\\\n" * 9000 + "x"),
        ("a.py", "lambda:\\\n" * 5000 + "x"),
        ("a.py", "x = " + "[" * 61 + "]" * 61),
        ("a.py", "9" * 5000),
        ("a.py", "#" * 10_000_000),
        ("a.json", "[" * 30_000 + "]" * 30_000),
        ("a.json", "{"),
        ("a.json", '{"a": NaN}x'),
        ("a.toml", "a = " + "[" * 30_000 + "]" * 30_000),
        ("a.toml", "a = 1\na = 2"),
        ("a.toml", f"a = {'9' * 5000}"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_what_is_broken_large_or_deep_is_not_parsed(path: str, text: str) -> None:
    with pytest.raises(NotParsed):
        find_meaning(path, text)


def test_a_warning_of_the_parser_is_not_shown(
    recwarn: pytest.WarningsRecorder,
) -> None:
    find_meaning("a.py", 'a = "\\d" is 1\nassert (1, "x")')
    assert not recwarn.list
