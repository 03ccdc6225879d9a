"""Notes in which threads questions are parsed."""

import threading

import pytest

from byok.search.retrieval.query import Query, parse_query


def note_parsing(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that tells of each question whether the event loop waited."""
    blocked: list[bool] = []

    def parse(text: str) -> Query:  # it may load a table
        blocked.append(threading.current_thread() is threading.main_thread())
        return parse_query(text)

    monkeypatch.setattr("byok.search.retrieval.query.parse_query", parse)
    return blocked
