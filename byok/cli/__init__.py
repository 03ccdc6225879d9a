"""The command line: one file per command, imported when the command is called."""

from byok.core.platform.search_path import leave_out_working_folder

leave_out_working_folder()  # before the other imports, which search it
import signal
from contextlib import suppress

# While modules are imported, Ctrl-C ends the process at once, without a traceback.
_has_default_handler = signal.getsignal(signal.SIGINT) is signal.default_int_handler
with suppress(ValueError):  # not the main thread
    if _has_default_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
# isort: split

import gc
import logging
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

# byok has no pydantic plugins; a search for some reads every package's metadata.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import typer

from byok.cli import completion
from byok.cli.commands import INTERRUPTED, Program, version
from byok.cli.terminal import fail, write_out
from byok.core.errors import ByokError, ConfigError, from_os_error
from byok.core.language import known_languages, match_language, use_language
from byok.core.platform.paths import find_paths
from byok.core.platform.process import fit_into_limit, lacks_memory, memory_is_short
from byok.core.platform.programs import distrust

with suppress(ValueError):
    if _has_default_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
EXIT_CONFIG = 78
_EXITS = {
    "already_running": 75,
    "config": EXIT_CONFIG,  # of an error of the daemon, too
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
    gc.disable()  # short commands leave little garbage; the daemon enables it again
    os.umask(0o077)  # only the user may read files that byok creates
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started this process
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - stays open
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    # Only `serve` logs; the other commands print their messages.
    logging.getLogger("byok").addHandler(logging.NullHandler())
    distrust(_workspaces)
    fit_into_limit()
    is_completion = completion.VARIABLE in os.environ
    try:
        try:
            if is_completion:
                completion.answer_shell(lambda: app(prog_name="byok"))
            app(prog_name="byok")
        finally:
            write_out()  # now: a failure at Python's exit would not be handled here
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        if is_completion or isinstance(error, BrokenPipeError):
            sys.exit(1)  # nobody reads the error: a completing shell, or a closed pipe
        failure = _to_byok_error(error)
        if failure is None:
            raise
        fail(failure)
        sys.exit(exit_code(failure))
    sys.exit(0)


def _to_byok_error(error: Exception) -> ByokError | None:
    """Return an error as one that users can act on; None for a bug of byok's."""
    if isinstance(error, ByokError):
        return error
    if lacks_memory(error):
        failure = memory_is_short("this command")
        logging.getLogger(__name__).error("%s", failure.sentence)
        return failure
    return from_os_error(error) if isinstance(error, OSError) else None


def _print_version(is_requested: bool) -> None:
    if is_requested:
        version()
        raise typer.Exit


def _choose_language(value: str) -> str:
    if value:
        name = match_language(value)
        if not name:
            known = ", ".join(known_languages())
            raise typer.BadParameter(f"There are no texts in it. Known are: {known}.")
        use_language(name)
    return value


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
    version: Annotated[
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
