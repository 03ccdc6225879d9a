"""byok index: add and remove workspaces, rebuild the index, show its status."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from byok.cli.build_progress import describe, is_settled, until_built, until_rebuilt
from byok.cli.code_client import folders, whole, with_client
from byok.cli.command_context import ConfigOption, JsonOption, load
from byok.cli.commands import CommandGroup
from byok.cli.daemon_client.client import LocalClient
from byok.cli.embed import OFF, show_vectors
from byok.cli.output import say, say_json, say_table, say_text, tell
from byok.core.chat import Json
from byok.core.routing import Service

_SETTLE_SECONDS = 3.0
NoWaitOption = Annotated[
    bool,
    typer.Option("--no-wait", help="Do not wait for the daemon to finish."),
]
FolderArgument = Annotated[Path, typer.Argument(help="A folder.", metavar="DIR")]


class _Group(CommandGroup):
    """Accepts `byok index --estimate DIR` for `byok index estimate DIR`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["--estimate"]:
            args = ["estimate", *args[1:]]
        return super().parse_args(ctx, args)


commands = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
)


@commands.command("status")
def status(json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show the indexed folders and their progress."""

    async def work(client: LocalClient) -> dict[str, Any]:
        daemon = await client.daemon()
        answer = await client.ask(Service.INDEX_STATUS, {})
        end = time.monotonic() + _SETTLE_SECONDS
        while daemon is None and time.monotonic() < end:
            if all(map(is_settled, answer["workspaces"])):
                break
            await asyncio.sleep(0.1)  # the scan has only just started
            answer = await client.ask(Service.INDEX_STATUS, {})
        vectors = await client.ask(Service.EMBED_STATUS, {})
        told = {} if vectors["state"] == OFF else {"embeddings": vectors}
        return {"daemon": daemon is not None, **answer, **told}

    answer = with_client(work, config=config)
    if json:
        say_json(answer)
        return
    if not answer["workspaces"] and not answer["totals"].get("blobs"):
        say("Nothing is indexed yet. Start with: byok index add DIR")
    else:
        show_index(answer)
    if vectors := answer.get("embeddings"):
        show_vectors(vectors)
    if not answer["daemon"]:
        tell("byok is not running: file changes are noticed once it runs (byok serve).")


def show_index(answer: dict[str, Any]) -> None:
    """Print the status of the index."""
    totals = answer["totals"]
    say(
        f"{answer['state']}: {totals['blobs']:,} file versions, "
        f"{totals['chunks']:,} chunks; uploaded: {totals['blobs_held']:,} files, "
        f"{totals['bytes_held'] / 1e6:,.1f} MB"
    )
    if answer["error"]:
        say(f"error: {answer['error']}")
    rows = [
        (
            space["root"],
            space["phase"],
            f"{space['percentage']:.0f} %",
            f"{space['files_tracked']:,}",
            space["note"],
        )
        for space in answer["workspaces"]
    ]
    if rows:
        say_table("workspace", "phase", "", "files", "", rows=rows)


@commands.command("add")
def add(
    folder: FolderArgument, no_wait: NoWaitOption = False, config: ConfigOption = None
) -> None:
    """Index a folder and keep its index up to date from now on."""

    async def work(client: LocalClient) -> None:
        [root] = folders([folder])
        answer = await client.ask(Service.INDEX_ADD, {"root": str(root)})
        await wait_for(client, [answer["workspace"]], no_wait=no_wait)

    with_client(work, config=config)


@commands.command("remove")
def remove(folder: FolderArgument, config: ConfigOption = None) -> None:
    """Stop following a folder and remove it from the index; files stay untouched."""

    async def work(client: LocalClient) -> None:
        [root] = folders([folder])
        answer = await client.ask(Service.INDEX_REMOVE, {"root": str(root)})
        say(f"Removed {answer['removed']} from the index; its files are untouched.")

    with_client(work, config=config)


@commands.command("rebuild")
def rebuild(no_wait: NoWaitOption = False, config: ConfigOption = None) -> None:
    """Rebuild the whole index from the files; the old index answers meanwhile."""

    async def work(client: LocalClient) -> None:
        answer = await client.ask(Service.INDEX_REBUILD, {})
        if not answer["workspaces"]:
            say("There is no workspace. Add one: byok index add DIR")
            return
        if not no_wait or await client.daemon() is None:
            await until_rebuilt(client, answer["files"])
        await wait_for(client, answer["workspaces"], no_wait=no_wait)

    with_client(work, config=config)


async def wait_for(
    client: LocalClient, spaces: Sequence[dict[str, Any]], *, no_wait: bool
) -> None:
    """Wait until workspaces are indexed, and print their state."""
    daemon = await client.daemon()
    if no_wait and daemon is not None:
        for space in spaces:
            say(f"{space['root']}: the daemon is indexing it (byok index status).")
        return
    try:
        built = await until_built(client, {space["root"] for space in spaces})
    except asyncio.CancelledError:  # Ctrl-C
        tell(
            "Indexing stops now; byok serve continues it."
            if daemon is None
            else "The daemon continues indexing (byok index status)."
        )
        raise
    for space in built.workspaces:
        say(describe(space))
    if daemon is None:
        tell("byok is not running: file changes are noticed once it runs (byok serve).")


@commands.command("why")
def why(
    path: Annotated[Path, typer.Argument(help="A file or folder.", metavar="PATH")],
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show whether a path is indexed, and if not, which rule excludes it."""

    async def work(client: LocalClient) -> Json:
        return await client.ask(Service.INDEX_WHY, {"path": str(whole(path))})

    answer = with_client(work, config=config)
    if json:
        say_json(answer)
        return
    text = f"{answer['path']}: {answer['what']}"
    if answer["reason"]:
        text += f" ({answer['reason']}): {answer['explanation']}"
    say(text)
    for note in answer.get("notes", ()):  # a daemon of an older version
        say(f"But {note}.")


@commands.command("estimate")
def estimate(
    folder: Annotated[Path, typer.Argument(help="A folder.", metavar="DIR")] = Path(),
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Estimate the time and disk space of a first build; builds nothing."""
    from byok.cli.estimate import estimate as walked
    from byok.wiring.services import index_options

    [root] = folders([folder])
    found = walked(root, index_options(*load(config)))
    if json:
        say_json(found.as_json())
    else:
        say_text(found.text())
