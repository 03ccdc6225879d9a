"""What of a question leaves for a search server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.redact import Redactor
from byok.search.remote.question import read_question

OWN = "correct-horse-battery"  # a key that no pattern knows
REDACTOR = Redactor()
REDACTOR.add(OWN)


@pytest.mark.parametrize(
    ("question", "terms", "names"),
    [
        ("Where is the lion policy?", ("lion", "polic"), ()),
        ("call parseHTTP", ("call", "pars", "http", "parsehttp"), ()),
        ("重试", ("retr",), ()),
        ("the handler of /api/zebras", ("handler", "api", "zebra"), ()),
        ("login in src/auth.py", ("login", "src", "auth"), ("auth.py",)),
        ("what is it", (), ()),
        ("", (), ()),
    ],
)  # fmt: skip
def test_the_heaviest_words_leave_and_names_of_files(
    question: str, terms: tuple[str, ...], names: tuple[str, ...]
) -> None:
    asked = read_question(question, REDACTOR)
    assert (asked.terms, asked.names) == (terms, names)


@pytest.mark.case("B129")
@pytest.mark.parametrize(
    ("question", "secret"),
    [
        (f"why is {OWN} refused by the oven", ("correct", "hors", "batter")),
        ("the oven says sk-Abcdefghij0123456789xyz", ("abcdefghij", "xyz")),
        ("the oven has password = 'kangaroo-Pouch77'", ("kangaroo", "pouch")),
        ("the oven takes kangarooA1b2C3d4E5f6G7h8", ("kangaroo",)),
        ("/home/kangaroo/pouch.py breaks the oven", ("kangaroo", "pouch", "home")),
        (r"C:\Users\kangaroo\pouch.py breaks the oven", ("kangaroo", "pouch", "user")),
        ("~/kangaroo/pouch.py breaks the oven", ("kangaroo", "pouch")),
        ("`/tmp/kangaroo`, the oven", ("kangaroo", "tmp")),
    ],
)
def test_no_secret_and_no_path_of_this_machine_leaves(
    question: str, secret: tuple[str, ...]
) -> None:
    asked = read_question(question, REDACTOR)
    assert "oven" in asked.terms
    sent = " ".join([*asked.terms, *asked.names])
    assert not [part for part in secret if part in sent]


@given(st.text())
def test_terms_and_names_have_no_sign_that_a_query_could_mean(text: str) -> None:
    asked = read_question(f"oven {text}", REDACTOR)
    assert all(term.isalnum() for term in asked.terms)
    assert all(name.replace(".", "").replace("-", "").replace("_", "").isalnum()
               for name in asked.names)  # fmt: skip


def test_of_a_long_question_ten_words_and_three_names_leave() -> None:
    animals = "lion tiger zebra kangaroo parrot penguin walrus otter badger ferret newt"
    asked = read_question(f"{animals} a.py b.py c.py d.py", REDACTOR)
    assert (len(asked.terms), len(asked.names)) == (10, 3)
