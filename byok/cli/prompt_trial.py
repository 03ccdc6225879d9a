"""byok prompts try: how models do with small coding tasks, and with which prompts."""

import asyncio
import gc
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.command_context import ConfigOption, JsonOption, UpstreamOption, load
from byok.cli.output import count_noun, say_json, tell
from byok.cli.trial_report import TrialProgress, say_rows
from byok.errors import ByokError, ConfigError

if TYPE_CHECKING:
    from byok.trials.agent_loop import TrialLimits
    from byok.trials.outcome import TrialRow
    from byok.trials.tasks import TrialTask
    from byok.trials.trial_daemon import Trial
    from byok.wiring.services import Services

_ONLY = "agent"
_INTERRUPTED, _TERMINATED = 130, 143  # exit codes, as of a shell


def _complete_task(begun: str) -> list[str]:
    from byok.trials.tasks import all_tasks

    return [task.name for task in all_tasks() if task.name.startswith(begun)]


def try_prompts(
    what: Annotated[
        str, typer.Argument(help="The prompt to try: agent.", metavar="[PROMPT]")
    ] = _ONLY,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", "-m", metavar="MODEL", help="A model; repeat to compare models."
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            "-t",
            metavar="TASK",
            help="A task instead of all ten; repeatable. A wrong name lists them.",
            autocompletion=_complete_task,
        ),
    ] = None,
    steps: Annotated[
        int,
        typer.Option(min=1, max=100, metavar="N", help="Maximum requests per task."),
    ] = 20,
    seconds: Annotated[
        int,
        typer.Option(min=1, max=86_400, metavar="N", help="Maximum seconds per task."),
    ] = 600,
    prompts: Annotated[
        list[Path] | None,
        typer.Option(
            "--prompts",
            metavar="DIR",
            help="Use the prompts of this folder; repeat to compare folders.",
        ),
    ] = None,
    upstream: UpstreamOption = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Let models solve small coding tasks, and compare how they did.

    The tasks come with byok; their files exist only in memory, and no code that a model
    writes is run. The requests are like those of an editor's agent.
    """
    from byok.trials.agent_loop import TrialLimits
    from byok.trials.tasks import choose_tasks

    gc.enable()
    if what != _ONLY:
        raise ConfigError(
            f"{what[:40]!r} cannot be tried.", hint=f"byok prompts try {_ONLY}"
        )
    folders = [folder.absolute() for folder in prompts or ()]
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(f"{folder} is no folder.")
    run = _Run(choose_tasks(task or ()), TrialLimits(steps, seconds), yes=yes)
    code = 0
    try:
        asyncio.run(run.try_all(model or [], folders, upstream, config))
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except asyncio.CancelledError:
        code = _TERMINATED
    if json:
        say_json(run.as_json())
    else:
        say_rows(run.rows, with_prompts=bool(folders))
    if code:
        tell("byok: interrupted; only the tasks before it count.")
    elif not any(row.total("answers") for row in run.rows):
        tell("byok: no model answered.")
        code = 1
    raise typer.Exit(code)


class _Run:
    """All tasks with all models and all folders of prompts; `rows` grow."""

    def __init__(
        self, tasks: "tuple[TrialTask, ...]", limits: "TrialLimits", *, yes: bool
    ) -> None:
        self._tasks = tasks
        self._limits = limits
        self._yes = yes
        self.rows: list[TrialRow] = []

    def as_json(self) -> dict[str, object]:
        """Return everything for a script."""
        limits = {"steps": self._limits.steps, "seconds": self._limits.seconds}
        return {"limits": limits, "rows": [row.as_json() for row in self.rows]}

    async def try_all(
        self,
        names: list[str],
        folders: list[Path],
        upstream: str,
        config: Path | None,
    ) -> None:
        """Open a daemon for each folder of prompts, and try the models with it."""
        from byok.redact import Redactor
        from byok.trials.trial_daemon import OVERRIDES, open_trial

        _end_at_sigterm()
        settings, paths = load(config, OVERRIDES)
        redactor = Redactor()
        try:
            chosen: list[Path | None] = [*folders] or [None]
            for folder in chosen:
                async with open_trial(
                    settings, paths, redactor, upstream=upstream, prompts=folder
                ) as trial:
                    shown = str(folder) if folder else ""
                    await self._try(trial, names, shown, count=len(folders) or 1)
        except ByokError as error:
            raise error.redact(redactor) from None

    async def _try(
        self, trial: "Trial", names: list[str], prompts: str, *, count: int
    ) -> None:
        from byok.trials.outcome import TrialRow
        from byok.trials.run import choose_models, try_model

        models = await choose_models(trial.services.router, names)
        self._ask_permission(trial.services, models, count)
        with TrialProgress(len(self._tasks)) as progress:
            for model in models:
                row = TrialRow(model, prompts, [])
                self.rows.append(row)
                progress.begin_row(row)
                await try_model(
                    trial.client,
                    model,
                    self._tasks,
                    self._limits,
                    on_begin=progress.begin,
                    on_end=progress.end,
                )

    def _ask_permission(
        self, services: "Services", models: list[str], folders: int
    ) -> None:
        """Say what the trial may cost, once; models on this machine cost nothing."""
        from byok.model_ids import split_id
        from byok.wiring.apis import local_upstreams

        if self._yes:
            return
        self._yes = True
        local = local_upstreams(services.selection.upstreams)
        paid = [m for m in models if (parts := split_id(m)) and parts[0] not in local]
        if not paid:
            return
        most = len(paid) * len(self._tasks) * self._limits.steps * folders
        tell(
            f"This asks {', '.join(paid)} with at most {count_noun(most, 'request')}. "
            "A good model takes about 5 requests and 10,000 tokens for a task."
        )
        if not sys.stdin.isatty():
            raise ConfigError("A trial costs tokens.", hint="Add --yes to start it.")
        typer.confirm("Start?", abort=True, err=True)


def _end_at_sigterm() -> None:
    """Let SIGTERM cancel the current task, so that it removes its folder."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):  # Windows; not the main thread
        loop.add_signal_handler(signal.SIGTERM, task.cancel if task else loop.stop)
