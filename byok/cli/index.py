"""byok index: add, remove and rebuild workspaces, estimate, and explain exclusions."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct, to_builtins

from byok.cli.code_client import ask_index, folders, resolve_parent, with_client
from byok.cli.command_context import ConfigOption, JsonOption, load
from byok.cli.commands import CommandGroup
from byok.cli.completion import complete_workspace
from byok.cli.daemon_client import LocalClient
from byok.cli.embed import OFF, show_vectors
from byok.cli.terminal import (
    ShownProgress,
    count_noun,
    say,
    say_answer,
    say_json,
    say_table,
    show_progress,
    tell,
)
from byok.core.chat import Json
from byok.core.errors import ConfigError, IndexFailed
from byok.core.escapes import escape
from byok.core.language import translate
from byok.core.routing import Service

if TYPE_CHECKING:
    from byok.search.index.types import IndexOptions

_SETTLE_SECONDS = 3.0  # for the scan of an index that was just opened
_POLL_SECONDS = 0.2
_SETTLED_PHASES = ("complete", "workspace-too-large", "folder-gone")
_LEFT_OUT = {
    "ignored": "{count} ignored",
    "secret": "{count} private",
    "too_large": "{count} too large",
    "not_accessible": "{count} not readable",
    "not_plain_files": "{count} not regular files",
    "encoding_errors": "{count} with undecodable names",
}
# Measured with two workers on two cores (docs/reference/retrieval.md).
_FILES_PER_SECOND, _BYTES_PER_SECOND, _MEASURED_WORKERS = 1_100, 9_000_000, 2
_DISK_SHARE = 0.2  # of the index, in relation to the bytes of the files
NoWaitOption = Annotated[
    bool, typer.Option("--no-wait", help="Do not wait for the daemon to finish.")
]
FolderArgument = Annotated[Path, typer.Argument(help="A folder.", metavar="DIR")]
FollowedArgument = Annotated[
    Path,
    typer.Argument(help="A folder.", metavar="DIR", autocompletion=complete_workspace),
]


class _Group(CommandGroup):
    """Accepts `byok index --estimate DIR` for `byok index estimate DIR`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["--estimate"]:
            args = ["estimate", *args[1:]]
        return super().parse_args(ctx, args)


commands = typer.Typer(cls=_Group, no_args_is_help=True)


