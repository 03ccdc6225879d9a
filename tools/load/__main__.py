"""scripts/load: bounded load runs against a byok of their own, each with its goals."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

from tools.load.bodies import l8
from tools.load.connections import l9, l10
from tools.load.outcome import Outcome
from tools.load.streams import l1, l3
from tools.load.traffic import l2, soak

CASES: dict[str, tuple[Callable[[float], Awaitable[Outcome]], float]] = {
    "L1": (l1, 600),
    "L2": (l2, 1800),
    "L3": (l3, 600),
    "L8": (l8, 300),
    "L9": (l9, 600),
    "L10": (l10, 600),
    "soak": (soak, 1800),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; 1 when one missed a goal."""
    given = _parser().parse_args(arguments)
    status = 0
    for name in given.cases or [case for case in CASES if case != "soak"]:
        run, full = CASES[name]
        seconds = full if given.full else 60 * given.minutes or given.seconds
        outcome = asyncio.run(_bounded(run, seconds))
        print(outcome.line(), flush=True)
        status = status or int(bool(outcome.missed))
    return status


async def _bounded(
    run: Callable[[float], Awaitable[Outcome]], seconds: float
) -> Outcome:
    async with asyncio.timeout(3 * seconds + 120):
        return await run(seconds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/load", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[*CASES, []])
    parser.add_argument("--seconds", type=float, default=30, help="length of each run")
    parser.add_argument("--minutes", type=float, default=0, help="the same in minutes")
    parser.add_argument(
        "--full", action="store_true", help="as long as a release wants"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
