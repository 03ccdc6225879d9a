"""byok status: show the daemon, its default model and the index."""

import asyncio
from datetime import datetime
from typing import Any

import typer
from msgspec import to_builtins

from byok.cli.command_context import JsonOption
from byok.cli.control import EXIT_NOT_RUNNING, not_running
from byok.cli.daemon_client import find_or_refuse, talking
from byok.cli.index import show_index, show_remote
from byok.cli.log import show_entries, tell_damage, write_entry
from byok.cli.terminal import say, say_json
from byok.core.daemon.instance import Instance
from byok.core.errors import ByokError
from byok.core.language import translate
from byok.core.platform.paths import Paths, find_paths
from byok.core.routing import Service
from byok.features import ROWS
from byok.features.journal.requests import StoredEntry, last_entries

_MAX_REQUESTS = 5


def status(json: JsonOption = False) -> None:
    """Show the daemon, its default model, the index, and the latest requests.

    The exit code is 0 if it is running and 3 if not.
    """
    paths = find_paths()
    daemon = find_or_refuse(paths)
    answer: dict[str, Any] = {"running": daemon is not None}
    if daemon is not None:
        facts = to_builtins(daemon)
        del facts["instance"]
        answer |= {**facts, **asyncio.run(_ask_daemon(paths, daemon))}
    entries, trouble = list[StoredEntry](), ""
    try:
        entries = last_entries(paths.journal, _MAX_REQUESTS) if daemon else []
    except ByokError as error:
        trouble = error.sentence
    if json:
        if daemon is not None:
            answer["requests"] = [write_entry(stored) for stored in entries]
        say_json(answer)
    else:
        _show(answer)
        _show_requests(entries, trouble)
    if daemon is None:
        raise typer.Exit(EXIT_NOT_RUNNING)


def _show_requests(entries: "list[StoredEntry]", trouble: str) -> None:
    if trouble:
        say(f"requests: {trouble}")
    if entries:
        say("last requests (byok log):")
        show_entries(entries)
        tell_damage(find_paths().journal)


async def _ask_daemon(paths: Paths, daemon: Instance) -> dict[str, Any]:
    """Return the daemon's model, settings, official service and index status.

    An error is returned as `error`.
    """
    answer: dict[str, Any] = {"model": "", "settings": {}, "official": {}}
    answer |= {"features": {}, "index": None, "error": ""}
    try:
        async with talking(daemon, paths) as ask:
            answer |= await ask(Service.DAEMON, {})
            answer["official"] = await ask(Service.OFFICIAL, {})
            answer["index"] = await ask(Service.INDEX_STATUS, {})
    except ByokError as error:
        answer["error"] = error.sentence
    return answer


def _show(answer: dict[str, Any]) -> None:
    if not answer["running"]:
        say(not_running().sentence)
        return
    since = datetime.fromtimestamp(answer["started"]).astimezone()
    say(
        f"byok is running: pid {answer['pid']}, http://127.0.0.1:{answer['port']}, "
        f"since {since:%Y-%m-%d %H:%M}"
    )
    if answer["model"]:
        say(f"model: {answer['model']}")
    _show_settings(answer["settings"])
    _show_features(answer["features"])
    if answer["official"].get("base_url"):
        _show_official(answer["official"])
    if answer["error"]:
        say(f"index: {answer['error']}")
    elif answer["index"]["workspaces"] or answer["index"]["totals"].get("blobs"):
        show_index(answer["index"])
    else:
        say("index: nothing is indexed (byok index add DIR)")
        show_remote(answer["index"].get("remote"))
    say("dashboard: byok dashboard opens it in your browser")


def _show_features(status: dict[str, list[dict[str, Any]]]) -> None:
    from byok.features.status import write_rows

    for row in ROWS:
        for line in write_rows(status.get(row.name, ())):
            name = translate(row.label or row.name)
            say(f"{name}{translate(': ')}{translate(line)}")


def _show_settings(answer: dict[str, Any]) -> None:
    if answer.get("error"):
        say(f"settings: the previous ones are still in use. {answer['error']}")
    if answer.get("restart"):
        keys = ", ".join(answer["restart"])
        say(f"settings: these changed and need a restart (byok restart): {keys}")


def _show_official(answer: dict[str, Any]) -> None:
    groups = [group for group, place in answer["groups"].items() if place == "official"]
    use = f"used for {', '.join(groups)}" if groups else "not used"
    say(f"official service: {answer['base_url']}, {use}")
    for subject, trouble in answer["troubles"].items():
        say(f"  {subject}: {trouble}")
