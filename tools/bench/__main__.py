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
from tools.bench.measure import DIRECT, Table, generator, measure_all
from tools.bench.report import BEFORE, PAGE, compare, lines, machine, page_with
from tools.bench.scenarios import Scenario, scenarios

_QUICK_SECONDS = 1.0
_ROUNDS, _ROUNDS_AGAINST = 3, 8
_ROUNDS_HELP = f"{_ROUNDS}; {_ROUNDS_AGAINST} with --against; 1 for --seconds 1"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table; 1 when a stream was damaged, or byok became dearer."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.against and not (options.against / "byok" / "__main__.py").is_file():
        parser.error(f"{options.against} is no checkout of byok")
    default = _ROUNDS_AGAINST if options.against else _ROUNDS
    rounds = options.rounds or (1 if options.seconds <= _QUICK_SECONDS else default)
    plan = scenarios(options.seconds)
    if options.scenarios:
        names = options.scenarios.split(",")
        plan = [scenario for scenario in plan if scenario.name in names]
    with ExitStack() as stack:
        targets = _targets(stack, options)
        load = stack.enter_context(generator())
        table = measure_all(
            plan,
            targets,
            load,
            seconds=options.seconds,
            rounds=rounds,
            tell=lambda text: print(text, file=sys.stderr, flush=True),
        )
    text = "\n".join(lines(plan, table))
    print(text)
    if options.write:
        facts = f"Median of {rounds} interleaved rounds of {options.seconds:g} s; "
        facts += f"{machine()}."
        page = page_with(PAGE.read_text(encoding="utf-8"), f"{facts}\n\n{text}")
        PAGE.write_text(page, encoding="utf-8")
    dearer = [*compare(plan, table)] if options.against else []
    for line in dearer:
        print(line, file=sys.stderr)
    return max(_report_damage(plan, table), int(bool(dearer)))


def _targets(stack: ExitStack, options: argparse.Namespace) -> list[Target]:
    upstream = stack.enter_context(processes.mock(options.port)).url
    print(f"the mock upstream is at {upstream}/v1", file=sys.stderr, flush=True)
    targets = [
        Target(DIRECT, f"{upstream}/v1", OPENAI),
        stack.enter_context(processes.passthrough(upstream)),
    ]
    if options.url:
        target = Target("byok", options.url, AUGMENT, options.token, options.pid)
    else:
        target = stack.enter_context(processes.byok(upstream)).target
    if options.against:
        other = processes.byok(upstream, root=options.against.resolve())
        before = replace(stack.enter_context(other).target, name=BEFORE)
        targets.append(before)
    return [*targets, target, *map(peer, options.peer)]


def peer(text: str) -> Target:
    """Read NAME=URL[,TOKEN[,PID[,MODEL[,DIALECT]]]]."""
    name, _, values = text.partition("=")
    url, token, pid, model, dialect, *_ = [*values.split(","), *[""] * 4]
    url, dialect = url.rstrip("/"), dialect or OPENAI
    return Target(name, url, dialect, token, int(pid or 0), model or "mock")


def _report_damage(plan: Sequence[Scenario], table: Table) -> int:
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
