"""The file of model lists: what one process wrote, another one reads."""

import json
from pathlib import Path

import pytest

from byok.dialects.model_facts import ModelFacts
from byok.upstream.catalog import remember_lists


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "models.json"


def test_only_the_last_fifty_lists_are_kept(file: Path) -> None:
    for names in (range(40), range(40, 60)):
        remember_lists(file, {f"u{name}": [ModelFacts("m")] for name in names})
    assert len(json.loads(file.read_bytes())) == 50
