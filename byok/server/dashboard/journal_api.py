"""The journal on the page: requests, conversations, errors and repairs.

The journal is read in threads, over read-only connections. If there is none yet,
answers are empty; if it cannot be read, the page shows the reason.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from msgspec import to_builtins

from byok.core.chat import Json
from byok.core.error_table import ErrorWeight, error_rows
from byok.core.errors import CannotStart, NotReady
from byok.core.language import language_in_force, translate
from byok.core.platform.installation import find_command, make_pasteable
from byok.core.routing import ListedModel
from byok.core.urls import is_loopback
from byok.dialects.presets import preset_of
from byok.features.journal.cache import (
    ExpiredCache,
    find_expired,
    sum_cache,
    weigh_cache,
)
from byok.features.journal.conversations import (
    SORTS,
    ConversationPage,
    ConversationQuery,
    ConversationReader,
    ConversationSums,
    DearTurn,
    find_dearest,
    latest_conversations,
    sum_requests,
)
from byok.features.journal.problems import (
    BARS,
    Ending,
    ErrorGroup,
    by_weight,
    find_mended,
    find_needs,
    weigh_errors,
)
from byok.features.journal.reader import count_damaged
from byok.features.journal.recent import RecentRequests
from byok.features.journal.requests import (
    LARGEST,
    LogFilter,
    StoredEntry,
    entries_before,
    largest_entries,
)
from byok.features.journal.usage import (
    SPLITS,
    Bucket,
    SeriesReader,
    Step,
    UsageRow,
    add_rows,
    day_span,
    days_before,
    hour_begin,
    month_begin,
    top_usage,
)
from byok.features.running import Features
from byok.features.settings import JournalSettings
from byok.server.dashboard.endpoint import (
    PageHandler,
    bad_field,
    by_body,
    read_amount,
    read_choice,
    read_count,
    read_flag,
    read_number,
    read_text,
    read_texts,
)
from byok.settings import UpstreamSettings
from byok.wiring.apis import base_url_of
from byok.wiring.key_sources import key_lookups
from byok.wiring.services import Services

P = ParamSpec("P")
T = TypeVar("T")
_LARGEST = 20
_MAX_CONVERSATIONS = 100
_TURNS = 200  # of a conversation at once
_MAX_ID_CHARS = 20_000  # of a conversation; the journal stores only the beginning
_MAX_WORDS_CHARS = 500
_ERROR_DAYS = 7
_MAX_CODE = 80  # characters of the code of an error
_MAX_DAYS = 3650
_MAX_USAGE_DAYS = 366
_MAX_ROWS = 100
_Expired: TypeAlias = dict[str, dict[int, ExpiredCache]]  # by conversation, number
_EXTRA_FACTS = ("key_outside", "at_vendor", "by_list", "failure")  # of an upstream
_NO_DAY = {"requests": 0, "cost": 0.0, "unpriced": 0, "speed": None}


async def read_in_thread(
    journal: Path, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return the result of `read`, which reads the journal and may block.

    Raises:
        NotReady: the journal cannot be read at present; the message says why.
    """
    try:
        return await asyncio.to_thread(read, *args, **kwargs)
    except CannotStart as error:  # it would become an answer with status 500
        raise NotReady(error.message, code=error.code, hint=error.hint) from error
    except OSError as error:
        raise NotReady(
            f"The journal {journal} cannot be read: {error.strerror}."
        ) from error


class _TimeRange(NamedTuple):
    """A range of time until now: its begin for a given now, and its step."""

    begin_of: Callable[[float], float]
    step: Step


def _begin_of(days: int, now: float) -> float:
    """Return the begin of the last so many days, including today: a midnight.

    A single day means the last 24 hours of the clock, including that of `now`.
    """
    return days_before(now, days - 1) if days > 1 else hour_begin(now - 23 * 3600)


