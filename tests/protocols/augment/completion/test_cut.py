"""A model's text is made to fit at the cursor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.protocols.augment.completion import MOST_CHARS, Cursor, Cutter
from byok.protocols.augment.remarks import Unfenced
from tests.fakes.slices import CUTS, cut

CODE = st.text('ab ()\n{}"\t:', max_size=60)
AROUND = st.text('ab ()\n\r{}"', max_size=20)


def fitted(cursor: Cursor, *said: str, one_line: bool = False) -> str:
    """Feed a text until it is enough."""
    cutter = Cutter(cursor, Unfenced(), one_line=one_line)
    for piece in said:
        if cutter.enough:
            break
        cutter.feed(piece)
    return cutter.text(whole=True)


@pytest.mark.parametrize(
    ("before", "after", "said", "found"),
    [
        pytest.param(
            "def f(x):\n    ", "\n", "```python\n    return x\n```\nIt returns x.",
            "return x", id="a fence, the indentation, remarks",
        ),
        pytest.param(
            "def fare(kind):\n    ret", "\n", "def fare(kind):\n    return 1\n",
            "urn 1", id="the lines above",
        ),
        pytest.param("f(", ")", "a, b)", "a, b", id="what follows"),
        pytest.param("f(", ")\nx", "g(a)\nmore", "g(a)", id="a bracket of its own"),
        pytest.param("a\r\n", "\r\nz", "b\nc", "b\r\nc", id="the file's line endings"),
        pytest.param("a\r\n", "\r\nz", "b\r\nc\r\n", "b\r\nc", id="the model's, too"),
        pytest.param("a\n", "\nz", "b\r\nc", "b\nc", id="not where there are others"),
        pytest.param("a\n    ", "b()", "c()\n    d()", "c()\n    ", id="a line before"),
        pytest.param("x", "\n", " \n ", "", id="white space alone is nothing"),
        pytest.param("x = 1\n", "\n", "", "", id="nothing"),
    ],
)  # fmt: skip
def test_completion_cut_makes_a_text_fit(
    before: str, after: str, said: str, found: str
) -> None:
    assert fitted(Cursor(before, after), said) == found
    assert fitted(Cursor(before, after), *said) == found


def test_completion_cut_ends_an_endless_text() -> None:
    cutter = Cutter(Cursor("x = ", "\n"), Unfenced())
    fed = 0
    while not cutter.enough:
        cutter.feed("y" * 130)
        fed += 130
    assert fed <= MOST_CHARS + 130
    assert cutter.text(whole=True) == "y" * MOST_CHARS


@given(AROUND, AROUND, CODE, CUTS, st.booleans())
def test_where_the_stream_is_cut_makes_no_difference(
    before: str, after: str, said: str, places: list[int], one_line: bool
) -> None:
    cursor = Cursor(before, after)
    whole = fitted(cursor, said, one_line=one_line)
    assert fitted(cursor, *cut(said, places), one_line=one_line) == whole
    assert fitted(cursor, *said, one_line=one_line) == whole


@given(AROUND, AROUND, CODE)
def test_cutting_adds_nothing_but_line_endings(
    before: str, after: str, said: str
) -> None:
    found = fitted(Cursor(before, after), said)
    assert found.replace("\r\n", "\n").replace("\r", "\n") in said
    if "\n" in before + after and "\r" not in before + after:
        assert "\r" not in found


PYTHON = '''"""Fares of a ferry."""

import os
from dataclasses import dataclass

RATES = {
    "adult": 420,
    "child": 210,
}


@dataclass
class Fare:
    kind: str
    count: int = 1

    def total(self) -> int:
        """What to pay."""
        rate = RATES.get(
            self.kind,
            RATES["adult"],
        )
        if self.count > 10:
            return rate * self.count - min(
                rate,
                100,
            )

        return rate * self.count


def family(adults, children):
    found = [Fare("adult", adults), Fare("child", children)]
    for fare in found:
        print(fare.total())
    return sum(f.total() for f in found)
'''
SCRIPT = """namespace ferry {

export function total(fares: Fare[], rates = { adult: 420, child: 210 }) {
  let sum = 0;
  for (const fare of fares) {
    if (fare.kind in rates) {
      sum += rates[fare.kind];
    } else {
      sum += rates.adult;
    }
  }
  return fares.map((fare) => {
    return { ...fare, sum };
  });
}

export const route = [
  "Ostend",
  'it is "far"',
];

}
"""


@pytest.mark.parametrize("code", [PYTHON, SCRIPT], ids=["Python", "TypeScript"])
def test_completion_cut_takes_exactly_what_is_missing(code: str) -> None:
    lines = code.splitlines()
    tried = exact = 0
    for start, line in enumerate(lines):
        margin = len(line) - len(line.lstrip())
        for count in (1, 2, 3):
            for column in {margin, (margin + len(line)) // 2, len(line)}:
                head = "\n".join([*lines[:start], line[:column]])
                taken = [line[column:], *lines[start + 1 : start + count]]
                missing = "\n".join(taken).rstrip()
                tail = "\n".join(["", *lines[start + count :], ""])
                found = fitted(Cursor(head, tail), *(missing + tail))
                assert missing.startswith(found), (head, missing)
                tried += bool(missing)
                exact += bool(missing) and found == missing
    assert exact / tried > 0.6
