"""Run the programs of the system, without a shell and within limits."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from byok.errors import CannotStart
from byok.platform.child_process import run_program
from byok.platform.programs import clean_environment, find_program
from byok.service.base import Command, CommandResult

Run: TypeAlias = Callable[[Command], CommandResult]
_LONGEST_REASON = 300
_PAUSE = 1.0
_CODE = "service"
# What systemctl needs to find the user's manager, and programs to find home and name.
_KEPT = (
    *("HOME", "USER", "LOGNAME", "USERPROFILE", "USERNAME", "USERDOMAIN"),
    *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS"),
)


def run(command: Command) -> CommandResult:
    """Run a command and return what it said.

    Raises:
        CannotStart: the program is missing, takes too long, or fails and may not.
    """
    for left in reversed(range(command.tries)):
        result = _run_once(command)
        if result.exit_code == 0 or left == 0:
            break
        time.sleep(_PAUSE)
    if result.exit_code and not command.may_fail:
        reason = (result.err.strip() or result.out.strip())[:_LONGEST_REASON]
        raise CannotStart(
            f"`{' '.join(command.arguments)}` failed ({result.exit_code}): {reason}",
            code=_CODE,
            hint="If byok itself is why: byok config check, byok service logs",
        )
    return result


def run_all(commands: Iterable[Command], run: Run) -> list[CommandResult]:
    """Run commands in order, up to one that fails and may not."""
    return [run(command) for command in commands]


def _run_once(command: Command) -> CommandResult:
    name, *arguments = command.arguments
    program = find_program(name)
    if program is None:
        raise CannotStart(f"The program {name} was not found.", code=_CODE)
    try:
        ended = run_program(
            [program, *arguments], service_environment(), seconds=command.seconds
        )
    except OSError as error:
        raise CannotStart(
            f"{program} cannot be run: {error.strerror}.", code=_CODE
        ) from error
    if ended.was_late:
        raise CannotStart(
            f"`{' '.join(command.arguments)}` did not end within "
            f"{command.seconds:.0f} s.",
            code=_CODE,
        )
    exit_code = 0 if ended.was_cut else ended.exit_code
    return CommandResult(exit_code, _decode(ended.out), _decode(ended.err))


def _decode(printed: bytes) -> str:
    """Decode what a program printed; that of Windows may begin with a mark."""
    encoding = "utf-16" if printed[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return printed.decode(encoding, "replace")


def service_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of such programs, without keys and other variables.

    A shell without a login session lacks the address of the user's manager, which is
    always in the same folder.
    """
    kept = {name: environ[name] for name in _KEPT if environ.get(name)}
    if hasattr(os, "getuid") and "XDG_RUNTIME_DIR" not in kept:
        folder = Path(f"/run/user/{os.getuid()}")
        if folder.is_dir():
            kept["XDG_RUNTIME_DIR"] = str(folder)
    return clean_environment(kept)
