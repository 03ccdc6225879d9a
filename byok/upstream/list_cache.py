"""The file with the last model lists of the upstreams, and what they tell of models.

`{NAME@ADDRESS: [MODEL, ...]}`; a model is its id, or an object with `id` and facts.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from byok.dialects.model_facts import ModelFacts, read_facts, write_facts
from byok.platform.paths import write_private

_log = logging.getLogger(__name__)
_MAX_REMEMBERED = 50  # upstreams


def read_lists(file: Path, keys: Iterable[str]) -> Mapping[str, list[ModelFacts]]:
    """Read the lists of these upstreams; what is damaged is ignored."""
    kept = _read(file)
    return {
        key: [model for row in rows if (model := _read_model(row)) is not None]
        for key in keys
        if isinstance(rows := kept.get(key), list)
    }


def remember_lists(file: Path, lists: Mapping[str, Sequence[ModelFacts]]) -> None:
    """Write these lists; those of other upstreams stay."""
    written = {key: [*map(_write_model, models)] for key, models in lists.items()}
    merged = {**_read(file), **written}
    kept = dict(list(merged.items())[-_MAX_REMEMBERED:])
    try:
        write_private(file, orjson.dumps(kept).decode())
    except OSError as error:
        _log.warning("the list of models cannot be kept: %s", error.strerror)


def _read(file: Path) -> dict[str, Any]:
    try:
        lists = orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return lists if isinstance(lists, dict) else {}


def _read_model(row: Any) -> ModelFacts | None:
    model = row.get("id") if isinstance(row, dict) else row
    return read_facts(model, row) if isinstance(model, str) and model else None


def _write_model(facts: ModelFacts) -> Any:
    known = write_facts(facts)
    return {"id": facts.id, **known} if known else facts.id
