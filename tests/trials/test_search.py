"""Retrieval in a small repository: the file that shares the most words comes first."""

import pytest

from byok.trials.search import find_code

FILES = {
    "mail/sender.py": "def sendMessage(server):\n    pass\n",
    "shop/prices.py": "def total_price(items):\n    pass\n",
    "empty.py": "",
    **{f"other/{n}.py": "x = 1\n" for n in range(9)},
}


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("where is the price of all items summed up", "shop/prices.py"),
        ("send_message", "mail/sender.py"),
        ("the sender of mails", "mail/sender.py"),
    ],
)
def test_the_best_file_comes_first(question: str, path: str) -> None:
    text = find_code(FILES, question)
    assert text.startswith(
        f"The following code sections were retrieved:\nPath: {path}\n     1\tdef "
    )
    assert text.count("Path: ") <= 4


@pytest.mark.parametrize("question", ["", "Wo steht der Preis?", "\0", "x" * 10**5])
def test_any_question_has_an_answer_of_limited_length(question: str) -> None:
    large = {f"{n}.py": "y = 1\n" * 5000 for n in range(9)}
    assert len(find_code(large, question)) < 10_000