RANGES = {
    "day": _TimeRange(partial(_begin_of, 1), Step.HOUR),
    "week": _TimeRange(partial(_begin_of, 7), Step.SIX_HOURS),
    "month": _TimeRange(partial(_begin_of, 30), Step.DAY),
    "this_month": _TimeRange(month_begin, Step.DAY),  # as vendors bill
    "quarter": _TimeRange(partial(_begin_of, 90), Step.WEEK),
}


class JournalApi:
    """Answers about the journal; `clock` gives seconds since 1970."""

    def __init__(
        self, services: Services, features: Features, clock: Callable[[], float]
    ) -> None:
        path = self._path = services.paths.journal
        self._services = services
        self._features = features
        self.clock = clock
        self._keep_days = services.settings.section(JournalSettings).keep_days
        self._series_reader = SeriesReader(path)
        self._conversation_reader = ConversationReader(path)
        self._recent = RecentRequests(path)
        self._count_task: asyncio.Task[None] | None = None
        self._sum_lock = asyncio.Lock()  # for sums over many requests
        self.handlers: Mapping[str, PageHandler] = {
            "today": by_body(self._today),
            "largest": by_body(self._largest),
            "conversations": by_body(self._conversations),
            "conversation": by_body(self._conversation),
            "problems": by_body(self._problems),
            "series": by_body(self._series),
            "usage": by_body(self._usage),
            "errors": by_body(self._errors),
        }

    async def describe_upstreams(self) -> dict[str, Json]:
        """Return whether each upstream answers, since when, and its sums of today.

        An upstream that fails also has the row of its error. If its list of models
        failed, `failure` describes this in words; else `named_in` is the setting that
        names the model. `key_outside` tells that its key is in no store of byok,
        `at_vendor` that its address is its vendor's own.
        """
        facts = await self._read_upstream_facts()
        names = self._services.selection.upstreams
        return {name: self._state_of(name, facts.get(name, {})) for name in names}

    def _state_of(self, name: str, facts: dict[str, Any]) -> Json:
        """Return the state of an upstream by its requests, or by its list of models.

        If it has refused its list of models since its last answer, this is a failure
        `by_list`. A list that it sent does not prove its key, so this counts only if
        no request is known.
        """
        today = facts.pop("today", _NO_DAY)
        listed = self._services.catalog.state_of(name)
        if listed.age is not None:
            ended = self.clock() - listed.age
            if not facts or (listed.failure and ended > facts["last"]):
                goes_on = facts.get("answers") is False
                began = self.clock() - listed.failing if listed.failure else ended
                since = facts["since"] if goes_on else began
                failure = self._services.redactor(listed.failure)
                facts = {
                    "answers": not listed.failure,
                    "since": since,
                    "last": ended,
                    "code": listed.code,
                    "failure": make_pasteable(
                        translate(failure.removeprefix(f"{name}: ")), find_command()
                    ),
                    "by_list": True,
                }
        states = {None: "unknown", True: "answers", False: "fails"}
        section = self._services.selection.upstreams[name]
        outside_source = self._services.ladder.outside_source
        is_resting = self._services.upstreams[name].rest_seconds > 0
        code = facts.get("code", "")
        return {
            **_explain({code}).get(code, {}),
            "state": "resting" if is_resting else states[facts.get("answers")],
            "since": facts.get("since"),
            "last": facts.get("last"),
            "code": code,
            "failure": facts.get("failure", ""),
            "named_in": self._setting_of(name, facts.get("model", "")),
            "by_list": facts.get("by_list", False),
            "key_outside": any(map(outside_source, key_lookups(name, section))),
            "at_vendor": _is_at_vendor(section),
            "today": today,
        }

    async def _errors(self, body: dict[str, Any]) -> Json:
        """Return the rows of byok's error table for some codes, by code."""
        codes = read_texts(body, "codes", max_count=_MAX_ROWS, max_chars=_MAX_CODE)
        return _explain(set(codes))

    async def _read_upstream_facts(self) -> dict[str, dict[str, Any]]:
        """Return the facts about each upstream that follow from its requests.

        The result is empty if the journal cannot be read; other panels show why.
        """
        now = self.clock()
        try:
            states = await self._read(self._recent.upstreams, now)
            series = (await self._read(self._series_reader.read_day, now)).series
        except NotReady:
            return {}
        facts: dict[str, dict[str, Any]] = {
            name: dict(state._asdict()) for name, state in states.items()
        }
        for number, name in enumerate(series.names):
            total = add_rows([hour.parts[number] for hour in series.buckets])
            today = {
                "requests": total.requests,
                "cost": total.cost,
                "unpriced": total.unpriced,
                "speed": series.speeds[number],
            }
            facts[name] = {**facts.get(name, {}), "today": today}
        return facts

    async def list_clients(self) -> dict[str, float]:
        """Return the time of the last request of each family of clients, of a week."""
        return dict(await self._read(self._recent.clients, self.clock()))

    async def _today(self, body: dict[str, Any]) -> Json:
        """Return the sums since midnight, in total and by hour, and the caps on a day.

        A cost does not include `unpriced` requests. `yesterday` counts the requests of
        the day before until the same time; `speed` is the median in tokens per second.
        `needs_you` are problems that go on until the user does something, of the last
        week or of an upstream that fails now: each code once, with a text.
        """
        now = self.clock()
        day = await self._read(self._series_reader.read_day, now)
        hours = day.series.buckets
        total = add_rows([hour.total for hour in hours])
        caps = await self._features.status_of("caps")
        upstreams = self._services.selection.upstreams
        since = _begin_of(_ERROR_DAYS, now)
        needs = await self._read(find_needs, self._path, since, upstreams)
        unreported = _unreported(await self.describe_upstreams(), [])
        needs |= {
            group.code for group in unreported if group.weight is ErrorWeight.NEEDS_YOU
        }
        return {
            "requests": total.requests,
            "yesterday": day.yesterday,
            "cost": total.cost,
            "unpriced": total.unpriced,
            "errors": sum(day.failed),
            "needs_you": [
                {"code": code, "what": row["what"]}
                for code, row in _explain(needs).items()
            ],
            "speed": day.series.speed,
            "hours": {
                "requests": [hour.total.requests for hour in hours],
                "cost": [hour.total.cost for hour in hours],
                "errors": [*day.failed],
                "speed": [hour.speed for hour in hours],
            },
            "caps": [row for row in caps if str(row.get("name")).endswith("_per_day")],
        }

    async def _largest(self, body: dict[str, Any]) -> Json:
        """Return the requests of a day that took longest, cost most, or failed.

        They have the form of turns of a conversation. A `day` is written 2026-01-31 and
        defaults to today; `errors` explains the codes.
        """
        sort = read_choice(body, "sort", LARGEST, "seconds")
        begin, end = _read_day(body, self.clock())
        largest = self._path, sort, begin, end, _LARGEST
        entries = await self._read(largest_entries, *largest)
        errors = _explain(_codes_of(entries))
        expired = await self._find_expired({row.entry.conversation for row in entries})
        return {"requests": _turns(entries, expired), "errors": errors}

    async def _conversations(self, body: dict[str, Any]) -> Json:
        """Return the conversations that match, and the sums of all of them.

        If very many requests are new, the sums are `None` at first, while they are
        added up in the background.
        """
        count = read_count(body, "count", 50, maximum=_MAX_CONVERSATIONS)
        offset = read_number(body, "offset") or 0
        sort = read_choice(body, "sort", SORTS, "last")
        query = ConversationQuery(
            sort,
            read_flag(body, "descending", sort != "folder"),
            read_text(body, "find", max_chars=_MAX_WORDS_CHARS),
            read_text(body, "client", max_chars=_MAX_WORDS_CHARS),
            read_amount(body, "least_cost"),
            read_flag(body, "errors"),
        )
        page = await self._find_conversations(query, offset, count)
        rows = page.conversations[:count]
        expired = await self._find_expired(sums.conversation for sums in rows)
        return {
            "conversations": [
                {
                    **_conversation(sums),
                    "expired": _sum_expired(expired.get(sums.conversation, {})),
                }
                for sums in rows
            ],
            "more": len(page.conversations) > count,
            "total": page.found and page.found._asdict(),
            "known": page.known,
            "clients": [row._asdict() for row in page.clients],
            "keep_days": self._keep_days,
        }

    async def _find_expired(self, conversations: Iterable[str]) -> _Expired:
        """Return the turns of conversations before which a cache had expired."""
        price_of = self._services.price_of
        return await self._read(find_expired, self._path, [*conversations], price_of)

    async def _find_conversations(
        self, query: ConversationQuery, offset: int, count: int
    ) -> ConversationPage:
        """Read one conversation more than requested, if there is one."""
        reader = self._conversation_reader
        is_first = not offset and query == ConversationQuery()
        if is_first and await self._read(reader.is_behind):
            if self._count_task is None or self._count_task.done():
                self._count_task = asyncio.ensure_future(self._count_conversations())
            latest = await self._read(latest_conversations, self._path, count + 1)
            return ConversationPage(latest)
        async with self._sum_lock:
            return await self._read(reader.read, query, offset, count + 1)

    async def _count_conversations(self) -> None:
        async with self._sum_lock:
            with contextlib.suppress(NotReady):  # the next request reports it
                await self._read(
                    self._conversation_reader.read, ConversationQuery(), 0, 0
                )

    async def _conversation(self, body: dict[str, Any]) -> Json:
        """Return the turns of a conversation before a number, oldest first, and sums.

        `previous` is the end of the turn before them, in seconds since 1970. A `note`
        marks a turn that was expensive because the upstream's cache had expired.
        `window` is the context window of the last model in tokens, 0 if unknown.
        `cache` holds what the upstreams' caches saved, and the cost of expired ones.
        """
        name = read_text(body, "conversation", max_chars=_MAX_ID_CHARS)
        if not name:  # a client may use a name of spaces
            raise bad_field("conversation", "a text that is not empty")
        before = read_number(body, "before")
        path, of_it = self._path, LogFilter(conversation=name, exact=True)
        entries = await self._read(entries_before, path, before, _TURNS + 1, of_it)
        sums = await self._read(sum_requests, path, name)
        dearest = await self._read(find_dearest, path, name)
        cache = await self._read(weigh_cache, path, name, self._services.price_of)
        previous = entries[_TURNS].entry if len(entries) > _TURNS else None
        turns = entries[::-1]
        expired = await self._find_expired([name])
        return {
            "sums": sums and _conversation(sums),
            "requests": _turns(turns[-_TURNS:], expired),
            "more": previous is not None,
            "previous": previous and previous.started + previous.seconds,
            "errors": _explain(_codes_of(turns[-_TURNS:])),
            "dearest": sums and _dearest(dearest, sums),
            "cache": cache._asdict(),
            "window": self._window_of(entries),
        }

    def _window_of(self, entries: Iterable[StoredEntry]) -> int:
        for turn in entries:
            if turn.entry.model:
                model = turn.entry.upstream, turn.entry.model
                facts = self._services.catalog.facts_of(*model).facts
                return facts.loaded_window or facts.window
        return 0

    async def _problems(self, body: dict[str, Any]) -> Json:
        """Return failures in groups, those that need the user first; and repairs.

        A group's `named_in` is the setting that names its latest model, "" if clients
        name it. `answers` tells whether its upstream does; the other facts about the
        upstream are those of `describe_upstreams`. An upstream that fails without a
        failed request in these days has a group without requests. `damaged` counts
        entries of the journal that could not be read and were left out.
        """
        now = self.clock()  # the page may be on a machine with another time
        days = read_count(body, "days", _ERROR_DAYS, maximum=_MAX_DAYS)
        since = _begin_of(days, now)
        upstreams = self._services.selection.upstreams
        hour_end = hour_begin(now + 3600)
        groups = await self._read(weigh_errors, self._path, since, hour_end, upstreams)
        mended = await self._read(find_mended, self._path, since)
        states = await self.describe_upstreams()
        groups = sorted([*groups, *_unreported(states, groups)], key=by_weight)
        explanations = _explain({group.code for group in groups})
        answering = {n for n, state in states.items() if state["state"] == "answers"}
        extra_facts = {
            name: {fact: state[fact] for fact in _EXTRA_FACTS}
            for name, state in states.items()
        }
        return {
            "groups": [
                {
                    **explanations.get(group.code, {}),
                    **to_builtins(group),
                    "answers": group.upstream in answering,
                    **extra_facts.get(group.upstream, {}),
                    "named_in": self._setting_of(group.upstream, *group.models[:1]),
                    "examples": _entries(group.examples),
                }
                for group in groups
            ],
            "requests": mended.requests,
            "models": [row._asdict() for row in mended.models],
            "mended": _entries(mended.latest),
            "damaged": count_damaged(self._path),
            "keep_days": self._keep_days,
        }

    def _setting_of(self, upstream: str, model: str = "") -> str:
        """Return the name of the setting that names a model of an upstream, or ""."""
        routing, router = self._services.settings.routing, self._services.router
        section = self._services.selection.upstreams.get(upstream)
        if not model:
            return ""
        id_ = ListedModel(upstream, model).id
        names: dict[str, Iterable[str]] = {
            "routing.aliases": routing.aliases.values(),
            "routing.default": (routing.default,),
            **{f"routing.models.{job}": (name,) for job, name in routing.models},
            **{f"routing.fallback.{job}": listed for job, listed in routing.fallback},
        }
        for setting, models in names.items():
            if any(router.resolve(n) in (id_, model) for n in models if n):
                return setting
        if section and section.model == model:
            return f"upstreams.{upstream}.model"
        return "routing.default" if router.default().id == id_ else ""

    async def _series(self, body: dict[str, Any]) -> Json:
        """Return the sums of each step of a range, split `by` a property if requested.

        A cost does not include `unpriced` requests. `cache` is as for a conversation.
        `days` are the sums of each day with a request, unless the range is one day.
        """
        range_name = read_choice(body, "range", RANGES)
        by = read_choice(body, "by", SPLITS, "")
        async with self._sum_lock:
            return await self._read(self._read_series, range_name, by)

    async def _usage(self, body: dict[str, Any]) -> Json:
        """Return sums by day or model."""
        by = read_choice(body, "by", ("day", "model"))
        days = read_count(body, "days", 30, maximum=_MAX_USAGE_DAYS)
        async with self._sum_lock:
            rows, more = await self._read(self._read_usage, by, days)
        return {"rows": [row._asdict() for row in rows], "more": more}

    def _read_series(self, range_name: str, by: str) -> Json:
        begin_of, step = RANGES[range_name]
        now = self.clock()
        since = begin_of(now)
        series = self._series_reader.read(since, now, step, by)
        days = [] if step is Step.HOUR else self._read_days(since, now)
        total = add_rows([bucket.total for bucket in series.buckets])
        return {
            "range": range_name,
            "step": step.value,
            "keeps": self._keep_days > 0,
            "names": series.names,
            "others": series.others,
            "medians": series.medians,
            "total": _sums(total),
            "cache": sum_cache(series.caches, self._services.price_of)._asdict(),
            "buckets": [_write_bucket(bucket) for bucket in series.buckets],
            "days": [row._asdict() for row in days],
        }

    def _read_usage(self, by: str, days: int) -> tuple[Sequence[UsageRow], int]:
        """Return the sums, and the number of further rows."""
        now = self.clock()
        since = days_before(now, days - 1)
        if by == "day":
            return self._read_days(since, now), 0
        top = top_usage(self._path, by, since, _MAX_ROWS)
        return top.rows, top.more

    def _read_days(self, since: float, now: float) -> list[UsageRow]:
        """Return the sums of each day with a request; the reader caches old ones."""
        return [
            bucket.total._replace(key=_local_time(bucket.begin)[:10])
            for bucket in self._series_reader.read(since, now, Step.DAY).buckets
            if bucket.total.requests
        ]

    async def _read(self, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await read_in_thread(self._path, read, *args, **kwargs)


def _read_day(body: Mapping[str, Any], now: float) -> tuple[float, float]:
    """Return the begin and end of a day, of that of `now` if the field is missing."""
    day = read_text(body, "day", max_chars=len("2026-01-31"))
    try:
        return day_span(date.fromisoformat(day) if day else datetime.fromtimestamp(now))
    except (ValueError, OverflowError, OSError) as error:  # such as the year 9999
        raise bad_field("day", "a day as 2026-01-31") from error


def _entries(entries: Iterable[StoredEntry]) -> list[Json]:
    return [{"number": stored.number, **stored.entry._asdict()} for stored in entries]


def _turns(entries: Iterable[StoredEntry], expired: _Expired) -> list[Json]:
    """Return requests with the effect of the upstream's cache on each."""
    rows: list[Json] = []
    for number, entry in entries:
        lost = expired.get(entry.conversation, {}).get(number)
        note = lost._asdict() if lost else None
        cached = _share(entry.cache_read_tokens, entry.input_tokens)
        turn = {"number": number, **entry._asdict(), "cached": cached, "note": note}
        rows.append(turn)
    return rows


def _sum_expired(expired: Mapping[int, ExpiredCache]) -> Json | None:
    """Return how often a cache expired, and the cost of that if prices are known."""
    if not expired:
        return None
    costs = [expiry.extra_cost for expiry in expired.values()]
    known = [cost for cost in costs if cost is not None]
    total = sum(known) if len(known) == len(costs) else None
    return {"times": len(costs), "extra_cost": total}


def _dearest(dearest: DearTurn | None, sums: ConversationSums) -> Json | None:
    """Return the turn that cost most, and its share of the total cost."""
    if dearest is None:
        return None
    return {**dearest._asdict(), "share": _share(dearest.cost, sums.cost)}


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else min(1.0, part / whole)


def _conversation(sums: ConversationSums) -> Json:
    """Return a conversation, with the share of its input that came from a cache."""
    cached = _share(sums.cache_read_tokens, sums.cache_input_tokens)
    return {**sums._asdict(), "cached": cached}


def _is_at_vendor(section: UpstreamSettings) -> bool:
    """Tell whether an upstream has its vendor's own address, on another machine."""
    preset, base_url = preset_of(section.type), base_url_of(section)
    return (
        bool(preset.base_url) and preset.is_at(base_url) and not is_loopback(base_url)
    )


def _unreported(
    states: Mapping[str, Json], groups: Iterable[ErrorGroup]
) -> Iterator[ErrorGroup]:
    """Yield a group without requests for each upstream whose failure is in no group."""
    reported = {(group.upstream, group.code) for group in groups if group.goes_on}
    for name, state in states.items():
        code = state["code"]
        if state["state"] == "fails" and (name, code) not in reported:
            weight = state.get("weight", ErrorWeight.LOOK)
            times = state["since"], state["last"]
            outcome = 0, 0, *times, True, [0] * BARS
            yield ErrorGroup(weight, Ending.FAILED, code, name, [], *outcome)


def _codes_of(entries: Iterable[StoredEntry]) -> set[str]:
    """Return the codes of failures, including those after which byok retried."""
    return {
        code
        for row in entries
        for code in (row.entry.error, *row.entry.retried.split())
    }


def _explain(codes: set[str]) -> dict[str, Json]:
    rows = error_rows(language_in_force()) if codes - {""} else {}
    return {code: row._asdict() for code in sorted(codes) if (row := rows.get(code))}


def _local_time(moment: float) -> str:
    """Return a time in the local time zone, such as 2026-01-31T18:00."""
    return datetime.fromtimestamp(moment).isoformat(timespec="minutes")


def _write_bucket(bucket: Bucket) -> Json:
    return {
        "begin": bucket.begin,
        "local": _local_time(bucket.begin),
        **_sums(bucket.total),
        "parts": [_sums(part) for part in bucket.parts],
        "first_byte": bucket.first_byte._asdict(),
        "seconds": bucket.seconds._asdict(),
    }


def _sums(row: UsageRow) -> dict[str, float]:
    return {name: value for name, value in row._asdict().items() if name != "key"}
