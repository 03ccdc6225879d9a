"""Profiles: what `byok probe` and refusals have taught about models, kept in a file.

The file is read again when it changes. A damaged one is reported once, ignored and left
as it is, so that the user can look at it; a new profile of the probe replaces it.

    {"version": 1, "profiles": {UPSTREAM: {MODEL: {
        "facts": {}, "report": {},
        "remedies": {DIALECT: [[CHANGE, WHAT, VERSION, SECONDS_SINCE_1970], ...]}
    }}}}

Remedies are written by a thread of their own, as they are learned in the middle of an
answer.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import orjson

from byok.core.chat import Json
from byok.core.platform.paths import write_private
from byok.dialects.model_facts import ModelFacts, read_facts, write_facts
from byok.dialects.remedies import Remedy

_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_VERSION = 1
_MAX_BYTES = 4 * 2**20
_MAX_PROFILES = 2000
_MAX_REMEDIES = 50  # of one kind; those for one conversation become ever more
_NEVER = (-1, -1)
_KINDS = (str, str, str, int)  # of the fields of a remedy


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

    def __init__(
        self,
        file: Path,
        *,
        most: int = _MAX_PROFILES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._most = most
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "profiles")
        self._is_closed = False
        self._writing: Future[None] | None = None  # the last one of the thread
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
        """Store a profile in place of all that was known about a model.

        Raises:
            OSError: the file cannot be written.
        """
        self._refresh()
        row = {"facts": write_facts(profile.facts), "report": profile.report}
        write_private(self._file, self._put(upstream, model, row))
        self._read_at = _state(self._file)

    def remedies(
        self, upstream: str, model: str, dialect: str
    ) -> list[tuple[Remedy, float]]:
        """Return the remedies of a model, each with its age in seconds."""
        self._refresh()
        row = _object(_object(self._kept.get(upstream)).get(model))
        now = self._clock()
        return [
            (Remedy(change, what, version), now - learned)
            for change, what, version, learned in _read_remedies(row, dialect)
        ]

    def add_remedies(
        self, upstream: str, model: str, dialect: str, new: Iterable[Remedy]
    ) -> None:
        """Add remedies that helped; they are written in the background."""
        self._refresh()
        row = _object(_object(self._kept.get(upstream)).get(model))
        added = [
            (remedy.change, remedy.what, remedy.version, int(self._clock()))
            for remedy in new
        ]
        marks = {entry[:3] for entry in added}
        before = [r for r in _read_remedies(row, dialect) if r[:3] not in marks]
        rows = newest_of_each([*before, *added], lambda entry: entry[0])
        learned = {**_object(row.get("remedies")), dialect: rows}
        content = self._put(upstream, model, {**row, "remedies": learned})
        if not self.damage and not self._is_closed:
            self._writing = self._thread.submit(self._write, content)

    def close(self) -> None:
        """Wait until everything is written; what comes later is not. Blocks."""
        self._is_closed = True
        self._thread.shutdown()

    def _put(self, upstream: str, model: str, row: Json) -> str:
        """Put a row at the end of the file's content, which is returned."""
        others = _object(self._kept.get(upstream))
        others = {m: p for m, p in others.items() if m != model}
        rest = {name: rows for name, rows in self._kept.items() if name != upstream}
        kept = {**rest, upstream: {**others, model: row}}
        self._kept = _newest(kept, self._most)
        content = {"version": _VERSION, "profiles": self._kept}
        return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()

    def _write(self, content: str) -> None:
        try:
            write_private(self._file, content)
        except OSError as error:
            _log.warning("what refusals teach cannot be kept: %s", error.strerror)
        self._read_at = _state(self._file)

    def _refresh(self) -> None:
        """Read the file again if another process has changed it."""
        if self._writing is not None and not self._writing.done():
            return  # what is known here is newer than the file
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


def newest_of_each(
    items: Sequence[_Item], kind: Callable[[_Item], str], most: int = _MAX_REMEDIES
) -> list[_Item]:
    """Return the last items of each kind, in their order."""
    counts = Counter[str]()
    kept: list[_Item] = []
    for item in reversed(items):
        counts[kind(item)] += 1
        if counts[kind(item)] <= most:
            kept.append(item)
    return kept[::-1]


def _read_remedies(row: Json, dialect: str) -> list[tuple[str, str, str, int]]:
    rows = _object(row.get("remedies")).get(dialect)
    return [
        (change, what, version, learned)
        for entry in (rows if isinstance(rows, list) else ())
        if isinstance(entry, list | tuple)
        and len(entry) == len(_KINDS)
        and all(map(isinstance, entry, _KINDS))
        for change, what, version, learned in [entry]
    ]


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
