"""Facts about an upstream's models, from all sources, cached.

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

_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_VERSION = 1  # of the file of profiles
_MAX_FILE_BYTES = 4 * 2**20
_MAX_PROFILES = 2000
_MAX_REMEDIES = 50  # of one kind; some are learned anew in every conversation
_NO_FILE = (-1, -1)  # a file's time of change and its size
_REMEDY_TYPES = (str, str, str, int)  # of the fields of a remedy in the file
_MAX_MODELS = 1000
_MAX_PROBE_BYTES = 2**20
_PROBE_SECONDS, _FRESH_SECONDS = 1.0, 60.0

# A source, and the function that returns its facts about a model by its id.
Lookup: TypeAlias = tuple[FactSource, Callable[[str], ModelFacts]]


class Profile(Struct, frozen=True):
    """The learned facts about one model, and the report of `byok probe` as JSON.

    byok uses the facts alone; only the probe reads the report.
    """

    facts: ModelFacts
    report: Json = field(default_factory=dict)


class Profiles:
    """The file of profiles: what `byok probe` and refusals have taught about models.

    The file is read again when it changes. A damaged file is reported once, ignored and
    left unchanged, so that the user can look at it, until the probe writes a new
    profile.

        {"version": 1, "profiles": {UPSTREAM: {MODEL: {
            "facts": {}, "report": {},
            "remedies": {DIALECT: [[CHANGE, WHAT, VERSION, SECONDS_SINCE_1970], ...]}
        }}}}

    An upstream is identified by its name and address, as in the file of model lists.
    Remedies are written in a thread, because they are learned during an answer.
    """

    def __init__(self, file: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._worker = Worker("profiles")
        self._writing: Future[None] | None = None  # the last job of the thread
        self._read_state = _NO_FILE
        self._profiles: Mapping[str, Any] = {}
        self.damage = ""  # why the file is ignored

    def facts(self, upstream: str, model: str) -> ModelFacts:
        """Return the facts of a profile; they are empty without one."""
        return self.find(upstream, model).facts

    def find(self, upstream: str, model: str) -> Profile:
        """Return a model's profile, an empty one if there is none."""
        row = self._row(upstream, model)
        return Profile(read_facts(model, row.get("facts")), read_object(row, "report"))

    def models_of(self, upstream: str) -> list[str]:
        """Return the models of an upstream that have a profile."""
        self._refresh()
        return [*read_object(self._profiles, upstream)]

    def write(self, upstream: str, model: str, profile: Profile) -> None:
        """Store a profile in place of the earlier one of a model.

        Raises:
            OSError: the file cannot be written.
        """
        self._refresh()
        row = {"facts": write_facts(profile.facts), "report": profile.report}
        write_private(self._file, self._put(upstream, model, row))
        self._read_state = _file_state(self._file)

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
        """Add remedies that helped; the file is written in the background."""
        row = self._row(upstream, model)
        added = [
            (remedy.change, remedy.what, remedy.version, int(self._clock()))
            for remedy in new
        ]
        added_keys = {entry[:3] for entry in added}
        older = [r for r in _read_remedies(row, dialect) if r[:3] not in added_keys]
        rows = newest_of_each([*older, *added], lambda entry: entry[0])
        remedies = {**read_object(row, "remedies"), dialect: rows}
        content = self._put(upstream, model, {**row, "remedies": remedies})
        if not self.damage and not self._worker.is_closed:
            self._writing = self._worker.run(partial(self._write, content))

    def close(self) -> None:
        """Wait until everything is written; later remedies are not. Blocks."""
        self._worker.close()

    def _row(self, upstream: str, model: str) -> Json:
        self._refresh()
        return read_object(read_object(self._profiles, upstream), model)

    def _put(self, upstream: str, model: str, row: Json) -> str:
        """Put a row at the end of the profiles; return the new content of the file."""
        models = read_object(self._profiles, upstream)
        models = {m: p for m, p in models.items() if m != model}
        others = {name: p for name, p in self._profiles.items() if name != upstream}
        profiles = {**others, upstream: {**models, model: row}}
        self._profiles = _newest_profiles(profiles)
        content = {"version": _VERSION, "profiles": self._profiles}
        return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()

    def _write(self, content: str) -> None:
        try:
            write_private(self._file, content)
        except OSError as error:
            _log.warning("what refusals teach cannot be kept: %s", error.strerror)
        self._read_state = _file_state(self._file)

    def _refresh(self) -> None:
        """Read the file again if another process has changed it."""
        if self._writing is not None and not self._writing.done():
            return  # the profiles in memory are newer than the file
        state = _file_state(self._file)
        if state == self._read_state:
            return
        self._read_state = state
        self._profiles, self.damage = {}, ""
        if state == _NO_FILE:
            return
        try:
            if state[1] > _MAX_FILE_BYTES:
                raise ValueError("it is too large")
            self._profiles = _parse_profiles(self._file.read_bytes())
        except (OSError, ValueError) as error:
            self.damage = f"ignoring the profiles in {self._file}: {error}"
            _log.warning("%s", self.damage)


