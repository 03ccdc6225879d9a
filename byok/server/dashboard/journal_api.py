"""What the page shows of the journal: requests, conversations, errors and repairs.

The journal is read in threads, by connections that change nothing. Where there is none
yet, answers are empty; where it cannot be read, the page shows why.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from msgspec import to_builtins

from byok.core.chat import Json
from byok.core.error_table import ErrorWeight, error_rows
from byok.core.errors import CannotStart, NotReady
from byok.core.language import language_in_force, translate
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
from byok.features.journal.reader import left_out
from byok.features.journal.reading import (
    LARGEST,
    LogFilter,
    StoredEntry,
    entries_before,
    find_mended,
    largest_entries,
)
from byok.features.journal.recent import RecentRequests
from byok.features.journal.settings import JournalSettings
from byok.features.journal.usage import (
    SPLITS,
    Bucket,
    SeriesReader,
    Step,
    UsageRow,
    add_rows,
    day_span,
    days_before,
    hours_before,
    month_begin,
    top_usage,
)
from byok.features.journal.weights import (
    BARS,
    Ending,
    ErrorGroup,
    by_weight,
    find_needs,
    weigh_errors,
)
from byok.features.running import Features
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
from byok.wiring.key_sources import keys_wanted
from byok.wiring.services import Services

# Read the journal for the page: in a thread, with an error that the page can show.


T = TypeVar("T")


async def read_journal(path: Path, read: Callable[[], T]) -> T:
    """Return what `read` returns, which may block.

    Raises:
        NotReady: the journal cannot be read just now; the message says why.
    """
    try:
        return await asyncio.to_thread(read)
    except CannotStart as error:  # which would be an answer with status 500
        raise NotReady(error.message, code=error.code, hint=error.hint) from error
    except OSError as error:
        raise NotReady(
            f"The journal {path} cannot be read: {error.strerror}."
        ) from error


_LARGEST = 20
_MOST_CONVERSATIONS = 100
_TURNS = 200  # of a conversation at once
_LONGEST_ID = 20_000  # of a conversation; the journal keeps its begin
_LONGEST_WORDS = 500
_ERROR_DAYS = 7
_LONGEST_CODE = 80  # of an error
_MOST_DAYS = 3650
_MOST_USAGE_DAYS = 366
_MOST_ROWS = 100
_Expired: TypeAlias = dict[str, dict[int, ExpiredCache]]  # by conversation, number
_NO_DAY = {"requests": 0, "cost": 0.0, "unpriced": 0, "speed": None}


class _Range(NamedTuple):
    """What began then, in seconds since 1970, in such steps; both until now."""

    begin_of: Callable[[float], float]
    step: Step


def _begin_of(days: int, now: float) -> float:
    """Return when the last so many days begin, today among them: at midnight.

    A single one is the last 24 hours of the clock, that of `now` among them.
    """
    return days_before(now, days - 1) if days > 1 else hours_before(now, 23)


RANGES = {
    "day": _Range(partial(_begin_of, 1), Step.HOUR),
    "week": _Range(partial(_begin_of, 7), Step.SIX_HOURS),
    "month": _Range(partial(_begin_of, 30), Step.DAY),
    "this_month": _Range(month_begin, Step.DAY),  # as vendors bill
    "quarter": _Range(partial(_begin_of, 90), Step.WEEK),
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
        self._counting: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()  # of what adds up much
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
        """Return whether each upstream answers, since when, and what it did today.

        One that fails has the row of its error, too, and, if it is that of its list of
        models, the `failure` in words, else the setting that the model is `named_in`;
        `key_outside` tells that its key is in no store of byok, `at_vendor` that its
        address is its vendor's own.
        """
        known = await self._follow_upstreams()
        names = self._services.selection.upstreams
        return {name: self._state_of(name, known.get(name, {})) for name in names}

    def _state_of(self, name: str, known: dict[str, Any]) -> Json:
        """Return how an upstream is by its requests, or by its list of models.

        A list of models that it refused since its last answer is a failure `by_list`;
        that it listed them says nothing of its key, so it counts only where nothing
        else does.
        """
        today = known.pop("today", _NO_DAY)
        listed = self._services.catalog.state_of(name)
        if listed.age is not None:
            ended = self.clock() - listed.age
            if not known or (listed.failure and ended > known["last"]):
                goes_on = known.get("answers") is False
                began = self.clock() - listed.failing if listed.failure else ended
                since = known["since"] if goes_on else began
                failure = self._services.redactor(listed.failure)
                known = {
                    "answers": not listed.failure,
                    "since": since,
                    "last": ended,
                    "code": listed.code,
                    "failure": translate(failure.removeprefix(f"{name}: ")),
                    "by_list": True,
                }
        states = {None: "unknown", True: "answers", False: "fails"}
        rests = self._services.upstreams[name].rest_seconds > 0
        code = known.get("code", "")
        return {
            **_explain({code}).get(code, {}),
            "state": "resting" if rests else states[known.get("answers")],
            "since": known.get("since"),
            "last": known.get("last"),
            "code": code,
            "failure": known.get("failure", ""),
            "named_in": self._setting_of(name, known.get("model", "")),
            "by_list": known.get("by_list", False),
            "key_outside": self._has_key_outside(name),
            "at_vendor": _is_at_vendor(self._services.selection.upstreams[name]),
            "today": today,
        }

    async def _errors(self, body: dict[str, Any]) -> Json:
        """Return the rows of byok's table of errors for some codes, by these."""
        codes = read_texts(body, "codes", most=_MOST_ROWS, longest=_LONGEST_CODE)
        return _explain(set(codes))

    def _has_key_outside(self, name: str) -> bool:
        """Tell whether the key of an upstream is in no store of byok."""
        section = self._services.selection.upstreams[name]
        outside_source = self._services.ladder.outside_source
        return any(map(outside_source, keys_wanted(name, section)))

    async def _follow_upstreams(self) -> dict[str, dict[str, Any]]:
        """Return what requests tell of each upstream.

        Nothing is known where the journal cannot be read, as other panels tell.
        """
        now = self.clock()
        try:
            states = await read_journal(
                self._path, partial(self._recent.upstreams, now)
            )
            read = partial(self._series_reader.read_day, now)
            series = (await read_journal(self._path, read)).series
        except NotReady:
            return {}
        found: dict[str, dict[str, Any]] = {
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
            found[name] = {**found.get(name, {}), "today": today}
        return found

    async def list_clients(self) -> dict[str, float]:
        """Return when each family of clients last asked, for those of a week."""
        read = partial(self._recent.clients, self.clock())
        return dict(await read_journal(self._path, read))

    async def _today(self, body: dict[str, Any]) -> Json:
        """Return sums since midnight, by the hour too, and caps on a day.

        A cost is without requests that are `unpriced`. `yesterday` are the requests of
        the day before by the same time; `speed` is the median in tokens per second.
        `needs_you` are problems that go on until the user does something, of a week or
        of an upstream that fails now: each by its code and in words, once even if
        several upstreams have it.
        """
        now = self.clock()
        read = partial(self._series_reader.read_day, now)
        day = await read_journal(self._path, read)
        hours = day.series.buckets
        total = add_rows([hour.total for hour in hours])
        caps = await self._features.status_of("caps")
        upstreams = self._services.selection.upstreams
        since = _begin_of(_ERROR_DAYS, now)
        needs = await self._read(partial(find_needs, since=since, upstreams=upstreams))
        unmet = _find_unmet(await self.describe_upstreams(), [])
        needs |= {one.code for one in unmet if one.weight is ErrorWeight.NEEDS_YOU}
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
        """Return the questions to models of a day that took or cost most, or failed.

        They are as the turns of a conversation. The `day` is as 2026-01-31, today if it
        is missing; `errors` are in words.
        """
        by = read_choice(body, "sort", LARGEST, "seconds")
        begin, end = _read_day(body, self.clock())
        read = partial(largest_entries, by=by, begin=begin, end=end, count=_LARGEST)
        found = await self._read(read)
        errors = _explain(_codes_of(found))
        expired = await self._find_expired({one.entry.conversation for one in found})
        return {"requests": _turns(found, expired), "errors": errors}

    async def _conversations(self, body: dict[str, Any]) -> Json:
        """Return conversations that are found, and the sums of all of them.

        Where very many requests are new, these are `None` at first, and added up in
        the meantime.
        """
        count = read_count(body, "count", 50, most=_MOST_CONVERSATIONS)
        offset = read_number(body, "offset") or 0
        sort = read_choice(body, "sort", SORTS, "last")
        asked = ConversationQuery(
            sort,
            read_flag(body, "descending", sort != "folder"),
            read_text(body, "find", longest=_LONGEST_WORDS),
            read_text(body, "client", longest=_LONGEST_WORDS),
            read_amount(body, "least_cost"),
            read_flag(body, "errors"),
        )
        page = await self._find_conversations(asked, offset, count)
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
        """Return the turns of conversations before which a cache was lost."""
        names, price_of = [*conversations], self._services.price_of
        return await self._read(
            partial(find_expired, conversations=names, price_of=price_of)
        )

    async def _find_conversations(
        self, asked: ConversationQuery, offset: int, count: int
    ) -> ConversationPage:
        """Read one conversation more than was asked for, if there is one."""
        known = self._conversation_reader
        is_first = not offset and asked == ConversationQuery()
        if is_first and await read_journal(self._path, known.is_behind):
            if self._counting is None or self._counting.done():
                self._counting = asyncio.ensure_future(self._count_conversations())
            latest = await self._read(partial(latest_conversations, count=count + 1))
            return ConversationPage(latest)
        async with self._one_at_a_time:
            read = partial(known.read, asked, offset, count + 1)
            return await read_journal(self._path, read)

    async def _count_conversations(self) -> None:
        async with self._one_at_a_time:
            read = partial(self._conversation_reader.read, ConversationQuery(), 0, 0)
            with contextlib.suppress(NotReady):  # as whoever asks next is told
                await read_journal(self._path, read)

    async def _conversation(self, body: dict[str, Any]) -> Json:
        """Return turns of a conversation before one, the oldest first, and its sums.

        `previous` is when the turn before them ended, in seconds since 1970. A `note`
        tells of a turn that was dear because the upstream's cache had expired. `window`
        is that of the last model in tokens, 0 if it is not known. `cache` is what the
        upstreams' caches saved, and what lost ones cost.
        """
        name = read_text(body, "conversation", longest=_LONGEST_ID)
        if not name:  # one of spaces may be a client's
            raise bad_field("conversation", "a text that is not empty")
        before = read_number(body, "before")
        wanted = LogFilter(conversation=name, exact=True)
        found = await self._read(
            partial(entries_before, number=before, count=_TURNS + 1, wanted=wanted)
        )
        sums = await self._read(partial(sum_requests, conversation=name))
        price_of = self._services.price_of
        dearest = await self._read(partial(find_dearest, conversation=name))
        weighed = partial(weigh_cache, conversation=name, price_of=price_of)
        cache = await self._read(weighed)
        earlier = found[_TURNS].entry if len(found) > _TURNS else None
        turns = found[::-1]
        expired = await self._find_expired([name])
        return {
            "sums": sums and _conversation(sums),
            "requests": _turns(turns[-_TURNS:], expired),
            "more": earlier is not None,
            "previous": earlier and earlier.started + earlier.seconds,
            "errors": _explain(_codes_of(turns[-_TURNS:])),
            "dearest": sums and _dearest(dearest, sums),
            "cache": cache._asdict(),
            "window": self._window_of(found),
        }

    def _window_of(self, found: Iterable[StoredEntry]) -> int:
        for turn in found:
            if turn.entry.model:
                asked = turn.entry.upstream, turn.entry.model
                facts = self._services.catalog.facts_of(*asked).facts
                return facts.loaded_window or facts.window
        return 0

    async def _problems(self, body: dict[str, Any]) -> Json:
        """Return failures by what they ask of the user, and repairs by model.

        A group's `named_in` is the setting that names its latest model, "" if none
        does: then clients asked for it. `damaged` requests were met in the journal and
        left out, by whatever read it. Of the upstream, `answers` tells whether it does,
        and the rest is as of `describe_upstreams`. One that fails without such a
        request in these days has a group with none.
        """
        now = self.clock()  # that of a page may be another machine's
        days = read_count(body, "days", _ERROR_DAYS, most=_MOST_DAYS)
        since = _begin_of(days, now)
        upstreams = self._services.selection.upstreams
        hour_end = hours_before(now, -1)
        weigh = partial(weigh_errors, since=since, until=hour_end, upstreams=upstreams)
        groups = await self._read(weigh)
        mended = await self._read(partial(find_mended, since=since))
        states = await self.describe_upstreams()
        groups = sorted([*groups, *_find_unmet(states, groups)], key=by_weight)
        known = _explain({group.code for group in groups})
        answering = {one for one in states if states[one]["state"] == "answers"}
        places = {name: _place_of(state) for name, state in states.items()}
        return {
            "groups": [
                {
                    **known.get(group.code, {}),
                    **to_builtins(group),
                    "answers": group.upstream in answering,
                    **places.get(group.upstream, {}),
                    "named_in": self._setting_of(group.upstream, *group.models[:1]),
                    "examples": _entries(group.examples),
                }
                for group in groups
            ],
            "requests": mended.requests,
            "models": [row._asdict() for row in mended.models],
            "mended": _entries(mended.latest),
            "damaged": left_out(self._path),
            "keep_days": self._keep_days,
        }

    def _setting_of(self, upstream: str, model: str = "") -> str:
        """Return the name of the setting that names a model of an upstream, or ""."""
        routing, router = self._services.settings.routing, self._services.router
        section = self._services.selection.upstreams.get(upstream)
        if not model:
            return ""
        wanted = ListedModel(upstream, model).id
        names: dict[str, Iterable[str]] = {
            "routing.aliases": routing.aliases.values(),
            "routing.default": (routing.default,),
            **{f"routing.models.{job}": (name,) for job, name in routing.models},
            **{f"routing.fallback.{job}": listed for job, listed in routing.fallback},
        }
        for setting, named in names.items():
            if any(router.resolve(one) in (wanted, model) for one in named if one):
                return setting
        if section and section.model == model:
            return f"upstreams.{upstream}.model"
        return "routing.default" if router.default().id == wanted else ""

    async def _series(self, body: dict[str, Any]) -> Json:
        """Return sums for each stretch of a range, by names if it is asked `by` any.

        A cost is without requests that are `unpriced`. `cache` is as of a conversation.
        `days` are the sums of each day with a request, unless the range is one day.
        """
        wanted = read_choice(body, "range", RANGES)
        by = read_choice(body, "by", SPLITS, "")
        async with self._one_at_a_time:
            read = partial(self._read_series, wanted, by)
            return await read_journal(self._path, read)

    async def _usage(self, body: dict[str, Any]) -> Json:
        """Return sums by day or model."""
        by = read_choice(body, "by", ("day", "model"))
        days = read_count(body, "days", 30, most=_MOST_USAGE_DAYS)
        async with self._one_at_a_time:
            read = partial(self._read_usage, by, days)
            rows, more = await read_journal(self._path, read)
        return {"rows": [row._asdict() for row in rows], "more": more}

    def _read_series(self, wanted: str, by: str) -> Json:
        begin_of, step = RANGES[wanted]
        now = self.clock()
        since = begin_of(now)
        series = self._series_reader.read(since, now, step, by)
        days = [] if step is Step.HOUR else self._read_days(since, now)
        total = add_rows([bucket.total for bucket in series.buckets])
        return {
            "range": wanted,
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
        """Return the sums, and how many rows more there are."""
        now = self.clock()
        since = days_before(now, days - 1)
        if by == "day":
            return self._read_days(since, now), 0
        found = top_usage(self._path, by, since, _MOST_ROWS)
        return found.rows, found.more

    def _read_days(self, since: float, now: float) -> list[UsageRow]:
        """Return the sums of each day with a request; not all is read anew."""
        return [
            bucket.total._replace(key=_local(bucket.begin)[:10])
            for bucket in self._series_reader.read(since, now, Step.DAY).buckets
            if bucket.total.requests
        ]

    async def _read(self, read: Callable[[Path], T]) -> T:
        return await read_journal(self._path, partial(read, self._path))


def _read_day(body: Mapping[str, Any], now: float) -> tuple[float, float]:
    """Return when a day begins and ends, that of `now` if the field is missing."""
    day = read_text(body, "day", longest=len("2026-01-31"))
    try:
        return day_span(date.fromisoformat(day) if day else datetime.fromtimestamp(now))
    except (ValueError, OverflowError, OSError) as error:  # as of the year 9999
        raise bad_field("day", "a day as 2026-01-31") from error


def _entries(found: Iterable[StoredEntry]) -> list[Json]:
    return [{"number": one.number, **one.entry._asdict()} for one in found]


def _turns(found: Iterable[StoredEntry], expired: _Expired) -> list[Json]:
    """Return requests with what the upstream's cache did for each."""
    rows: list[Json] = []
    for number, entry in found:
        lost = expired.get(entry.conversation, {}).get(number)
        note = lost._asdict() if lost else None
        cached = _share(entry.cache_read_tokens, entry.input_tokens)
        told = {"number": number, **entry._asdict(), "cached": cached, "note": note}
        rows.append(told)
    return rows


def _sum_expired(expired: Mapping[int, ExpiredCache]) -> Json | None:
    """Return how often a cache was lost, and what that cost if the prices are known."""
    if not expired:
        return None
    costs = [one.extra_cost for one in expired.values()]
    known = [cost for cost in costs if cost is not None]
    total = sum(known) if len(known) == len(costs) else None
    return {"times": len(costs), "extra_cost": total}


def _dearest(dearest: DearTurn | None, sums: ConversationSums) -> Json | None:
    """Return the turn that cost most, and its share of what all cost."""
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
    """Tell whether an upstream is asked where its vendor is, on another machine."""
    preset, base_url = preset_of(section.type), base_url_of(section)
    return (
        bool(preset.base_url) and preset.is_at(base_url) and not is_loopback(base_url)
    )


def _place_of(state: Json) -> Json:
    names = ("key_outside", "at_vendor", "by_list", "failure")
    return {name: state[name] for name in names}


def _find_unmet(
    states: Mapping[str, Json], groups: Iterable[ErrorGroup]
) -> Iterator[ErrorGroup]:
    """Give a group without requests for each upstream that fails otherwise."""
    met = {(group.upstream, group.code) for group in groups if group.goes_on}
    for name, state in states.items():
        code = state["code"]
        if state["state"] == "fails" and (name, code) not in met:
            weight = state.get("weight", ErrorWeight.LOOK)
            times = state["since"], state["last"]
            outcome = 0, 0, *times, True, [0] * BARS
            yield ErrorGroup(weight, Ending.FAILED, code, name, [], *outcome)


def _codes_of(found: Iterable[StoredEntry]) -> set[str]:
    """Return the errors of requests, and those after which they were tried again."""
    return {
        code for one in found for code in (one.entry.error, *one.entry.retried.split())
    }


def _explain(codes: set[str]) -> dict[str, Json]:
    rows = error_rows(language_in_force()) if codes - {""} else {}
    return {code: row._asdict() for code in sorted(codes) if (row := rows.get(code))}


def _local(moment: float) -> str:
    """Return what clock and calendar show here, as 2026-01-31T18:00."""
    return datetime.fromtimestamp(moment).isoformat(timespec="minutes")


def _write_bucket(bucket: Bucket) -> Json:
    return {
        "begin": bucket.begin,
        "local": _local(bucket.begin),
        **_sums(bucket.total),
        "parts": [_sums(part) for part in bucket.parts],
        "first_byte": bucket.first_byte._asdict(),
        "seconds": bucket.seconds._asdict(),
    }


def _sums(row: UsageRow) -> dict[str, float]:
    return {name: value for name, value in row._asdict().items() if name != "key"}
