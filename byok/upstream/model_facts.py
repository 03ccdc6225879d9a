"""Facts about an upstream's models, from all sources: known at once, cached.

The server is asked about a model that it has loaded; all other sources need no request.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.chat import Json
from byok.core.errors import ByokError, ContextLengthExceeded, UpstreamError
from byok.core.platform.paths import write_private
from byok.core.wire.json_body import parse_json, write_json
from byok.core.wire.json_fields import read_object
from byok.dialects.base import Probe
from byok.dialects.families import family_facts
from byok.dialects.model_facts import (
    FREE,
    FactSource,
    ModelFacts,
    SourcedFacts,
    combine_facts,
    read_facts,
    write_facts,
)
from byok.dialects.presets import PRESETS
from byok.dialects.remedies import Remedy
from byok.storage.worker import Worker
from byok.upstream.http_body import read_limited
from byok.upstream.http_sender import Sender
from byok.upstream.model_table import known_table
from byok.upstream.spec import Api, UpstreamSpec

# Profiles: what `byok probe` and refusals have taught about models, kept in a file.
#
# The file is read again when it changes. A damaged one is reported once, ignored and
# left as it is, so that the user can look at it; a new profile of the probe replaces
# it.
#
#     {"version": 1, "profiles": {UPSTREAM: {MODEL: {
#         "facts": {}, "report": {},
#         "remedies": {DIALECT: [[CHANGE, WHAT, VERSION, SECONDS_SINCE_1970], ...]}
#     }}}}
#
# Remedies are written by a thread of their own, as they are learned in the middle of an
# answer.


_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_VERSION = 1
_MOST_FILE_BYTES = 4 * 2**20
_MAX_PROFILES = 2000
_MAX_REMEDIES = 50  # of one kind; those for one conversation become ever more
_NEVER = (-1, -1)
_KINDS = (str, str, str, int)  # of the fields of a remedy


class Profile(Struct, frozen=True):
    """What was found out about one model: facts, and the report of the probe as JSON.

    byok uses the facts alone; what a report holds is up to the probe.
    """

    facts: ModelFacts
    report: Json = field(default_factory=dict)


class Profiles:
    """The file of profiles, by upstream and model.

    An upstream is named by its name and address, as in the file of model lists.
    """

    def __init__(self, file: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._worker = Worker("profiles")
        self._writing: Future[None] | None = None  # the last one of the thread
        self._read_at = _NEVER  # time of change and size
        self._kept: Mapping[str, Any] = {}
        self.damage = ""  # why the file is ignored

    def facts(self, upstream: str, model: str) -> ModelFacts:
        """Return the facts of a profile; nothing is known without one."""
        return self.find(upstream, model).facts

    def find(self, upstream: str, model: str) -> Profile:
        """Return a model's profile, an empty one if there is none."""
        row = self._row(upstream, model)
        return Profile(read_facts(model, row.get("facts")), read_object(row, "report"))

    def models_of(self, upstream: str) -> list[str]:
        """Return the models of an upstream that have a profile."""
        self._refresh()
        return [*read_object(self._kept, upstream)]

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
        row = self._row(upstream, model)
        now = self._clock()
        return [
            (Remedy(change, what, version), now - learned)
            for change, what, version, learned in _read_remedies(row, dialect)
        ]

    def add_remedies(
        self, upstream: str, model: str, dialect: str, new: Iterable[Remedy]
    ) -> None:
        """Add remedies that helped; they are written in the background."""
        row = self._row(upstream, model)
        added = [
            (remedy.change, remedy.what, remedy.version, int(self._clock()))
            for remedy in new
        ]
        marks = {entry[:3] for entry in added}
        before = [r for r in _read_remedies(row, dialect) if r[:3] not in marks]
        rows = newest_of_each([*before, *added], lambda entry: entry[0])
        learned = {**read_object(row, "remedies"), dialect: rows}
        content = self._put(upstream, model, {**row, "remedies": learned})
        if not self.damage and not self._worker.is_closed:
            self._writing = self._worker.run(partial(self._write, content))

    def close(self) -> None:
        """Wait until everything is written; what comes later is not. Blocks."""
        self._worker.close()

    def _row(self, upstream: str, model: str) -> Json:
        self._refresh()
        return read_object(read_object(self._kept, upstream), model)

    def _put(self, upstream: str, model: str, row: Json) -> str:
        """Put a row at the end of the file's content, which is returned."""
        others = read_object(self._kept, upstream)
        others = {m: p for m, p in others.items() if m != model}
        rest = {name: rows for name, rows in self._kept.items() if name != upstream}
        kept = {**rest, upstream: {**others, model: row}}
        self._kept = _newest(kept, _MAX_PROFILES)
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
            if state[1] > _MOST_FILE_BYTES:
                raise ValueError("it is too large")
            self._kept = _read(self._file.read_bytes())
        except (OSError, ValueError) as error:
            self.damage = f"ignoring the profiles in {self._file}: {error}"
            _log.warning("%s", self.damage)


