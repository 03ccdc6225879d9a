"""byok search."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.asking import WorkspacesOption, folders, with_client
from byok.cli.building import FAILED, Built, describe, until_built
from byok.cli.context import ConfigOption, JsonOption
from byok.cli.output import say, say_json, tell
from byok.errors import NotReady
from byok.knowledge import DEFAULT_LENGTH, LONGEST, Service

if TYPE_CHECKING:
    from byok.chat import Json
    from byok.local.client import LocalClient

_MOST_HITS, _MOST_NAMED = 100, 3


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="search")(search)


def search(
    question: Annotated[
        list[str],
        typer.Argument(
            help='A question, such as "where are tokens checked".',
            metavar="QUESTION",
        ),
    ],
    workspace: WorkspacesOption = None,
    limit: Annotated[
        int, typer.Option(help="Most hits, with --json.", min=1, max=_MOST_HITS)
    ] = 10,
    max_length: Annotated[
        int, typer.Option(help="Characters of the answer.", min=200, max=LONGEST)
    ] = DEFAULT_LENGTH,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Find code by a question: the text that an agent gets, or hits as JSON.

    Searches the folders of -w; without them the workspace that this folder is in, else
    all workspaces; where none was ever declared, this project.
    """
    query = " ".join(question).strip()
    if not query:
        raise typer.BadParameter("The question is empty.")

    async def work(client: "LocalClient") -> "Json":
        roots = await _scope(client, folders(workspace))
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

    told = with_client(work, config=config)
    if json:
        say_json(told)
    else:
        say(told["formatted_retrieval"].rstrip("\n"))


async def _scope(client: "LocalClient", given: list[Path]) -> list[str]:
    """Return the workspaces to search, indexed; none stands for all."""
    told = await client.ask(Service.INDEX_STATUS, {})
    known = [space["root"] for space in told["workspaces"]]
    if not given and known:
        here = Path.cwd().resolve()
        around = [root for root in known if here.is_relative_to(root)]
        roots = [max(around, key=len)] if around else []  # the innermost
        if not roots:
            tell(
                f"This folder is in no workspace; searching {_named(known)}. "
                "For this folder: -w ."
            )
        _tell_if_empty(await built_as_far_as_it_goes(client, roots or known))
        return roots
    wanted = given or [project_of(Path.cwd().resolve())]
    await _follow(client, [root for root in wanted if str(root) not in known])
    roots = [str(root) for root in wanted]
    built = await built_as_far_as_it_goes(client, roots)
    for space in built.workspaces:
        if built.seconds > 1 or space["phase"] != "complete":
            tell(f"{describe(space)} ({built.seconds:.1f} s)")
    _tell_if_empty(built)
    return roots


async def built_as_far_as_it_goes(client: "LocalClient", roots: list[str]) -> Built:
    """Wait for workspaces; where indexing fails, what there is can be searched."""
    try:
        return await until_built(client, roots)
    except NotReady as error:
        if error.code != FAILED:
            raise
        tell(f"{error.sentence} Without a whole index, ripgrep searches.")
        return Built((), 0.0)


def _named(roots: list[str]) -> str:
    if len(roots) <= _MOST_NAMED:
        return ", ".join(roots)
    return f"all {len(roots)} workspaces (byok index status)"


def _tell_if_empty(built: Built) -> None:
    for space in built.workspaces:
        if space["phase"] == "complete" and not space["files_tracked"]:
            tell(f"{space['root']}: there is no file to search (byok index why PATH).")


async def _follow(client: "LocalClient", roots: Iterable[Path]) -> None:
    new = list(roots)
    if not new:
        return
    await client.follow(new)
    if await client.daemon() is not None:
        for root in new:
            tell(f"byok now follows {root}; to undo that: byok index remove {root}")


def project_of(folder: Path) -> Path:
    """Return the root of the git repository around a folder, else the folder."""
    home = Path.home()
    for place in (folder, *folder.parents):
        if place == home:
            break
        if (place / ".git").exists():
            return place
    return folder
