"""Recorded lists of models: defaults, windows and caps, against a golden file.

The golden file has names of defaults, and how many models have each limit.
`pytest tests/upstream/test_recorded_lists.py --update-golden` writes it anew; read the
difference.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from byok.core.routing import Purpose
from byok.dialects.base import DIALECTS
from byok.dialects.default_models import choose_chat_model, choose_job_model
from byok.dialects.families import family_facts
from byok.dialects.model_facts import FactSource, ModelFacts, combine_facts
from byok.dialects.presets import preset_of
from byok.upstream.model_table import packed_table
from tests.fakes.replay import bytes_of, recorded

GOLDEN = Path(__file__).parent.parent / "golden" / "model_lists.json"


def known(vendor: str, listed: ModelFacts) -> ModelFacts:
    """What byok knows of a model when it has read the list."""
    layers = [
        (FactSource.SERVER, listed),
        (FactSource.FAMILY, family_facts(listed.id)),
        (FactSource.TABLE, packed_table().facts(vendor, listed.id)),
    ]
    return combine_facts(listed.id, layers).facts


def counts(values: list[int]) -> dict[str, int]:
    return {str(value): n for value, n in sorted(Counter(values).items())}


def report(vendor: str, body: Any) -> dict[str, Any]:
    dialect = DIALECTS[preset_of(vendor).dialect](vendor)
    listed = dialect.read_models(body).models
    facts = [known(vendor, model) for model in listed]
    return {
        "models": len(listed),
        "default": choose_chat_model(vendor, listed),
        "small": choose_job_model(vendor, Purpose.COMMIT, listed),
        "completion": choose_job_model(vendor, Purpose.COMPLETION, listed),
        "windows": counts([f.window for f in facts]),
        "caps": counts([f.max_output for f in facts]),
        "prices": sum(f.price is not None for f in facts),
        "pictures": [f.images for f in facts].count(True),
        "no pictures": [f.images for f in facts].count(False),
        "tools": [f.tools for f in facts].count(True),
        "no tools": [f.tools for f in facts].count(False),
    }


@pytest.mark.shared
def test_recorded_lists_give_the_defaults_windows_and_caps_of_the_golden_file(
    shared: Path, request: pytest.FixtureRequest
) -> None:
    found = {}
    for item in recorded(shared, "models"):
        told = report(item["provider"], json.loads(bytes_of(shared, item)))
        found[f"{item['provider']}, {told['models']} models"] = told
    assert len(found) == 11
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    assert found == json.loads(GOLDEN.read_text("utf-8"))
