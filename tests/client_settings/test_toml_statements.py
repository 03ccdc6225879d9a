"""A text as statements."""

import pytest

from byok.client_settings.toml_statements import (
    BLANK,
    HEAD,
    KEY,
    NOTE,
    commented_head,
    read_statement,
    shows_key,
    split_statements,
)
from byok.config import example
from tests.fakes.own_settings import TEXTS


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_statements_joined_are_the_text(text: str) -> None:
    statements = split_statements(text)
    assert "".join(statement.text for statement in statements) == text
    for statement in statements:
        if statement.kind == KEY:
            assert len(read_statement(statement)) == 1


def test_each_statement_knows_its_kind_and_table() -> None:
    text = '''a = """x # "
[no]""" # c

# n
[ t."u v" ] # h
k = [ # l
  "]", # m
]
[[list]]
'''
    found = [(s.kind, s.table) for s in split_statements(text)]
    path = ("t", "u v")
    assert found == [
        (KEY, ()),
        (BLANK, ()),
        (NOTE, ()),
        (HEAD, path),
        (KEY, path),
        (HEAD, None),
    ]


def test_the_example_shows_heads_and_keys() -> None:
    statements = split_statements(example() + "# [no head]\n")
    heads = [path for s in statements if (path := commented_head(s)) is not None]
    assert ("chat",) in heads
    assert ("upstreams", "openai") not in heads  # a worked example, with ##
    assert sum(shows_key(s, "temperature") for s in statements) == 2
    assert not any(shows_key(s, "temp") for s in statements)
