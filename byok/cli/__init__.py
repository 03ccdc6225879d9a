"""The command line: one file per command, imported when the command is called."""

from byok.core.platform.search_path import leave_out_working_folder

leave_out_working_folder()  # before anything else is imported
import signal
from contextlib import suppress

# Ctrl-C ends the process at once, without a traceback, until there is a command.
_is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
with suppress(ValueError):  # a thread that is not the main one
    if _is_usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
# isort: split

import gc
import logging
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

# byok has no plugins for pydantic; looking for some reads every package's metadata.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import typer

from byok.cli import completion
from byok.cli.commands import INTERRUPTED, Program
from byok.cli.terminal import fail, write_out
from byok.core.errors import ByokError, ConfigError, from_os_error
from byok.core.language import known_languages, match_language, use_language
from byok.core.platform.memory import fit_into_limit, lacks_memory, memory_is_short
from byok.core.platform.paths import find_paths
from byok.core.platform.programs import distrust

with suppress(ValueError):
    if _is_usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
EXIT_CONFIG = 78
_EXITS = {
    "already_running": 75,
    "config": EXIT_CONFIG,  # also when the daemon says so
    "corrupt_data": 74,
    "daemon_gone": 3,  # as `systemctl status` has it
    "files": 71,
    "index_in_use": 75,
    "newer_data": 76,
    "no_memory": 71,
    "passed_sockets": 69,
    "port": 69,
    "stranger_on_port": 69,
    "restart_failed": 69,
}

app = typer.Typer(
    name="byok",
    cls=Program,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def main() -> NoReturn:
    """Run a command; a ByokError becomes a message, a hint and an exit code."""
    gc.disable()  # nothing is worth collecting until the daemon runs: it turns it on
    os.umask(0o077)  # files that byok creates belong to its user only
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed before the start
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - for life
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    # Only `serve` logs; the other commands print what they have to say.
    logging.getLogger("byok").addHandler(logging.NullHandler())
    distrust(_workspaces)
    fit_into_limit()
    completes = completion.VARIABLE in os.environ
    try:
        try:
            if completes:
                completion.answer_shell(lambda: app(prog_name="byok"))
            app(prog_name="byok")
        finally:
            write_out()  # Python would do it after the exit code is decided
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        if completes or isinstance(error, BrokenPipeError):
            sys.exit(1)  # a shell has no place for an error, and a reader has left
        failure = _explain(error)
        if failure is None:
            raise
        fail(failure)
        sys.exit(exit_code(failure))
    sys.exit(0)


def _explain(error: Exception) -> ByokError | None:
    """Return an error as one that people can act on; None for a mistake of byok's."""
    if isinstance(error, ByokError):
        return error
    if lacks_memory(error):
        failure = memory_is_short("this command")
        logging.getLogger(__name__).error("%s", failure.sentence)
        return failure
    return from_os_error(error) if isinstance(error, OSError) else None


def _print_version(given: bool) -> None:
    if given:
        from byok.cli.commands import version

        version()
        raise typer.Exit


def _choose_language(given: str) -> str:
    if given:
        name = match_language(given)
        if not name:
            known = ", ".join(known_languages())
            raise typer.BadParameter(f"There are no texts in it. Known are: {known}.")
        use_language(name)
    return given


@app.callback()
def _program(
    language: Annotated[
        str,
        typer.Option(
            "--lang",
            callback=_choose_language,
            is_eager=True,
            metavar="LANGUAGE",
            help="The language of messages, instead of that of LANG.",
        ),
    ] = "",
    shown: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Bring your own key: a local daemon between Augment clients and any model."""


def _workspaces() -> list[Path]:
    from byok.search.index.store.workspaces import roots_in

    return roots_in(find_paths().database)


def exit_code(error: ByokError) -> int:
    """Return the exit code of an error."""
    if isinstance(error, ConfigError):
        return EXIT_CONFIG
    return _EXITS.get(error.code, 1)