def newest_of_each(items: Sequence[_Item], kind: Callable[[_Item], str]) -> list[_Item]:
    """Return the last `_MAX_REMEDIES` items of each kind, in their order."""
    counts = Counter[str]()
    newest: list[_Item] = []
    for item in reversed(items):
        counts[kind(item)] += 1
        if counts[kind(item)] <= _MAX_REMEDIES:
            newest.append(item)
    return newest[::-1]


def _read_remedies(row: Json, dialect: str) -> list[tuple[str, str, str, int]]:
    rows = read_object(row, "remedies").get(dialect)
    return [
        (change, what, version, learned)
        for entry in (rows if isinstance(rows, list) else ())
        if isinstance(entry, list | tuple)
        and len(entry) == len(_REMEDY_TYPES)
        and all(map(isinstance, entry, _REMEDY_TYPES))
        for change, what, version, learned in [entry]
    ]


def _file_state(file: Path) -> tuple[int, int]:
    """Return a file's time of change and its size, `_NO_FILE` without a file."""
    try:
        stat = file.stat()
    except OSError:
        return _NO_FILE
    return stat.st_mtime_ns, stat.st_size


def _parse_profiles(content: bytes) -> Mapping[str, Any]:
    value = orjson.loads(content)
    if not isinstance(value, dict) or value.get("version") != _VERSION:
        raise ValueError(f"it is not of version {_VERSION}")
    profiles = value.get("profiles")
    if not isinstance(profiles, dict):
        raise ValueError("it has no profiles")
    return profiles


