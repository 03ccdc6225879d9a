"""byok report: an archive about one captured request, for an issue."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.capture import IdArgument, open_folder
from byok.cli.command_context import ConfigOption
from byok.cli.terminal import say, tell
from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths

if TYPE_CHECKING:
    from byok.features.capture.capture import Capture


def report(
    wanted: IdArgument,
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
    capture = open_folder().read(wanted)
    file = out or Path(f"byok-report-{capture.id}.zip")
    if os.path.lexists(file):
        raise ConfigError(f"{file} exists already.", hint="Choose another name: --out")
    names = asyncio.run(_write(file, capture, config, with_content=with_content))
    say(f"{file} is written. It holds:")
    for name, size in names:
        say(f"  {name}  {size:,} bytes")
    if with_content:
        tell("It holds your code, your words and the model's answer.")
    tell("Look through all of it before you share it.")


async def _write(
    file: Path, capture: "Capture", config: Path | None, *, with_content: bool
) -> list[tuple[str, int]]:
    """Write the archive; return the names and sizes of what is in it."""
    from zipfile import ZipFile

    from byok.cli.checks.base import Surroundings
    from byok.cli.checks.bundle import write_bundle, write_parts
    from byok.cli.checks.examine import examine

    around = Surroundings(find_paths(), config=config)
    try:
        parts = await write_parts(capture, around, with_content=with_content)
        rows = await examine(around)
        await asyncio.to_thread(write_bundle, file, around, rows, parts)
    finally:
        await around.close()
    with ZipFile(file) as archive:
        return [(info.filename, info.file_size) for info in archive.infolist()]
