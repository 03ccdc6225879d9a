"""Print text for people, JSON for scripts, and errors; ask the user questions.

`say...` prints results on stdout, `tell` remarks on stderr; nothing else writes to the
terminal. File names, upstream texts and errors may contain terminal control sequences;
they are escaped. Callers write English; text for people is translated here.
"""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from shutil import get_terminal_size
from threading import Lock, Timer
from typing import Annotated, Any, TextIO, TypeVar

import orjson
import typer

from byok.cli.wide_text import break_wide_text, count_cells, wrap_words
from byok.core.errors import BadRequest, ByokError, ConfigError
from byok.core.escapes import escape, escape_json
from byok.core.language import translate
from byok.core.platform.installation import COMMANDS, make_pasteable

T = TypeVar("T")
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_PIPE_WIDTH, _MIN_WIDTH = 10_000, 20
_DELAY_SECONDS = 0.5  # of the progress; most commands have ended by then
# A command within a sentence: up to the sentence's end, a bracket or a wide character.
_COMMAND = re.compile(
    rf"\b(?:byok (?={COMMANDS})|(?:chmod|export|loginctl|ollama|ssh|sudo) )[!-~].*?"
    r"(?=[.,;)]*(?: \(|[.,;] |$)|[，。；：、（）]| [\u2e80-\u9fff])"
)
_INDENT = re.compile(r"^ *(?:\d  )?")
_NO_BREAK = "\0"
_GENERAL_CODES = frozenset({BadRequest.code, ConfigError.code})


def say(line: str = "") -> None:
    """Print a line of the result on stdout, its byok commands ready to be pasted."""
    sys.stdout.write(_write_line(line) + "\n")


def say_text(text: str) -> None:
    """Print a text that is no message, such as a file, without translating it."""
    for line in text.split("\n"):
        sys.stdout.write(escape(line) + "\n")


def tell(line: str) -> None:
    """Print a remark on stderr, where it does not disturb scripts."""
    sys.stderr.write(_wrap(_write_line(line)) + "\n")


def write_out() -> None:
    """Flush stdout; if it cannot be written to, discard its buffer.

    Raises:
        OSError: it cannot be written to.
    """
    try:
        sys.stdout.flush()
    except OSError:
        discard_output(sys.stdout)
        raise


def discard_output(stream: TextIO) -> None:
    """Discard the buffer of a standard stream, and all later output to it."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _wrap(line: str) -> str:
    """Wrap a remark at the width of the terminal, but never within a command."""
    width = get_terminal_size().columns
    if count_cells(line) < width or not sys.stderr.isatty():
        return line
    joined = _COMMAND.sub(lambda match: match[0].replace(" ", _NO_BREAK), line)
    lines = wrap_words(
        joined,
        max(_MIN_WIDTH, width - 1),
        indent=" " * (len(line) - len(_INDENT.sub("", line, count=1))),
    )
    return "\n".join(lines).replace(_NO_BREAK, " ")


def _write_line(line: str) -> str:
    return escape(make_pasteable(translate(line)))


def count_noun(number: int, noun: str) -> str:
    """Write a number with its noun, in the plural unless it is 1."""
    singular = f"{number:,} {noun}"
    translated = translate(singular)
    if number == 1 or translated != singular:
        return translated
    return f"{singular}s"


def say_json(value: Any, *, one_line: bool = False) -> None:
    """Print a value for a script, on `one_line` if it reads one value per line."""
    text = orjson.dumps(value, option=None if one_line else orjson.OPT_INDENT_2)
    sys.stdout.write(escape_json(text.decode()) + "\n")


def say_answer(answer: T, show: Callable[[T], None], *, json: bool) -> None:
    """Print an answer for a script, or `show` it to a person."""
    (say_json if json else show)(answer)


def fail(error: ByokError) -> None:
    """Print an error and its hint on stderr, and the command that explains its code.

    A code with many causes is explained only where there is no hint.
    """
    for line in f"byok: {error}".split("\n"):
        tell(line)
    if error.hint:
        tell(f"  {error.hint}")
    if not (error.hint and error.code in _GENERAL_CODES):
        tell(f"  More: byok explain {error.code}")


def say_styled(mark: tuple[str, str], *parts: tuple[str, str]) -> None:
    """Print a line of (text, style) pieces; styles are for terminals only.

    If it is wrapped, its further lines are indented by the width of the mark.
    """
    from rich.cells import set_cell_size
    from rich.console import Console
    from rich.text import Text

    break_wide_text()
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    body = Text.assemble(
        *(
            (escape(make_pasteable(_translate_part(text))), style)
            for text, style in parts
        )
    )
    margin, (sign, style) = len(mark[0]), mark
    width = max(_MIN_WIDTH, console.width - margin)
    for number, line in enumerate(body.wrap(console, width)):
        prefix = set_cell_size(translate(sign) if number == 0 else "", margin)
        styled = Text(prefix, style if number == 0 else "")
        console.print(styled + line, soft_wrap=True)


def _translate_part(text: str) -> str:
    """Translate a part of a line, unless it is a single word: a name or a state."""
    return translate(text) if " " in text else text


def say_table(
    *columns: str,
    rows: Iterable[tuple[str, ...]],
    right: Collection[str] = (),
    widths: Mapping[str, int] | None = None,
    header: bool = True,
) -> None:
    """Print a table that fits the terminal; in a pipe, each row is one line.

    Columns of `right` hold numbers. `widths` are the least widths of columns in
    characters; with them, a table without `header` continues the previous one.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    break_wide_text()
    table: Table = Table(
        box=None, pad_edge=False, header_style="bold", show_header=header
    )
    for column in columns:
        table.add_column(
            translate(column),
            overflow="fold",  # paths are wrapped, never cut off
            justify="right" if column in right else "left",
            min_width=(widths or {}).get(column),
        )
    for row in rows:
        table.add_row(*(Text(escape(_translate_part(cell))) for cell in row))
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)


