"""The check of the clock: certificates and limits of providers depend on it."""

import asyncio
from datetime import UTC, datetime

from byok.doctor.results import CannotCheck, CheckResult, doubtful, good, wrong
from byok.doctor.surroundings import Surroundings
from byok.doctor.upstream_access import get_transports, list_models
from byok.upstream.model_table import packed_table

_DAY, _MOST_YEARS = 86_400, 15
_MOST_SECONDS = 300.0
_CURE = "Switch on the time service, on Linux: sudo timedatectl set-ntp true"


async def check_clock(around: Surroundings, about: str) -> CheckResult:
    """Check the clock: not before byok was made, and as the servers' that are asked."""
    del about
    now = around.machine.clock()
    made = packed_table().day
    made_at = datetime(made.year, made.month, made.day, tzinfo=UTC).timestamp()
    if not made_at - _DAY <= now <= made_at + _MOST_YEARS * 366 * _DAY:
        told = datetime.fromtimestamp(now, UTC)
        return wrong(
            f"it says {told:%Y-%m-%d}, and this byok is of {made}: TLS will fail", _CURE
        )
    skews = await _skews(around)
    if not skews:
        return good(f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M} UTC")
    host, skew = max(skews.items(), key=lambda item: abs(item[1]))
    if abs(skew) <= _MOST_SECONDS:
        return good(f"within {abs(skew):.0f} s of {host}")
    off = f"{abs(skew) / 60:,.0f} min {'behind' if skew > 0 else 'ahead of'}"
    return doubtful(f"it is {off} that of {host}", _CURE)


async def _skews(around: Surroundings) -> dict[str, float]:
    """Return how far clocks of upstreams are ahead, once those have answered."""
    try:
        names = [*await around.upstreams()]
        listing = (list_models(around, name) for name in names)
        await asyncio.gather(*listing, return_exceptions=True)
    except CannotCheck:
        return {}
    return (await get_transports(around)).skews
