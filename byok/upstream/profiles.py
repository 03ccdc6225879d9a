"""Profiles: what `byok probe` found out about models, kept in a file.

The file is read again when it changes. A damaged one is reported once, ignored and left
as it is, so that the user can look at it; writing a profile replaces it.

    {"version": 1, "profiles": {UPSTREAM: {MODEL: {"facts": {}, "report": {}}}}}
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from byok.chat import Json
from byok.dialects.fact_values import read_facts, write_facts
from byok.dialects.model_facts import ModelFacts
from byok.platform.paths import write_private

_log = logging.getLogger(__name__)
_VERSION = 1
_MAX_BYTES = 4 * 2**20
_MAX_PROFILES = 2000
_NEVER = (-1, -1)


@dataclass(frozen=True, slots=True)
class Profile:
    """What was found out about one model: facts, and the report of the probe as JSON.

    byok uses the facts alone; what a report holds is up to the probe.
    """

    facts: ModelFacts
    report: Json = field(default_factory=dict)


class Profiles:
    """The file of profiles, by upstream and model.

    An upstream is named by its name and address, as in the file of model lists.
    """

    def __init__(self, file: Path, *, most: int = _MAX_PROFILES) -> None:
        self._file = file
        self._most = most
        self._read_at = _NEVER  # time of change and size
        self._kept: Mapping[str, Any] = {}
        self.damage = ""  # why the file is ignored

    def facts(self, upstream: str, model: str) -> ModelFacts:
        """Return the facts of a profile; nothing is known without one."""
        return self.find(upstream, model).facts

    def find(self, upstream: str, model: str) -> Profile:
        """Return a model's profile, an empty one if there is none."""
        self._refresh()
        row = _object(_object(self._kept.get(upstream)).get(model))
        facts = read_facts(model, row.get("facts"))
        return Profile(facts, _object(row.get("report")))

    def models_of(self, upstream: str) -> list[str]:
        """Return the models of an upstream that have a profile."""
        self._refresh()
        return list(_object(self._kept.get(upstream)))

    def write(self, upstream: str, model: str, profile: Profile) -> None:
        """Store a profile, in place of the one before.

        Raises:
            OSError: the file cannot be written.
        """
        self._refresh()
        row = {"facts": write_facts(profile.facts), "report": profile.report}
        others = _object(self._kept.get(upstream))
        others = {m: p for m, p in others.items() if m != model}
        rest = {name: rows for name, rows in self._kept.items() if name != upstream}
        kept = {**rest, upstream: {**others, model: row}}
        self._kept = _newest(kept, self._most)
        content = {"version": _VERSION, "profiles": self._kept}
        option = orjson.OPT_INDENT_2
        write_private(self._file, orjson.dumps(content, option=option).decode())
        self._read_at = _state(self._file)

    def _refresh(self) -> None:
        state = _state(self._file)
        if state == self._read_at:
            return
        self._read_at = state
        self._kept, self.damage = {}, ""
        if state == _NEVER:
            return
        try:
            if state[1] > _MAX_BYTES:
                raise ValueError("it is too large")
            self._kept = _read(self._file.read_bytes())
        except (OSError, ValueError) as error:
            self.damage = f"ignoring the profiles in {self._file}: {error}"
            _log.warning("%s", self.damage)


def _state(file: Path) -> tuple[int, int]:
    """Return when a file was changed and how large it is, `_NEVER` without a file."""
    try:
        facts = file.stat()
    except OSError:
        return _NEVER
    return facts.st_mtime_ns, facts.st_size


def _read(content: bytes) -> Mapping[str, Any]:
    value = orjson.loads(content)
    if not isinstance(value, dict) or value.get("version") != _VERSION:
        raise ValueError(f"it is not of version {_VERSION}")
    kept = value.get("profiles")
    if not isinstance(kept, dict):
        raise ValueError("it has no profiles")
    return kept


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _newest(kept: dict[str, dict[str, Any]], most: int) -> dict[str, dict[str, Any]]:
    """Keep the last profiles only, so that the file does not grow for ever."""
    pairs = [(name, model) for name, rows in kept.items() for model in _object(rows)]
    wanted = set(pairs[-most:])
    return {
        name: {m: row for m, row in _object(rows).items() if (name, m) in wanted}
        for name, rows in kept.items()
    }
