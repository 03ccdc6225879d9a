"""Long lines are cut around what was asked for, and no secret comes with it."""

import random
import time
from pathlib import Path

import pytest

from byok.search.retrieval.excerpts import (
    describe_terms,
    find_enclosing,
    find_terms,
    find_texts,
    show_lines,
)
from byok.search.retrieval.model_aids import ModelAids
from byok.search.retrieval.query import parse_query
from byok.search.retrieval.retriever import Retriever
from byok.search.retrieval.ripgrep import Ripgrep
from tests.fakes.engines import indexed, written

KEY = "sk-" + "a8Kd93jf02LsmQ7xZv41PwRt65YbNh8C"
FILLER = ", ".join(f"cell_{n}: {n}" for n in range(500))  # 7,000 characters


def shown(line: str, question: str, path: str = "a.py") -> str:
    find = find_terms(parse_query(question).terms)
    [text] = show_lines([line], 0, 0, find, path=path)
    return text


def test_a_long_line_is_cut_around_the_words_that_were_asked_for() -> None:
    """At its beginning, in the middle, at its end; also far behind what is masked."""
    draw = random.Random(7)
    wrong = []
    for length in (401, 4_095, 4_200, 7_000, 100_000):
        filler = (FILLER * (length // len(FILLER) + 1))[:length]
        for at in (0, length // 2, length, *draw.sample(range(length), 5)):
            text = shown(f"{filler[:at]} feed_lion {filler[at:]}", "feed lion")
            if "feed_lion" not in text or not 300 < len(text) < 500:
                wrong.append((length, at, text))
    assert wrong == []


def test_words_that_are_far_apart_are_all_shown() -> None:
    line = f"lion {FILLER} tiger {FILLER} zebra"
    text = shown(line, "lion tiger zebra")
    assert all(word in text for word in ("lion", "tiger", "zebra"))
    assert text.count("characters cut]") == 2
    assert len(text) < 500


def test_what_is_cut_is_counted_and_the_line_is_whole_otherwise() -> None:
    line = "x " * 300 + "lion" + " y" * 300
    text = shown(line, "lion")
    before, middle, after = text.partition("lion")
    assert before.startswith("[") and after.endswith(" characters cut]")
    kept = text.replace("[", "]").split("]")[2].strip(" ")
    cut = sum(int(part.split()[0]) for part in text.split("[")[1:])
    assert middle and line.count(kept) == 1
    assert abs(len(line) - cut - len(kept)) <= 2  # spaces beside the marks
    assert shown("short lion", "lion") == "short lion"


@pytest.mark.case("B74")
def test_a_cut_line_shows_no_secret() -> None:
    for before in (10, 390, 4_090, 6_500, 40_000):
        filler = FILLER * (before // len(FILLER) + 1)
        line = f"{filler[:before]} lion_token = '{KEY}', password: '{KEY}' {FILLER}"
        text = shown(line, "lion token")
        assert KEY[3:] not in text
        assert "lion_token" in text


def test_a_text_search_shows_parts_of_words() -> None:
    find = find_texts(["eed_Li", "a.b("])
    [text] = show_lines([f"{FILLER}feed_lion{FILLER}"], 0, 0, find)
    assert "feed_lion" in text
    [text] = show_lines([FILLER], 0, 0, find_texts([]))
    assert text.startswith(FILLER[:400])


# The lines of a hit that people are shown


async def lines_of(tmp_path: Path, text: str, question: str, most: int = 12) -> object:
    """Return the lines shown of the only file, found by a question."""
    root = written(tmp_path / "project", {"a.py": text})
    async with indexed(tmp_path / "e", root) as made:
        retriever = Retriever(made, Ripgrep(lambda: None), aids=ModelAids)
        found = await retriever.search(question, 1, [str(root)], lines=most)
        without = await retriever.search(question, 1, [str(root)])
    assert "lines" not in without["hits"][0]
    assert "terms" not in without
    return [
        (line["number"], line["text"], line["match"])
        for line in found["hits"][0]["lines"]
    ]


async def test_lines_that_match_come_with_the_lines_around(tmp_path: Path) -> None:
    text = "a = 1\nb = 2\nclass TokenCheck:\n    c = 3\n    d = 4\n"
    assert await lines_of(tmp_path, text, "where are tokens checked") == [
        (2, "b = 2", False),
        (3, "class TokenCheck:", True),
        (4, "    c = 3", False),
    ]


async def test_the_lines_that_say_most_come_before_those_that_say_little(
    tmp_path: Path,
) -> None:
    some = "".join(f"token_{n} = {n}\n" for n in range(9))
    text = f"{some}\n\ndef check_token(token):\n    return token\n"
    shown = await lines_of(tmp_path, text, "check token", 3)
    assert isinstance(shown, list)
    assert (12, "def check_token(token):", True) in shown
    assert [number for number, _, _ in shown] == sorted(n for n, _, _ in shown)


def test_terms_are_the_words_as_they_were_said_with_weights_and_whole_names() -> None:
    described = describe_terms(parse_query("where are computedValues checking tokens"))
    assert described == [
        {"term": "computed", "whole": False, "weight": 1.0},
        {"term": "Values", "whole": False, "weight": 1.0},
        {"term": "computedValues", "whole": True, "weight": 1.0},
        {"term": "checking", "whole": False, "weight": 1.0},
        {"term": "tokens", "whole": False, "weight": 1.0},
    ]
    [found] = [
        one
        for one in describe_terms(parse_query("throw old entries away"))
        if one["term"].startswith("purg")
    ]
    assert found["term"] == "purge"  # which code says for it
    assert "折扣" in {one["term"] for one in describe_terms(parse_query("折扣"))}


# The lines that say which class and which function a line is in


TEXTS = {
    "python": """
class Zoo(Park):
    # about it
    def feed(
        self,
    ) -> None:
        for one in self:
            if one:
                HERE
""",
    "go": """
func (z *Zoo) Feed(food Food) error {
\tif food == nil {
\t\tHERE
\t}
}
""",
    "csharp": """
public class Zoo : Park
{
#if DEBUG
    public void Feed(Food food)
    {
        while (true)
        {
            HERE
""",
    "c": """
static int feed(zoo_t* zoo) {
#ifdef FOOD
  if (zoo) {
again:
    HERE
""",
    "javascript": """
const other = () => {
  return 1
}

module.exports = function feed (zoo) {
  zoo.on('food', () => {
    HERE
""",
    "rust": """
impl<T> Zoo for Cage<T> {
    pub(crate) async fn feed(&self) {
        match self.x {
            HERE
""",
    "top": """
def feed():
    pass

HERE
""",
}
ENCLOSING = {
    "python": [1, 3],
    "go": [1],
    "csharp": [1, 4],
    "c": [1],
    "javascript": [5, 6],
    "rust": [1, 2],
    "top": [],
}


@pytest.mark.parametrize("language", TEXTS)
def test_class_and_function_around_a_line_are_found(language: str) -> None:
    lines = TEXTS[language].split("\n")
    here = next(n for n, line in enumerate(lines) if "HERE" in line)
    assert find_enclosing(lines, here) == ENCLOSING[language]


def test_what_encloses_a_line_of_a_long_file_is_found_at_once() -> None:
    lines = ["class A:", *["    f(x, " + "y, " * 99 + "z" for _ in range(50_000)]]
    began = time.process_time()
    assert find_enclosing(lines, 1_000) == [0]
    assert find_enclosing(lines, 50_000) == []  # too far away
    assert time.process_time() - began < 1
