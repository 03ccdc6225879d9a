"""byok search: print the code that an agent would get, or the hits as JSON."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from byok.cli.code_client import WorkspacesOption, folders, with_client, workspace_of
from byok.cli.command_context import ConfigOption, JsonOption
from byok.cli.daemon_client import LocalClient
from byok.cli.index import Built, describe, until_built
from byok.cli.terminal import say, say_json, say_text, tell
from byok.core.chat import Json
from byok.core.code_query import DEFAULT_LENGTH, MAX_LENGTH
from byok.core.errors import ConfigError, IndexFailed
from byok.core.platform.installation import quote
from byok.core.routing import Service

_MAX_HITS = 100


def search(
    question: Annotated[
        list[str],
        typer.Argument(
            help='A question, such as "where are tokens checked".', metavar="QUESTION"
        ),
    ],
    workspace: WorkspacesOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Search all workspaces.")
    ] = False,
    limit: Annotated[
        int, typer.Option(help="Maximum hits (with --json).", min=1, max=_MAX_HITS)
    ] = 10,
    max_length: Annotated[
        int, typer.Option(help="Maximum characters.", min=200, max=MAX_LENGTH)
    ] = DEFAULT_LENGTH,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Search code: print the text that an agent would get, or hits as JSON.

    Searches the folders given with -w. Without -w it searches the workspace that
    contains the current folder, else the git repository around it, which it indexes
    first.
    """
    query = " ".join(question).strip()
    if not query:
        raise typer.BadParameter("The question is empty.")
    if everything and workspace:
        raise typer.BadParameter("Use -w or --all, not both.")

    async def work(client: LocalClient) -> Json:
        roots = await _scope(client, folders(workspace), everything=everything)
        if json:
            body = {"query": query, "limit": limit, "workspaces": roots}
            return await client.ask(Service.SEARCH, body)
        return await client.ask(
            Service.RETRIEVAL,
            {
                "information_request": query,
                "max_output_length": max_length,
                "workspaces": roots,
            },
        )

    answer = with_client(work, config=config)
    if json:
        say_json(answer)
    else:
        text = answer["formatted_retrieval"].strip("\n")
        (say_text if "\n" in text else say)(text)  # one line is a message, not code


async def _scope(
    client: LocalClient, requested: list[Path], *, everything: bool
) -> list[str]:
    """Return the workspaces to search, after they were indexed."""
    answer = await client.ask(Service.INDEX_STATUS, {})
    indexed = [space["root"] for space in answer["workspaces"]]
    if everything:
        _tell_if_empty(await wait_until_searchable(client, indexed))
        return indexed
    folders = requested or [_find_workspace(client, indexed)]
    new = [folder for folder in folders if str(folder) not in indexed]
    if new:
        await _follow(client, new)
    roots = [str(folder) for folder in folders]
    built = await wait_until_searchable(client, roots)
    for space in built.workspaces:
        was_ready = built.seconds <= 1 and space["phase"] == "complete"
        if not was_ready and (requested or new):
            tell(f"{describe(space)} ({built.seconds:.1f} s)")
    _tell_if_empty(built)
    return roots


def _find_workspace(client: LocalClient, indexed: Iterable[str]) -> Path:
    """Return the workspace or project that contains the current folder."""
    folder, own_folders = Path.cwd().resolve(), client.own_folders
    try:
        return workspace_of(folder, map(Path, indexed), own_folders)
    except ConfigError as error:
        raise ConfigError(
            error.sentence,
            hint="Choose a folder (-w DIR), or search all workspaces (--all).",
        ) from error


async def wait_until_searchable(client: LocalClient, roots: list[str]) -> Built:
    """Wait until workspaces are indexed; if that fails, report it and go on."""
    try:
        return await until_built(client, roots)
    except IndexFailed as error:
        tell(f"{error.sentence} The index is incomplete, so ripgrep searches instead.")
        return Built((), 0.0)


def _tell_if_empty(built: Built) -> None:
    for space in built.workspaces:
        if space["phase"] == "complete" and not space["files_tracked"]:
            tell(f"{space['root']}: no file to search (byok index why PATH).")


async def _follow(client: LocalClient, roots: Sequence[Path]) -> None:
    await client.follow(roots)
    if await client.daemon() is not None:
        for root in roots:
            word = quote(root)
            tell(f"byok indexes {root} until it ends. To go on: byok index add {word}")
            tell(f"  To end that now: byok index remove {word}")
