"""byok capture and byok report: record requests for a while, and archive one."""

import asyncio
import os
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from byok.cli.command_context import ConfigOption, JsonOption
from byok.cli.control import require_answer
from byok.cli.terminal import (
    YesOption,
    confirm,
    count_noun,
    say,
    say_answer,
    say_json,
    say_table,
    say_text,
    show_progress,
    tell,
)
from byok.core.chat import Json
from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths
from byok.features.capture.capture import CaptureFolder, Piece, write_piece

_CAPTURE = "capture"  # the feature that answers
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DAY = 86_400
_MAX_PIECE_CHARS = 2000  # without --full
IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The beginning of an id of `capture list`.")
]
commands = typer.Typer(no_args_is_help=True)


@commands.command("on")
def switch_on(
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="Such as 30s, 10m, 2h, 1d.")
    ] = "10m",
) -> None:
    """Record the requests of the next minutes, each in a file, for a day.

    Keys, tokens, cookies, values of queries and long base64 are removed before anything
    is written. Your code and messages are kept.
    """
    answer = require_answer(_CAPTURE, {"switch": "on", "seconds": parse_time(lasts)})
    say(f"byok captures requests for {lasts}, into {answer['folder']}.")
    tell(
        "Keys and tokens are removed. Your code, your words and the model's answers "
        "are kept there for a day, in files that only you can read."
    )
    tell("Then: byok capture list, byok report ID; end: byok capture off")


@commands.command("off")
def switch_off() -> None:
    """Stop recording; files stay until they are a day old, or cleared."""
    _say_status(require_answer(_CAPTURE, {"switch": "off"}))


@commands.command("status")
def show_status(json: JsonOption = False) -> None:
    """Show whether requests are captured, for how long, and how many were."""
    say_answer(require_answer(_CAPTURE), _say_status, json=json)


@commands.command("list")
def list_captures(json: JsonOption = False) -> None:
    """List the captured requests, the oldest first; the daemon need not run."""
    folder = open_folder()
    captures = [folder.facts(stored) for stored in folder.contents()]
    if json:
        say_json(captures)
    elif captures:
        columns = ("id", "time", "endpoint", "model", "answer", "attempts", "seconds")
        rows = map(_row, captures)
        say_table(*columns, rows=rows, right=("attempts", "seconds"))
    else:
        tell("byok: no captures. byok capture status tells whether it is on.")


@commands.command("show")
def show_capture(
    capture_id: IdArgument,
    full: Annotated[bool, typer.Option("--full", help="Shorten nothing.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what passed on each hop of a request, with times."""
    capture = open_folder().read(capture_id)
    if json:
        pieces = [write_piece(piece) for piece in capture.pieces]
        say_json({**capture.facts, "pieces": pieces})
        return
    for name, value in capture.facts.items():
        if value not in ("", None, 0):
            say_text(f"{name}: {value}")
    for piece in capture.pieces:
        _show_piece(piece, full=full)


@commands.command("clear")
def clear(yes: YesOption = False) -> None:
    """Delete all captures."""
    folder = open_folder()
    count = len(folder.contents())
    question = f"Delete {count_noun(count, 'capture')} in {folder.path}?"
    if count:
        confirm(question, "byok capture clear", yes=yes)
    say(f"Deleted {count_noun(folder.clear(), 'capture')}.")


def open_folder() -> CaptureFolder:
    """Return the folder of captures, after those that are too old were deleted."""
    folder = CaptureFolder(find_paths().captures)
    folder.tidy(time.time())
    return folder


def parse_time(text: str) -> float:
    """Parse a time such as 10m into seconds.

    Raises:
        ConfigError: it is no time, or longer than a day.
    """
    match = re.fullmatch(r"(\d{1,6})([smhd]?)", text)
    seconds = int(match[1]) * _UNITS[match[2] or "s"] if match else 0
    if not 1 <= seconds <= _DAY:
        raise ConfigError(
            f"--for {text[:20]!r} is no time up to a day.",
            hint="Such as: byok capture on --for 10m",
        )
    return seconds


def _say_status(answer: Json) -> None:
    captured = (
        f"{count_noun(answer['kept'], 'request')} captured since the start of byok."
    )
    if answer["on"]:
        say(f"Capturing is on, for {answer['seconds']} more seconds. {captured}")
    else:
        say(f"Capturing is off. {captured}")
    if answer["lost"]:
        tell(f"{count_noun(answer['lost'], 'request')} could not be kept; see the log.")


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    when = datetime.fromtimestamp(facts["started"]).strftime("%H:%M:%S")
    model = f"{facts['upstream']}/{facts['model']}" if facts["model"] else ""
    answer = facts["error"] or str(facts["status"])
    seconds = f"{facts['seconds']:.2f}"
    attempts = str(facts["attempts"])
    return (facts["id"], when, facts["endpoint"], model, answer, attempts, seconds)


def _show_piece(piece: Piece, *, full: bool) -> None:
    attempt = f" {piece.attempt}" if piece.attempt else ""
    say(f"--- {piece.at:.3f} s  {piece.hop.value}{attempt}")
    if piece.head is not None:
        say_text(piece.head.line)
        for name, value in piece.head.headers:
            say_text(f"{name}: {value}")
    elif piece.left_out:
        say(f"({piece.left_out:,} bytes were not kept)")
    else:
        text = piece.text if full else piece.text[:_MAX_PIECE_CHARS]
        say_text(text)
        if len(text) < len(piece.text):
            say(f"... {len(piece.text):,} characters in all; --full shows them")


def report(
    capture_id: IdArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.zip", help="Where to write it."),
    ] = None,
    with_content: Annotated[
        bool,
        typer.Option("--with-content", help="Include your code, messages and answers."),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Write an archive of a captured request, to attach to a bug report.

    It contains the request with each letter of its texts replaced by an x, facts about
    the model, settings without secrets, versions, the end of the log and the results
    of byok doctor. Look through it before you share it.
    """
    capture = open_folder().read(capture_id)
    file = out or Path(f"byok-report-{capture.id}.zip")
    if os.path.lexists(file):
        raise ConfigError(f"{file} exists already.", hint="Choose another name: --out")
    with show_progress("checking"):
        from zipfile import ZipFile

        from byok.cli.checks.base import CheckContext
        from byok.cli.checks.bundle import examine_into

        context = CheckContext(find_paths(), config=config)
        asyncio.run(examine_into(file, context, capture, with_content=with_content))
    say(f"{file} is written. It holds:")
    with ZipFile(file) as archive:
        for info in archive.infolist():
            say(f"  {info.filename}  {info.file_size:,} bytes")
    if with_content:
        tell("It holds your code, your words and the model's answer.")
    tell("Look through all of it before you share it.")