def newest_of_each(items: Sequence[_Item], kind: Callable[[_Item], str]) -> list[_Item]:
    """Return the last items of each kind, in their order."""
    counts = Counter[str]()
    kept: list[_Item] = []
    for item in reversed(items):
        counts[kind(item)] += 1
        if counts[kind(item)] <= _MAX_REMEDIES:
            kept.append(item)
    return kept[::-1]


def _read_remedies(row: Json, dialect: str) -> list[tuple[str, str, str, int]]:
    rows = read_object(row, "remedies").get(dialect)
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


def _newest(kept: dict[str, dict[str, Any]], most: int) -> dict[str, dict[str, Any]]:
    """Keep the last profiles only, so that the file does not grow for ever."""
    pairs = [(name, model) for name in kept for model in read_object(kept, name)]
    wanted = set(pairs[-most:])
    return {
        name: {m: p for m, p in read_object(kept, name).items() if (name, m) in wanted}
        for name in kept
    }


# Sources of model facts that need no request: settings, profiles, names, the table.


# What a source knows about a model, by its id.
Lookup: TypeAlias = tuple[FactSource, Callable[[str], ModelFacts]]


def fact_sources(spec: UpstreamSpec, profiles: Profiles | None) -> tuple[Lookup, ...]:
    """Return the sources for the models of one upstream."""

    def set_by_user(model: str) -> ModelFacts:
        own, common = (spec.facts.get(name) for name in (model, ""))
        layers = [(FactSource.USER, facts) for facts in (own, common) if facts]
        return combine_facts(model, layers).facts

    found: tuple[Lookup, ...] = (
        (FactSource.USER, set_by_user),
        (FactSource.FAMILY, family_facts),
        (FactSource.TABLE, lambda model: known_table().facts(spec.vendor, model)),
    )
    if spec.is_local:
        # A server here may pass questions on, so whoever names a price counts more.
        found = (*found, (FactSource.LOCAL, partial(_free_here, spec.vendor)))
    if profiles is None:
        return found
    key = spec.key
    return (*found, (FactSource.PROBE, lambda model: profiles.facts(key, model)))


def _free_here(vendor: str, model: str) -> ModelFacts:
    """Return that a model on this machine is free, unless its server is a gateway.

    That is one whose preset is a vendor's elsewhere, or which has none and offers a
    model that a vendor sells. Gateways write a version with points, too.
    """
    if preset := PRESETS.get(vendor):
        runs_here = preset.local
    else:
        names = {model, model.replace(".", "-")}
        known = [known_table().facts(vendor, name).known_fields() for name in names]
        runs_here = not any(known)
    return ModelFacts(model, price=FREE if runs_here else None)


_MOST_ANSWER_BYTES = 2**20
_MAX_MODELS = 1000
_SECONDS, _FRESH_SECONDS = 1.0, 60.0


