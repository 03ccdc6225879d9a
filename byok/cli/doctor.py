"""byok doctor: check the whole setup, and say how to fix each problem."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.command_context import ConfigOption, JsonOption
from byok.cli.terminal import (
    count_noun,
    say,
    say_json,
    say_styled,
    show_progress,
    tell,
)
from byok.core.errors import ConfigError
from byok.core.language import translate
from byok.core.platform.paths import find_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byok.cli.checks.base import CheckRow

EXIT_FAILURES = 1
_WIDTH = 13  # of the column of states, including the gap
_STYLES = {"ok": "green", "warning": "yellow", "failure": "bold red"}


def doctor(
    json: JsonOption = False,
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle",
            metavar="FILE.zip",
            help="Also write an archive for a bug report: no keys, no code.",
        ),
    ] = None,
    ask_models: Annotated[
        bool,
        typer.Option(
            "--ask-models",
            help="Also ask each upstream's model a few short questions, which may "
            "cost a little.",
        ),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Check the whole setup and say how to fix each problem; nothing is changed.

    It contacts only the running daemon and the upstreams in your settings (for their
    model lists); without settings, the model servers on this machine. The exit code is
    1 if a check fails, else 0.
    """
    from byok.cli.checks.base import (
        CheckContext,
        CheckRow,
        worst_state,
        write_report,
        wrong,
    )
    from byok.cli.checks.bundle import examine_into

    if bundle is not None and os.path.lexists(bundle):
        raise ConfigError(f"{bundle} exists already.", hint="Choose another name.")
    with show_progress("checking", hidden=json) as progress:
        try:
            paths = find_paths()
        except ConfigError as error:  # no folder can be used, so nothing else works
            rows = [CheckRow("home", "", wrong(str(error), error.hint))]
        else:
            context = CheckContext(paths, config=config, asks_models=ask_models)
            rows = asyncio.run(examine_into(bundle, context, show=progress.update))
    if json:
        say_json(write_report(rows))
    else:
        _show(rows)
    is_missing = bundle is not None and not bundle.exists()
    if bundle is not None and not is_missing:
        tell(f"{bundle} is written. Look through it before you share it.")
    if is_missing or worst_state(rows) == "failure":
        raise typer.Exit(EXIT_FAILURES)


def _show(rows: "Sequence[CheckRow]") -> None:
    from byok.cli.checks.base import count_states

    for row in rows:
        result = row.result
        name = f"{translate(row.check)} {row.about}".rstrip()
        state = result.state.value
        say_styled(
            (state.ljust(_WIDTH), _STYLES.get(state, "dim")),
            (name, "bold"),
            (translate(": "), ""),
            (result.found, ""),
        )
        if result.cure:
            say_styled((" " * _WIDTH, ""), (f"cure: {result.cure}", "cyan"))
    say()
    ok, warnings, failures, unchecked = count_states(rows).values()
    say(
        f"{ok:,} ok, {count_noun(warnings, 'warning')}, "
        f"{count_noun(failures, 'failure')}, {unchecked:,} not checked"
    )
    if not failures:
        tell("If an answer is odd all the same: byok capture on, then byok report ID")
