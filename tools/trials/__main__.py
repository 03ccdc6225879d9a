"""python -m tools.trials: models solve small coding tasks; a table tells how they did.

The tasks' files exist only in memory, and no code that a model writes is run. The
requests are like those of an editor's agent.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from byok.cli.command_context import load
from byok.cli.terminal import count_noun, fail, say, say_json, say_table, tell
from byok.core.errors import ByokError, ConfigError
from byok.core.redact import Redactor
from byok.core.routing import split_id
from byok.upstream.router import Router
from byok.wiring.apis import local_upstreams
from byok.wiring.services import Services
from tools.trials.agent import AgentLoop, TrialLimits, TrialOutcome
from tools.trials.daemon import OVERRIDES, TrialClient, open_trial
from tools.trials.tasks import TrialTask, choose_tasks

_MAX_FAILURES = 2  # tasks in a row without one answer, until a model is skipped
_NUMBERS = {
    "steps": "steps",
    "input_tokens": "tokens in",
    "output_tokens": "tokens out",
    "wrong_calls": "wrong calls",
    "printed": "files printed",
}


class TrialRow(NamedTuple):
    """The outcomes of one model with one folder of prompts, "" for the user's own."""

    model: str
    prompts: str
    outcomes: list[TrialOutcome]

    def total(self, name: str) -> int:
        """Return the sum of a field over the outcomes."""
        return sum(int(getattr(outcome, name)) for outcome in self.outcomes)

    def as_json(self) -> dict[str, Any]:
        """Return the row as JSON for a script."""
        tasks = [outcome.as_json() for outcome in self.outcomes]
        solved = self.total("is_solved")
        return {**self._asdict(), "solved": solved, "outcomes": tasks}


async def choose_models(router: Router, names: Iterable[str]) -> list[str]:
    """Return the ids of the named models; without names, that of the default one.

    Raises:
        ConfigError: no model has such a name.
    """
    ids: list[str] = []
    for name in [*names] or [""]:
        listed = await router.choose_listed(name)
        if router.resolve(name) in router.substitutes:
            raise ConfigError(
                f"There is no model {name[:60]!r}.",
                hint="`byok models` lists them; byok:UPSTREAM:MODEL needs no list.",
            )
        ids.append(listed.model_id)
    return [*dict.fromkeys(ids)]


async def try_model(
    client: TrialClient, row: TrialRow, tasks: Sequence[TrialTask], limits: TrialLimits
) -> None:
    """Give a model all tasks, and append the outcomes to its row.

    A model that fails to answer two tasks in a row is skipped for the others.
    """
    failures = 0
    for task in tasks:
        if failures == _MAX_FAILURES:
            fault = row.outcomes[_MAX_FAILURES - 1].fault
            outcome = TrialOutcome(task.name, row.model, f"not asked, after: {fault}")
        else:
            outcome = await AgentLoop(client.ask, task, row.model, limits).run()
            failures = 0 if outcome.answers else failures + 1
        row.outcomes.append(outcome)
        tell(f"  {len(row.outcomes)}/{len(tasks)} {_describe(outcome)}")


def _describe(outcome: TrialOutcome) -> str:
    result = f"not solved: {outcome.fault}" if outcome.fault else "solved"
    cost = f"{count_noun(outcome.steps, 'step')}, {outcome.seconds:.0f} s"
    return f"{outcome.task}: {result} ({cost})"


async def try_all(options: argparse.Namespace, rows: list[TrialRow]) -> None:
    """Open a daemon for each folder of prompts, and try the models with it."""
    tasks = choose_tasks(options.task)
    limits = TrialLimits(options.steps, options.seconds)
    settings, paths = load(options.config, OVERRIDES)
    redactor = Redactor()
    for folder in options.prompts or [None]:
        if folder and not folder.is_dir():
            raise ConfigError(f"{folder} is no folder.")
        try:
            async with open_trial(
                settings, paths, redactor, upstream=options.upstream, prompts=folder
            ) as trial:
                models = await choose_models(trial.services.router, options.model)
                _check_permission(trial.services, models, options)
                for model in models:
                    row = TrialRow(model, str(folder or ""), [])
                    rows.append(row)
                    tell(f"{model}{f' with {folder}' if folder else ''}")
                    await try_model(trial.client, row, tasks, limits)
        except ByokError as error:
            raise error.rewrite(redactor) from None


def _check_permission(
    services: Services, models: list[str], options: argparse.Namespace
) -> None:
    """Require --yes for models that may cost something: those of other machines."""
    local = local_upstreams(services.selection.upstreams)
    paid = [m for m in models if (parts := split_id(m)) and parts[0] not in local]
    if paid and not options.yes:
        raise ConfigError(
            f"This asks {', '.join(paid)}. A good model takes about 5 requests and "
            "10,000 tokens for a task.",
            hint="Add --yes to start it.",
        )


def say_rows(rows: Sequence[TrialRow]) -> None:
    """Print the table, and the reasons why tasks were not solved."""
    columns = ("model", "prompts", "solved", *_NUMBERS.values(), "seconds")
    say_table(*columns, rows=map(_cells, rows))
    for row in rows:
        say(f"{row.model} {row.prompts}".rstrip() + ":")
        for outcome in row.outcomes:
            if outcome.fault:
                say(f"  {outcome.task}: {outcome.fault}")
        say(f"  wrong calls: {', '.join(_kinds(row)) or 'none'}")


def _cells(row: TrialRow) -> tuple[str, ...]:
    solved = f"{row.total('is_solved')} of {len(row.outcomes)}"
    numbers = (f"{row.total(name):,}" for name in _NUMBERS)
    seconds = sum(outcome.seconds for outcome in row.outcomes)
    return (row.model, row.prompts, solved, *numbers, f"{seconds:.0f}")


def _kinds(row: TrialRow) -> Iterator[str]:
    """Yield the number of wrong calls of each kind."""
    for kind in sorted({kind for outcome in row.outcomes for kind in outcome.wrong}):
        number = sum(outcome.wrong.get(kind, 0) for outcome in row.outcomes)
        yield f"{number} {kind.value.replace('_', ' ')}"


def main() -> int:
    """Run the tasks; the exit code is 1 if no model answered."""
    parser = argparse.ArgumentParser(prog="python -m tools.trials", description=__doc__)
    parser.add_argument("--model", "-m", action="append", default=[], help="repeatable")
    parser.add_argument(
        "--task", "-t", action="append", default=[], help="instead of all; repeatable"
    )
    parser.add_argument("--steps", type=int, default=20, help="most requests per task")
    parser.add_argument("--seconds", type=int, default=600, help="most per task")
    parser.add_argument(
        "--prompts", type=Path, action="append", help="a folder; repeat to compare"
    )
    parser.add_argument("--upstream", default="", help="as of byok serve")
    parser.add_argument("--config", type=Path, help="a settings file")
    parser.add_argument("--yes", action="store_true", help="ask models that cost")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows: list[TrialRow] = []
    try:
        asyncio.run(try_all(options, rows))
    except ByokError as error:
        fail(error)
        return 1
    except KeyboardInterrupt:
        tell("Interrupted; only the tasks before it count.")
    if options.json:
        say_json([row.as_json() for row in rows])
    else:
        say_rows(rows)
    return 0 if any(row.total("answers") for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
