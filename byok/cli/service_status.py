"""byok service status: what the system says of it, and whether byok answers."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from byok.cli.ask import ask_daemon
from byok.cli.command_context import JsonOption
from byok.cli.control import EXIT_NOT_RUNNING
from byok.cli.output import say, say_json
from byok.errors import ByokError
from byok.platform.paths import find_paths
from byok.routing import Service

if TYPE_CHECKING:
    from byok.daemon.instance import Instance
    from byok.service.base import ServiceState
    from byok.service.control import UserService


def status(json: JsonOption = False) -> None:
    """Show whether the service is installed and runs, and whether byok answers.

    The exit code is 0 if byok answers as the service, else 3.
    """
    from byok.service.control import UserService

    facts = _facts(UserService.of_this_machine(find_paths()))
    if json:
        say_json(facts)
    else:
        _show_facts(facts)
    if not facts["answers"] or facts["by_hand"]:
        raise typer.Exit(EXIT_NOT_RUNNING)


def is_of(state: "ServiceState", daemon: "Instance") -> bool:
    """Tell whether a daemon is the one of the service in this state."""
    return state.pid == daemon.pid if state.pid else state.running


def _facts(service: "UserService") -> dict[str, Any]:
    """Return what is to be told of the service and the daemon."""
    from byok.daemon_client.find import find_daemon

    facts: dict[str, Any] = {
        "system": service.system.title,
        "installed": service.is_installed(),
        "files": [str(path) for path in service.system.paths],
        "enabled": False,
        "running": False,
        "state": "",
        "waits": False,
        "error": "",
    }
    daemon = find_daemon(service.paths, 0)
    by_hand = daemon is not None
    if facts["installed"]:
        try:
            state = service.state()
        except ByokError as error:
            facts["error"] = error.sentence
        else:
            facts |= {"enabled": state.enabled, "running": state.running}
            facts |= {"state": state.detail, "waits": state.waits}
            by_hand = daemon is not None and not is_of(state, daemon)
    facts |= {"answers": daemon is not None, "by_hand": by_hand}
    if daemon is not None:
        facts |= {"pid": daemon.pid, "port": daemon.port, "since": daemon.started}
        facts["version"] = _version()
    return facts


def _version() -> str:
    try:
        return str((ask_daemon(Service.DAEMON) or {}).get("version", ""))
    except ByokError as error:
        return f"unknown: {error}"


def _show_facts(facts: dict[str, Any]) -> None:
    if facts["installed"]:
        enabled = "starts at login" if facts["enabled"] else "does not start at login"
        detail = f", {facts['state']}" if facts["state"] else ""
        say(f"service: installed in {facts['system']}, {enabled}{detail}")
    else:
        say(f"service: not installed in {facts['system']} (byok service install)")
    if facts["error"]:
        say(f"  {facts['error']}")
    if not facts["answers"]:
        if facts["state"].startswith("failed"):
            say("byok does not start. See why: byok config check, byok service logs")
        elif not facts["installed"]:
            say("byok does not run. Start it: byok serve")
        elif facts["waits"]:
            say("byok does not run; the next request starts it.")
        else:
            say("byok does not answer. Start it: byok service start")
        return
    since = datetime.fromtimestamp(facts["since"]).astimezone()
    by_hand = ", started by hand and not as the service" if facts["by_hand"] else ""
    say(
        f"byok {facts['version']} answers: pid {facts['pid']}, "
        f"http://127.0.0.1:{facts['port']}, since {since:%Y-%m-%d %H:%M}{by_hand}"
    )
