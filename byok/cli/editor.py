"""Opens a file in the user's editor, and waits until it is closed."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from byok.errors import BadRequest
from byok.platform.programs import find_program

VARIABLES = ("VISUAL", "EDITOR")
_DEFAULTS = {
    "win32": ("notepad",),
    "darwin": ("nano", "vim", "vi"),
    "linux": ("editor", "nano", "vim", "vi"),  # `editor` is the user's choice on Debian
}
_CURE = "Set VISUAL or EDITOR to your editor, such as: export VISUAL='code --wait'"


def open_editor(file: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Open a file in $VISUAL, $EDITOR or a common editor; return when that has ended.

    It is started without a shell, in the file's folder: editors read settings from the
    working folder, which may be a repository.

    Raises:
        BadRequest: there is no such editor, or it failed.
    """
    command = find_editor(environ)
    before = signal.signal(signal.SIGINT, _leave_to_editor)
    try:
        ended = subprocess.run(  # noqa: S603 - the user's own program
            [*command, str(file)], cwd=file.parent, check=False
        )
    except OSError as error:
        raise BadRequest(
            f"{command[0]} cannot be started: {error.strerror}.", hint=_CURE
        ) from None
    finally:
        signal.signal(signal.SIGINT, before)
    if ended.returncode:
        raise BadRequest(
            f"The editor {command[0]} failed (exit code {ended.returncode}).",
            hint=f"What it saved is in {file}. Look at it with: byok prompts check",
        )


def find_editor(environ: Mapping[str, str]) -> list[str]:
    """Return the command of the editor: an absolute path, and arguments.

    Raises:
        BadRequest: there is none.
    """
    for variable in VARIABLES:
        if value := environ.get(variable, "").strip():
            return _resolve(variable, value)
    for name in _DEFAULTS.get(sys.platform, _DEFAULTS["linux"]):
        if program := find_program(name):
            return [program]
    raise BadRequest("No editor was found.", hint=_CURE)


def _resolve(variable: str, value: str) -> list[str]:
    """Return the command of a variable; a path must be absolute."""
    try:
        name, *arguments = shlex.split(value, posix=sys.platform != "win32")
    except ValueError as error:
        raise BadRequest(f"{variable} cannot be read: {error}.", hint=_CURE) from None
    name = os.path.expanduser(name.strip('"'))  # noqa: PTH111 - "~" alone stays a text
    if Path(name).name == name:
        program = find_program(name.removesuffix(".exe"))
    else:
        program = name if Path(name).is_absolute() and Path(name).is_file() else None
    if program is None:
        raise BadRequest(
            f"{variable} names {name[:200]}, which was not found.", hint=_CURE
        )
    return [program, *arguments]


def _leave_to_editor(*_: object) -> None:
    """Let Ctrl-C reach only the editor, which shares the terminal."""