class KnownModels:
    """What is known about the models of one upstream.

    A server is asked about a model at most once a minute: a local one may load the
    model again with another context window. What the other sources know is asked for
    that often as well, because the probe writes its profiles in another process.
    """

    def __init__(
        self,
        sender: Sender,
        api: Api,
        sources: Iterable[Lookup] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sender = sender
        self._api = api
        self._sources = tuple(sources)
        self._clock = clock
        self._listed: dict[str, ModelFacts] = {}
        # Until when it holds; a client may name any number of models.
        self._probed = BoundedMap[str, tuple[ModelFacts, float]](_MAX_MODELS)
        self._refused = BoundedMap[str, ModelFacts](_MAX_MODELS)
        self._combined = BoundedMap[str, tuple[SourcedFacts, float]](_MAX_MODELS)
        self._assumed: dict[str, Any] = {}

    def set_listed(self, models: Iterable[ModelFacts]) -> None:
        """Store the facts of the model list."""
        self._listed = {model.id: model for model in models}
        self._combined.clear()

    def listed_facts(self) -> Mapping[str, ModelFacts]:
        """Return the facts of the model list, by the models' names."""
        return self._listed

    def learn(self, facts: ModelFacts) -> None:
        """Store what refusals taught about a model, if anything; the newest counts."""
        if not facts.known_fields():
            return
        before = self._refused.get(facts.id) or ModelFacts(facts.id)
        layers = [(FactSource.REFUSAL, facts), (FactSource.REFUSAL, before)]
        known = combine_facts(facts.id, layers).facts
        if known != before:
            self._refused[facts.id] = known
            self._combined.pop(facts.id)

    def learn_from(self, error: UpstreamError, model: str) -> None:
        """Learn the window that an error names, unless a local server may change it."""
        window = error.window if isinstance(error, ContextLengthExceeded) else None
        if window and not self._api.dialect.probes(model):
            self.learn(ModelFacts(model, window=window))

    def assume(self, **values: Any) -> None:
        """Let facts have these values from now on, whatever is known: for trials."""
        self._assumed = values

    def facts(self, model: str) -> ModelFacts:
        """Return what is known about a model so far, for a request to it.

        That a model sounds like one without tools or pictures is no reason to leave
        them out: if it has none, it refuses them once.
        """
        known = self.sourced_facts(model)
        facts = known.facts
        guessed = {
            name: None
            for name in ("tools", "images")
            if getattr(facts, name) is False
            and known.sources[name] is FactSource.FAMILY
        }
        changed = guessed | self._assumed
        return replace(facts, **changed) if changed else facts

    def sourced_facts(self, model: str) -> SourcedFacts:
        """Return what is known about a model, and where each fact is known from."""
        now = self._clock()
        combined, until = self._combined.get(model) or (None, 0.0)
        if combined is None or now >= until:
            combined = self._combine(model)
            self._combined[model] = (combined, now + _FRESH_SECONDS)
        return combined

    def _combine(self, model: str) -> SourcedFacts:
        layers = [(source, look_up(model)) for source, look_up in self._sources]
        if refused := self._refused.get(model):
            layers.append((FactSource.REFUSAL, refused))
        if listed := self._listed.get(model):
            layers.append((FactSource.SERVER, listed))
        if probed := self._probed.get(model):
            layers.append((FactSource.LOADED, probed[0]))
        return combine_facts(model, layers)

    async def window(self, model: str) -> int:
        """Return the context window of a model in tokens, 0 if it is unknown.

        Where the user says it, the server is not asked.
        """
        if self.sourced_facts(model).sources.get("window") is not FactSource.USER:
            await self.ask(model)
        return self.facts(model).window

    async def ask(self, model: str) -> None:
        """Ask the server about a model, where its dialect knows how."""
        now = asyncio.get_running_loop().time()
        _, until = self._probed.get(model) or (None, now)
        probes = self._api.dialect.probes(model)
        if now < until or not probes:
            return
        answers = await asyncio.gather(*(self._probe(model, p) for p in probes))
        layers = [(FactSource.LOADED, facts) for facts, _ in answers]
        facts = combine_facts(model, layers).facts
        # Without the window of a loaded model the next question may find it loaded.
        is_fresh = facts.window or any(failed for _, failed in answers)
        self._combined.pop(model)
        self._probed[model] = (facts, now + (_FRESH_SECONDS if is_fresh else 0.0))

    async def _probe(self, model: str, probe: Probe) -> tuple[ModelFacts, bool]:
        """Return the facts of one answer, and whether there was none."""
        content = None if probe.body is None else write_json(probe.body)
        asked = self._sender.open(self._api, probe.path, content)
        try:
            async with asyncio.timeout(_SECONDS), asked as response:
                body = parse_json(await read_limited(response, _MOST_ANSWER_BYTES))
        except (ByokError, TimeoutError, ValueError, RecursionError) as error:
            _log.debug("nothing is learned of %.80s: %s", model, error)
            return ModelFacts(model), True
        return self._api.dialect.read_probe(body, model), False
