"""scripts/bench: what byok costs a stream, beside a pass-through and other gateways."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tools.bench import processes
from tools.bench.answers import AUGMENT, OPENAI
from tools.bench.client import Target
from tools.bench.measure import DIRECT, Table, generator, measured
from tools.bench.report import BEFORE, PAGE, compare, lines, machine, page_with
from tools.bench.scenarios import Scenario, scenarios

_QUICK = 1.0
_ROUNDS, _ROUNDS_AGAINST = 3, 8
_ROUNDS_HELP = f"{_ROUNDS}; {_ROUNDS_AGAINST} with --against; 1 for --seconds 1"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table; 1 when a stream was damaged, or byok became dearer."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.against and not (given.against / "byok" / "__main__.py").is_file():
        parser.error(f"{given.against} is no checkout of byok")
    usual = _ROUNDS_AGAINST if given.against else _ROUNDS
    rounds = given.rounds or (1 if given.seconds <= _QUICK else usual)
    plan = scenarios(given.seconds)
    if given.scenarios:
        wanted = given.scenarios.split(",")
        plan = [scenario for scenario in plan if scenario.name in wanted]
    with ExitStack() as stack:
        targets = _targets(stack, given)
        load = stack.enter_context(generator())
        table = measured(
            plan,
            targets,
            load,
            seconds=given.seconds,
            rounds=rounds,
            tell=lambda text: print(text, file=sys.stderr, flush=True),
        )
    text = "\n".join(lines(plan, table))
    print(text)
    if given.write:
        facts = f"Median of {rounds} interleaved rounds of {given.seconds:g} s; "
        facts += f"{machine()}."
        page = page_with(PAGE.read_text(encoding="utf-8"), f"{facts}\n\n{text}")
        PAGE.write_text(page, encoding="utf-8")
    dearer = [*compare(plan, table)] if given.against else []
    for line in dearer:
        print(line, file=sys.stderr)
    return max(_tell_damages(plan, table), int(bool(dearer)))


def _targets(stack: ExitStack, given: argparse.Namespace) -> list[Target]:
    upstream = stack.enter_context(processes.mock(given.port)).url
    print(f"the mock upstream is at {upstream}/v1", file=sys.stderr, flush=True)
    targets = [
        Target(DIRECT, f"{upstream}/v1", OPENAI),
        stack.enter_context(processes.passthrough(upstream)),
    ]
    if given.url:
        target = Target("byok", given.url, AUGMENT, given.token, given.pid)
    else:
        target = stack.enter_context(processes.byok(upstream)).target
    if given.against:
        other = processes.byok(upstream, root=given.against.resolve())
        before = replace(stack.enter_context(other).target, name=BEFORE)
        targets.append(before)
    return [*targets, target, *map(peer, given.peer)]


def peer(text: str) -> Target:
    """Read NAME=URL[,TOKEN[,PID[,MODEL[,DIALECT]]]]."""
    name, _, rest = text.partition("=")
    url, token, pid, model, dialect, *_ = [*rest.split(","), *[""] * 4]
    url, dialect = url.rstrip("/"), dialect or OPENAI
    return Target(name, url, dialect, token, int(pid or 0), model or "mock")


def _tell_damages(plan: Sequence[Scenario], table: Table) -> int:
    status = 0
    for scenario in plan:
        for name, figures in table[scenario.name].items():
            status = max(status, int(figures.damaged > 0 or not figures.streams))
            for reason in figures.reasons[:3]:
                print(f"{scenario.name}, {name}: {reason}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="length of a run")
    parser.add_argument("--rounds", type=int, default=0, help=_ROUNDS_HELP)
    parser.add_argument("--scenarios", default="", help="some of them: ttft,paced")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FOLDER",
        help="another checkout of byok, such as that of the last release: fail where "
        "this one takes 5 %% more CPU time or memory",
    )
    parser.add_argument("--write", action="store_true", help="into performance.md")
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=URL[,TOKEN[,PID[,MODEL[,DIALECT]]]]",
        help="another gateway; it speaks OpenAI's dialect, or anthropic; may come "
        "again",
    )
    parser.add_argument("--port", type=int, default=0, help="of the mock upstream")
    parser.add_argument("--url", default="", help="a byok that runs already")
    parser.add_argument("--token", default="", help="its token")
    parser.add_argument("--pid", type=int, default=0, help="its process, for its CPU")
    return parser


if __name__ == "__main__":
    sys.exit(main())
