"""The lines that say which class and which function a line is in."""

import time

import pytest

from byok.search.retrieval.excerpts import find_enclosing

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
