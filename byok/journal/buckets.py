"""Time in equal steps of the local calendar: hours, quarters of a day, days, weeks.

Where summer time begins or ends a day has 23 or 25 hours, and so has its bucket.
"""

from datetime import datetime, timedelta
from enum import StrEnum

MOST_BUCKETS = 400
_TICK = 1e-6  # seconds; a date has no parts of a microsecond


class Step(StrEnum):
    """How long a bucket is; six hours begin at 0, 6, 12 and 18, a week on Monday."""

    HOUR = "hour"
    SIX_HOURS = "six_hours"
    DAY = "day"
    WEEK = "week"


_HOURS = {Step.HOUR: 1, Step.SIX_HOURS: 6, Step.DAY: 24, Step.WEEK: 7 * 24}


def make_buckets(since: float, until: float, step: Step) -> list[tuple[float, float]]:
    """Return start and end of all buckets of a period, in seconds since 1970.

    The first begins at `since`, even within a step; the last is whole, and holds the
    moment before `until`. Each ends where the next one begins.

    Raises:
        ValueError: that would be more than MOST_BUCKETS.
    """
    begin = _begin_of(step, until - _TICK)
    buckets = [(max(begin, since), _end_of(step, begin))] if since < until else []
    while begin > since:
        if len(buckets) == MOST_BUCKETS:
            raise ValueError(f"more than {MOST_BUCKETS} buckets")
        begin, end = _begin_of(step, begin - _TICK), begin
        buckets.append((max(begin, since), end))
    return buckets[::-1]


def days_before(moment: float, days: int) -> float:
    """Return the midnight with which the day begins that was so many `days` ago."""
    today = _midnight(datetime.fromtimestamp(moment))
    return (today - timedelta(days=days)).timestamp()


def hours_before(moment: float, hours: int) -> float:
    """Return the start of the hour of the local clock that was so many `hours` ago."""
    return _begin_of(Step.HOUR, moment - hours * 3600)


def _begin_of(step: Step, moment: float) -> float:
    here = datetime.fromtimestamp(moment)
    if step is Step.HOUR:
        # `fold` stays: an hour that the clock shows twice is two buckets.
        begin = here.replace(minute=0, second=0, microsecond=0)
    else:
        begin = _midnight(here)
        if step is Step.SIX_HOURS:
            begin = begin.replace(hour=here.hour - here.hour % 6)
        elif step is Step.WEEK:
            begin -= timedelta(days=begin.weekday())
    found = begin.timestamp()
    # A time that the clock leaves out counts from before or after the gap.
    return found if found <= moment else begin.replace(fold=1).timestamp()


def _end_of(step: Step, begin: float) -> float:
    """Return where the next step begins; that is looked for, as lengths differ."""
    seconds = _HOURS[step] * 3600
    end = _begin_of(step, begin + seconds)
    # Of a longer one the begin is found again.
    return end if end > begin else _begin_of(step, begin + seconds + 2 * 3600)


def _midnight(here: datetime) -> datetime:
    return here.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
