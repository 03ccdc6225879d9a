"""byok status."""

import asyncio
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from byok.cli.ask import refuse_if_silent
from byok.cli.command_context import JsonOption
from byok.cli.control import EXIT_NOT_RUNNING
from byok.cli.index import show_index
from byok.cli.output import say, say_json
from byok.errors import ByokError
from byok.platform.paths import Paths, find_paths
from byok.routing import Service

if TYPE_CHECKING:
    from byok.daemon.instance import Instance


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="status")(status)


def status(json: JsonOption = False) -> None:
    """Show whether the daemon is running, its default model, and the index.

    The exit code is 0 if it is running and 3 if not.
    """
    from byok.daemon_client.find import find_daemon

    paths = find_paths()
    daemon = find_daemon(paths)
    if daemon is None:
        refuse_if_silent(paths)
    told: dict[str, Any] = {"running": daemon is not None}
    if daemon is not None:
        facts = asdict(daemon)
        del facts["instance"]
        told |= {**facts, **asyncio.run(_ask_daemon(paths, daemon))}
    if json:
        say_json(told)
    else:
        _show(told)
    if daemon is None:
        raise typer.Exit(EXIT_NOT_RUNNING)


async def _ask_daemon(paths: Paths, daemon: "Instance") -> dict[str, Any]:
    """Return the daemon's model, settings, official service and index status.

    An error is returned as `error`.
    """
    from byok.daemon.token import read_token
    from byok.daemon_client.daemon import talking

    told: dict[str, Any] = {"model": "", "settings": {}, "official": {}}
    told |= {"index": None, "error": ""}
    try:
        async with talking(daemon, read_token(paths.token)) as door:
            told |= await door.answer(Service.DAEMON, {})
            told["official"] = await door.answer(Service.OFFICIAL, {})
            told["index"] = await door.answer(Service.INDEX_STATUS, {})
    except ByokError as error:
        told["error"] = error.sentence
    return told


def _show(told: dict[str, Any]) -> None:
    if not told["running"]:
        say("byok is not running. Start it: byok serve")
        return
    since = datetime.fromtimestamp(told["started"]).astimezone()
    say(
        f"byok is running: pid {told['pid']}, http://127.0.0.1:{told['port']}, "
        f"since {since:%Y-%m-%d %H:%M}"
    )
    if told["model"]:
        say(f"model: {told['model']}")
    _show_settings(told["settings"])
    if told["official"].get("base_url"):
        _show_official(told["official"])
    if told["error"]:
        say(f"index: {told['error']}")
    elif told["index"]["workspaces"] or told["index"]["totals"].get("blobs"):
        show_index(told["index"])
    else:
        say("index: nothing is indexed (byok index add DIR)")


def _show_settings(told: dict[str, Any]) -> None:
    """Print which settings of the file are not in use, and why."""
    if told.get("error"):
        say(f"settings: the previous ones are still in use. {told['error']}")
    if told.get("restart"):
        keys = ", ".join(told["restart"])
        say(f"settings: these changed and need a restart (byok restart): {keys}")


def _show_official(told: dict[str, Any]) -> None:
    """Print which groups use the official service, and its problems."""
    groups = [group for group, place in told["groups"].items() if place == "official"]
    asked = f"used for {', '.join(groups)}" if groups else "not used"
    say(f"official service: {told['base_url']}, {asked}")
    for what, trouble in told["troubles"].items():
        say(f"  {what}: {trouble}")