def _newest_profiles(profiles: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the last profiles only, so that the file does not grow for ever."""
    by_name = {name: read_object(profiles, name) for name in profiles}
    pairs = [(name, model) for name, models in by_name.items() for model in models]
    newest = set(pairs[-_MAX_PROFILES:])
    return {
        name: {model: row for model, row in models.items() if (name, model) in newest}
        for name, models in by_name.items()
    }


def fact_sources(spec: UpstreamSpec, profiles: Profiles | None) -> tuple[Lookup, ...]:
    """Return the sources for the models of one upstream that need no request."""

    def user_facts(model: str) -> ModelFacts:
        own, common = (spec.facts.get(name) for name in (model, ""))
        layers = [(FactSource.USER, facts) for facts in (own, common) if facts]
        return combine_facts(model, layers).facts

    sources: tuple[Lookup, ...] = (
        (FactSource.USER, user_facts),
        (FactSource.FAMILY, family_facts),
        (FactSource.TABLE, lambda model: known_table().facts(spec.vendor, model)),
    )
    if spec.is_local:
        # A server here may be a gateway, so any source that names a price prevails.
        sources = (*sources, (FactSource.LOCAL, partial(_local_price, spec.vendor)))
    if profiles is None:
        return sources
    key = spec.key
    return (*sources, (FactSource.PROBE, lambda model: profiles.facts(key, model)))


def _local_price(vendor: str, model: str) -> ModelFacts:
    """Return that a model on this machine is free, unless its server is a gateway.

    A gateway is a server with the preset of a vendor elsewhere, or one without a preset
    that offers a model which a vendor sells. Gateways may write a version with points.
    """
    if preset := PRESETS.get(vendor):
        runs_here = preset.local
    else:
        names = {model, model.replace(".", "-")}
        known = [known_table().facts(vendor, name).known_fields() for name in names]
        runs_here = not any(known)
    return ModelFacts(model, price=FREE if runs_here else None)


class KnownModels:
    """The known facts about the models of one upstream.

    A server is asked about a model at most once a minute: a local one may load the
    model again with another context window. The other sources are read that often as
    well, because the probe writes its profiles in another process.
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
        # With the time when they expire; a client may name any number of models.
        self._probed = BoundedMap[str, tuple[ModelFacts, float]](_MAX_MODELS)
        self._combined = BoundedMap[str, tuple[SourcedFacts, float]](_MAX_MODELS)
        self._learned = BoundedMap[str, ModelFacts](_MAX_MODELS)  # from refusals
        self._assumed: dict[str, Any] = {}

    def set_listed(self, models: Iterable[ModelFacts]) -> None:
        """Store the facts of the model list."""
        self._listed = {model.id: model for model in models}
        self._combined.clear()

    def listed_facts(self) -> Mapping[str, ModelFacts]:
        """Return the facts of the model list, by the models' names."""
        return self._listed

    def learn(self, facts: ModelFacts) -> None:
        """Store facts from a refusal, if there are any; the newest prevail."""
        if not facts.known_fields():
            return
        older = self._learned.get(facts.id) or ModelFacts(facts.id)
        layers = [(FactSource.REFUSAL, facts), (FactSource.REFUSAL, older)]
        merged = combine_facts(facts.id, layers).facts
        if merged != older:
            self._learned[facts.id] = merged
            self._combined.pop(facts.id)

    def learn_from(self, error: UpstreamError, model: str) -> None:
        """Learn the window that an error names, unless a local server may change it."""
        window = error.window if isinstance(error, ContextLengthExceeded) else None
        if window and not self._api.dialect.probes(model):
            self.learn(ModelFacts(model, window=window))

    def assume(self, **values: Any) -> None:
        """Override facts of all models with these values from now on: for the probe."""
        self._assumed = values

    def facts(self, model: str) -> ModelFacts:
        """Return the known facts about a model, for a request to it.

        A name that only suggests a model without tools or pictures is no reason to
        leave them out: such a model refuses them once.
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
        """Return the known facts about a model, with the source of each."""
        now = self._clock()
        combined, until = self._combined.get(model) or (None, 0.0)
        if combined is None or now >= until:
            combined = self._combine(model)
            self._combined[model] = (combined, now + _FRESH_SECONDS)
        return combined

    def _combine(self, model: str) -> SourcedFacts:
        layers = [(source, look_up(model)) for source, look_up in self._sources]
        if learned := self._learned.get(model):
            layers.append((FactSource.REFUSAL, learned))
        if listed := self._listed.get(model):
            layers.append((FactSource.SERVER, listed))
        if probed := self._probed.get(model):
            layers.append((FactSource.LOADED, probed[0]))
        return combine_facts(model, layers)

    async def window(self, model: str) -> int:
        """Return the context window of a model in tokens, 0 if it is unknown.

        The server is asked, unless the user's settings have the window.
        """
        if self.sourced_facts(model).sources.get("window") is not FactSource.USER:
            await self.ask(model)
        return self.facts(model).window

    async def ask(self, model: str) -> None:
        """Ask the server about a model, if its dialect has requests for that."""
        now = asyncio.get_running_loop().time()
        _, until = self._probed.get(model) or (None, now)
        probes = self._api.dialect.probes(model)
        if now < until or not probes:
            return
        answers = await asyncio.gather(*(self._probe(model, p) for p in probes))
        layers = [(FactSource.LOADED, facts) for facts, _ in answers]
        facts = combine_facts(model, layers).facts
        # Without a window the model is not loaded yet: the next request asks again.
        is_fresh = facts.window or any(failed for _, failed in answers)
        self._combined.pop(model)
        self._probed[model] = (facts, now + (_FRESH_SECONDS if is_fresh else 0.0))

    async def _probe(self, model: str, probe: Probe) -> tuple[ModelFacts, bool]:
        """Return the facts of one answer, and whether the request failed."""
        content = None if probe.body is None else write_json(probe.body)
        request = self._sender.open(self._api, probe.path, content)
        try:
            async with asyncio.timeout(_PROBE_SECONDS), request as response:
                body = parse_json(await read_limited(response, _MAX_PROBE_BYTES))
        except (ByokError, TimeoutError, ValueError, RecursionError) as error:
            _log.debug("nothing is learned of %.80s: %s", model, error)
            return ModelFacts(model), True
        return self._api.dialect.read_probe(body, model), False