@commands.command("status")
def status(json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show the indexed folders and their progress."""

    async def work(client: LocalClient) -> dict[str, Any]:
        daemon = await client.daemon()
        answer = await client.ask(Service.INDEX_STATUS, {})
        deadline = time.monotonic() + _SETTLE_SECONDS
        while daemon is None and time.monotonic() < deadline:
            if all(map(is_settled, answer["workspaces"])):
                break
            await asyncio.sleep(0.1)  # the scan has only just started
            answer = await client.ask(Service.INDEX_STATUS, {})
        vectors = await client.ask(Service.EMBED_STATUS, {})
        embeddings = {} if vectors["state"] == OFF else {"embeddings": vectors}
        return {"daemon": daemon is not None, **answer, **embeddings}

    say_answer(with_client(work, config=config), _show_status, json=json)


def _show_status(answer: Json) -> None:
    if not answer["workspaces"] and not answer["totals"].get("blobs"):
        say("Nothing is indexed yet. Start with: byok index add DIR")
    else:
        show_index(answer)
    if vectors := answer.get("embeddings"):
        show_vectors(vectors)
    if not answer["daemon"]:
        tell("byok is not running: file changes are noticed once it runs (byok serve).")


def show_index(answer: Json) -> None:
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
            translate(space["phase"]),
            f"{space['percentage']:.0f} %",
            f"{space['files_tracked']:,}",
            space["note"],
        )
        for space in answer["workspaces"]
    ]
    if rows:
        say_table("workspace", "phase", "", "files", "", rows=rows)
    show_remote(answer.get("remote"))


def show_remote(answer: dict[str, Any] | None) -> None:
    """Print the status of the search server, if the settings name one."""
    if answer is None:
        return
    words = f"search server: {answer['url']}"
    if not answer["enabled"]:
        say(f"{words}; not enabled, so nothing is sent (byok remote enable)")
        return
    words += f"; {answer['asked']:,} questions, {answer['answered']:,} answered"
    say(f"{words}; left out: {answer['note']}" if answer["note"] else words)


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
def remove(folder: FollowedArgument, config: ConfigOption = None) -> None:
    """Stop following a folder and remove it from the index; files stay untouched."""
    [root] = folders([folder])
    answer = ask_index(Service.INDEX_REMOVE, config, {"root": str(root)})
    say(f"Removed {answer['removed']} from the index; its files are untouched.")


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
    body = {"path": str(resolve_parent(path))}
    answer = ask_index(Service.INDEX_WHY, config, body, hidden=json)
    say_answer(answer, _explain, json=json)


def _explain(answer: Json) -> None:
    absent = "not there"
    exists = answer.get("exists", True) or answer["what"] == absent
    text = translate(answer["what"])
    if answer["reason"]:
        text = translate(f"skipped ({answer['reason']}): {answer['explanation']}")
    if not exists:
        text = f"{translate(absent)}{translate('; ')}{text}"
    say(f"{answer['path']}{translate(': ')}{text}")
    for note in answer.get("notes", ()):  # a daemon of an older version
        say(f"But {note}.")
    if advice := answer.get("advice"):
        say(advice)


@commands.command("estimate")
def estimate(
    folder: Annotated[Path, typer.Argument(help="A folder.", metavar="DIR")] = Path(),
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Estimate the time and disk space of a first build; builds nothing."""
    from byok.wiring.services import index_options

    [root] = folders([folder])
    options = index_options(*load(config))
    with show_progress("scanning", hidden=json) as progress:
        result = estimate_index(
            root,
            options,
            lambda files: progress.update(detail=count_noun(files, "file")),
        )
    if json:
        say_json(to_builtins(result))
    else:
        for line in result.lines():
            say(line)


class Built(Struct, frozen=True):
    """The status of workspaces after waiting for them, and the seconds it took."""

    workspaces: Sequence[dict[str, Any]]
    seconds: float


async def until_built(client: LocalClient, roots: Collection[str]) -> Built:
    """Wait until the given workspaces are indexed.

    Raises:
        IndexFailed: the index cannot be written.
    """
    began = time.monotonic()
    with show_progress("scanning") as progress:
        while True:
            answer = await _status(client)
            spaces = [s for s in answer["workspaces"] if s["root"] in roots]
            seconds = time.monotonic() - began
            if all(map(is_settled, spaces)):
                return Built(spaces, seconds)
            _show(progress, spaces, seconds)
            await asyncio.sleep(_POLL_SECONDS)


async def until_rebuilt(client: LocalClient, files: int) -> None:
    """Wait until the last of `files` files is indexed.

    Raises:
        IndexFailed: the index cannot be written.
    """
    began = time.monotonic()
    with show_progress("indexing") as progress:
        while (answer := await _status(client))["waiting"]:
            done = max(0, files - answer["waiting"])
            space = {
                "phase": "indexing",
                "percentage": 100.0 * done / max(1, files),
                "files_processed": done,
                "files_tracked": files,
            }
            _show(progress, [space], time.monotonic() - began)
            await asyncio.sleep(_POLL_SECONDS)


async def _status(client: LocalClient) -> Json:
    answer = await client.ask(Service.INDEX_STATUS, {})
    if answer["state"] == "error":
        raise IndexFailed(f"Indexing failed: {answer['error']}")
    return answer


def is_settled(space: dict[str, Any]) -> bool:
    """Tell whether a workspace is complete or failed, so that waiting is useless."""
    has_failed = space["phase"] == "scanning" and space["note"]
    return space["phase"] in _SETTLED_PHASES or bool(has_failed)


def describe(space: dict[str, Any]) -> str:
    """Describe the state of a workspace in one line."""
    root, count = space["root"], space["files_tracked"]
    if space["phase"] == "workspace-too-large":
        return (
            f"{root}: {space['note'] or 'too many files'}. It is not indexed; choose a "
            "folder inside it, exclude files with .augmentignore, or raise "
            "context.max_files."
        )
    if space["phase"] != "complete":
        return f"{root}: {space['note'] or space['phase']}"
    excluded = [
        translate(words.format(count=f"{space['counters'][name]:,}"))
        for name, words in _LEFT_OUT.items()
        if space["counters"].get(name)
    ]
    text = f"{root}: {count_noun(count, 'file')} indexed"
    return f"{text}; excluded: {', '.join(excluded)}" if excluded else text


def _show(
    progress: ShownProgress, spaces: Sequence[dict[str, Any]], seconds: float
) -> None:
    done = sum(space["files_processed"] for space in spaces)
    total = sum(space["files_tracked"] for space in spaces)
    weights = [max(1, space["files_tracked"]) for space in spaces]
    shares = [space["percentage"] for space in spaces]
    share = sum(w * s for w, s in zip(weights, shares, strict=True)) / sum(weights)
    scanning = any(space["phase"] == "scanning" for space in spaces)
    rate = done / seconds if seconds else 0
    progress.update(
        "scanning" if scanning else "indexing",
        done=share,
        total=100,
        detail=f"{share:3.0f} %  {done:,} of {total:,} files, {rate:,.0f}/s",
    )


class Estimate(Struct, frozen=True):
    """The size of a folder, and the expected cost of indexing it."""

    root: str
    files: int
    bytes: int
    left_out: int
    seconds: float
    disk_bytes: int
    too_large: bool

    def lines(self) -> list[str]:
        """Return it as a few lines of text."""
        seconds, minutes = max(1, round(self.seconds)), round(self.seconds / 60)
        duration = f"{seconds} s" if seconds < 90 else f"{minutes} min"
        lines = [
            f"{escape(str(self.root))}: {count_noun(self.files, 'file')}, "
            f"{self.bytes / 1e6:,.1f} MB; {count_noun(self.left_out, 'name')} excluded",
            f"estimated: {duration} for the first build, "
            f"{self.disk_bytes / 1e6:,.1f} MB on disk (from rates measured elsewhere; "
            "yours may differ by a factor of two)",
        ]
        if self.too_large:
            lines.append(
                "That is more than context.max_files: the folder would not be indexed, "
                "and ripgrep would answer instead."
            )
        return lines


def estimate_index(
    root: Path,
    options: "IndexOptions",
    show: Callable[[int], None] = lambda files: None,
) -> Estimate:
    """Scan a folder by the rules of the index, without reading file contents.

    `show` is called with the number of files so far.

    Raises:
        ConfigError: it cannot be a workspace.
    """
    from byok.search.index.files.ignore import rules_of
    from byok.search.index.files.reading import Unreadable
    from byok.search.index.files.roots import OwnFolders, check_root
    from byok.search.index.files.scan import Counters, walk
    from byok.search.index.types import FoundFile

    root = check_root(root, OwnFolders(options.own_folders))
    files = size = names = 0
    try:
        for batch in walk(root, rules_of(root, options), Counters()):
            entries = [entry for entry in batch if isinstance(entry, FoundFile)]
            names += len(batch) - len(entries)
            files += len(entries)
            size += sum(entry.facts.size for entry in entries)
            show(files)
    except Unreadable as error:
        raise ConfigError(f"{root} cannot be read.") from error
    seconds = max(files / _FILES_PER_SECOND, size / _BYTES_PER_SECOND)
    return Estimate(
        str(root),
        files,
        size,
        names,
        round(seconds * _MEASURED_WORKERS / min(options.workers, _MEASURED_WORKERS), 1),
        round(size * _DISK_SHARE),
        files > options.max_files,
    )
