"""The file of model lists: what one process wrote, another one reads."""

import json
from pathlib import Path

import pytest

from byok.dialects.model_facts import ModelFacts
from byok.upstream.catalog import read_lists, remember_lists

FACTS = ModelFacts("m", window=9000, tools=True, efforts=("low",))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "models.json"


def test_lists_with_facts_are_read_again(file: Path) -> None:
    remember_lists(file, {"a": [FACTS, ModelFacts("n")], "b": [ModelFacts("o")]})
    assert read_lists(file, ["a", "c"]) == {"a": [FACTS, ModelFacts("n")]}
    assert json.loads(file.read_bytes())["b"] == ["o"]


def test_lists_of_other_upstreams_stay(file: Path) -> None:
    remember_lists(file, {"a": [FACTS]})
    remember_lists(file, {"b": [ModelFacts("n")]})
    assert list(read_lists(file, ["a", "b"])) == ["a", "b"]


def test_only_the_last_fifty_lists_are_kept(file: Path) -> None:
    for number in range(60):
        remember_lists(file, {f"u{number}": [ModelFacts("m")]})
    assert len(json.loads(file.read_bytes())) == 50


@pytest.mark.parametrize("rows", [[None, 7, "", {"id": 3}, {}, "m"], ["m"]], ids=str)
def test_rows_that_name_no_model_are_ignored(file: Path, rows: object) -> None:
    file.parent.mkdir()
    file.write_text(json.dumps({"a": rows, "b": {}}))
    assert read_lists(file, ["a", "b"]) == {"a": [ModelFacts("m")]}
