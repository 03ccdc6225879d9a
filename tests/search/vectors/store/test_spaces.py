"""Spaces: a model is known by its name and by its vector of the probe text."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byok.search.vectors.store import spaces
from byok.search.vectors.store.database import VectorDatabase
from tests.fakes.vectors import SPACE, Rows, probe


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[VectorDatabase]:
    made = VectorDatabase(tmp_path / "vectors.db", Rows(tmp_path / "data.db").path)
    yield made
    made.close()


def test_a_space_is_found_by_name_and_probe(connection: VectorDatabase) -> None:
    with connection.writing() as db:
        made = spaces.make_space(db, SPACE, probe())
        noisy = probe() + np.float32(0.002) * probe("other")
        assert spaces.find_space(db, SPACE, noisy) == made
        assert spaces.find_space(db, SPACE, probe("other")) is None
        assert spaces.find_space(db, SPACE, probe() * np.nan) is None
        assert spaces.find_space(db, replace(SPACE, recipe="2"), probe()) is None
        assert np.allclose(spaces.all_spaces(db)[0].probe, probe())


@pytest.mark.parametrize(
    ("change", "answers"),
    [
        ({}, True),
        ({"recipe": "2"}, True),
        ({"document_prefix": "code: "}, True),
        ({"query_prefix": "question: "}, False),
        ({"dimensions": 8}, False),
        ({"model": "other"}, False),
    ],
    ids=str,
)
def test_questions_of_another_recipe_can_be_compared(
    change: dict[str, object], answers: bool
) -> None:
    space = spaces.Space(1, SPACE, probe(), is_ready=True)
    name = replace(SPACE, **change)  # type: ignore[arg-type]
    other = spaces.Space(2, name, probe(), is_ready=False)
    assert other.answers(space) is answers


def test_a_model_that_was_replaced_does_not_answer_with_old_vectors() -> None:
    old = spaces.Space(1, SPACE, probe(), is_ready=True)
    assert not old.answers(spaces.Space(2, SPACE, probe("other"), is_ready=False))
    prefix = replace(SPACE, document_prefix="code: ")
    assert old.answers(spaces.Space(3, prefix, probe("other"), is_ready=False))


def test_spaces_are_left_and_ready_ones_told(connection: VectorDatabase) -> None:
    with connection.writing() as db:
        old = spaces.make_space(db, SPACE, probe())
        new = spaces.make_space(db, SPACE, probe("other"))
        assert spaces.all_spaces(db) == [new, old]
        spaces.set_ready(db, new)
        spaces.leave(db, [old])
        assert spaces.all_spaces(db) == [replace(new, is_ready=True)]


def test_only_vectors_since_the_last_good_probe_are_dropped(
    connection: VectorDatabase,
) -> None:
    def add(place: int, turn: int) -> None:
        first = (space.id << 32) + place
        values = (first, space.id, place, turn)
        db.execute("INSERT INTO vector VALUES(?, ?, ?, ?, 1.0, 0, x'')", values)
        db.execute("UPDATE space SET turn = ?", (turn,))

    with connection.writing() as db:
        space = spaces.make_space(db, SPACE, probe())
        add(0, 1)
        add(1, 2)
        spaces.note_good_probe(db, space)
        add(2, 3)
        add(3, 4)
        assert spaces.drop_unchecked(db, space) == 2
        found = db.execute("SELECT turn FROM vector ORDER BY turn").fetchall()
        assert found == [(1,), (2,)]
