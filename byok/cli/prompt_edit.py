"""byok prompts edit: an own text of a prompt, opened in the user's editor."""

from pathlib import Path
from typing import Annotated

import typer

from byok.cli.ask import ask_daemon
from byok.cli.output import say, tell
from byok.cli.prompt_situation import NameArgument, split_name
from byok.errors import BadRequest, ByokError
from byok.platform.paths import find_paths
from byok.routing import Service

EXIT_BROKEN = 78  # as of settings that cannot be used
_ADDING = "{{shipped}}\n\n"


def edit_prompt(
    name: NameArgument,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="Start with a copy of the shipped text."),
    ] = False,
) -> None:
    """Open your own text of a prompt in the editor ($VISUAL, $EDITOR).

    A new one starts with {{shipped}}, which stands for the shipped text, so that it
    follows byok's updates. When you close the editor, the text is checked, and a
    running daemon uses it.
    """
    from byok.cli.editor import open_editor

    split_name(name)
    file = find_paths().prompts / f"{name}.md"
    _make(file, name, whole=whole)
    before = file.read_bytes()
    open_editor(file)
    if file.is_file() and file.read_bytes() == before:
        tell("Nothing was changed. An editor in a window of its own has to be told to")
        tell("wait, such as: export VISUAL='code --wait'")
    _use(file.parent)


def _make(file: Path, name: str, *, whole: bool) -> None:
    """Create the file if it is not there.

    Raises:
        BadRequest: something else is in its place.
    """
    from byok.platform.paths import create_private, make_private
    from byok.prompts.prompt_set import shipped_texts

    make_private(file.parent)
    if not file.exists() and not file.is_symlink():
        copy = shipped_texts().get(name) or shipped_texts()[name.partition(".")[0]]
        create_private(file, copy if whole else _ADDING)
    real, folder = file.resolve(), file.parent.resolve()
    if not real.is_file() or not real.is_relative_to(folder):
        raise BadRequest(
            f"{file} is no plain file of that folder.",
            hint="byok prompts check says more.",
        )


def _use(folder: Path) -> None:
    """Check the folder, and let a running daemon use it."""
    from byok.prompts.own_files import check_folder

    _, problems = check_folder(folder)
    for problem in problems:
        say(str(problem))
    if problems:
        tell("Until this is mended a running daemon keeps the prompts that it has, and")
        tell("none can be started.")
        raise typer.Exit(EXIT_BROKEN)
    try:
        answer = ask_daemon(Service.RELOAD)
    except ByokError:
        tell("The prompts are valid, but the running daemon keeps those that it has:")
        raise
    if answer is None:
        tell(
            "The prompts are valid. byok is not running; it reads them when it starts."
        )
    else:
        tell("The prompts are valid. The running daemon uses them from now on.")