class ShownProgress:
    """The progress of work that takes long, shown on the terminal after a delay."""

    def __init__(self, words: str) -> None:
        self._lock = Lock()
        self._state: dict[str, Any] = {"description": translate(words), "detail": ""}
        self._bar: Any = None
        self._timer: Timer | None = None

    def update(
        self, words: str = "", *, done: float = 0, total: float = 0, detail: str = ""
    ) -> None:
        """Set the current step, how much of it is done, and a detail, as a count."""
        state: dict[str, Any] = {"detail": translate(detail)}
        if words:
            state["description"] = translate(words)
        if total:
            state |= {"completed": done, "total": total}
        with self._lock:
            self._state |= state
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], **state)

    def show_in(self, seconds: float) -> None:
        """Show the progress after a delay, unless it is hidden before."""
        self._timer = Timer(seconds, self._show)
        self._timer.daemon = True
        self._timer.start()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
            TimeElapsedColumn(),
        )
        with self._lock:
            if self._timer is None:
                return
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task(**{"total": None, **self._state})
            self._bar.start()

    def hide(self) -> None:
        """Remove the progress from the terminal, for good."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            bar, self._bar, self._timer = self._bar, None, None
        if bar is not None:
            bar.stop()


@contextmanager
def show_progress(
    words: str, *, hidden: bool = False, after: float = _DELAY_SECONDS
) -> Iterator[ShownProgress]:
    """Show the progress of the work in the block, on terminals only.

    Ask no question in the block: the progress would be drawn over it.
    """
    progress = ShownProgress(words)
    if not hidden and sys.stdout.isatty() and sys.stderr.isatty():
        progress.show_in(after)
    try:
        yield progress
    finally:
        progress.hide()


@dataclass
class Asker:
    """Answers questions. Ctrl-C and the end of input raise click's Abort.

    A person at a terminal is asked (`is_person`); with --yes the proposed answer is
    taken (`takes_best`); else every question is an error, whose hint is the `command`
    that a script has to run instead.
    """

    command: str = ""
    is_person: bool = False
    takes_best: bool = False

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Return yes or no.

        Raises:
            ConfigError: nobody can be asked; so do the other methods.
        """
        if self.is_person:
            return bool(typer.confirm(translate(question), default=default, err=True))
        if self.takes_best:
            return default
        raise ConfigError(
            f"There is no terminal to ask at: {question}",
            hint=f"In a script: {self.command}",
        )

    def text(self, question: str, default: str) -> str:
        """Return a line of text; an empty line stands for `default`, unless it is "".

        Raises:
            ConfigError: --yes was given, and there is no default.
        """
        if self.is_person:
            prompt = translate(question)
            return str(typer.prompt(prompt, default=default or None, err=True)).strip()
        if self.takes_best and not default:
            raise ConfigError(f"--yes cannot answer this: {question}")
        self.confirm(question)
        return default

    def secret(self, question: str, *, is_new: bool = False) -> str:
        """Return a line that is typed without echo; twice if it `is_new`.

        Raises:
            ConfigError: there is no person to ask.
        """
        if self.is_person:
            return str(
                typer.prompt(
                    translate(question),
                    hide_input=True,
                    confirmation_prompt=is_new and translate("Type it again"),
                    err=True,
                )
            )
        return self.text(question, "")


def find_asker(command: str, *, yes: bool) -> Asker:
    """Return an asker for this terminal; `command` is the one for scripts."""
    return Asker(command, is_person=not yes and sys.stdin.isatty(), takes_best=yes)


def confirm(question: str, command: str, *, yes: bool) -> None:
    """Ask for permission unless `yes`; Enter means no.

    Raises:
        ConfigError: there is no terminal to ask at; a script runs `command` with --yes.
        typer.Exit: the user says no.
    """
    if not find_asker(f"{command} --yes", yes=yes).confirm(question, default=yes):
        tell("Nothing was changed.")
        raise typer.Exit(1)
