"""byok connect: print the settings that point a client at the running daemon."""

from enum import StrEnum
from typing import Annotated

import typer

from byok.cli.ask import refuse_if_silent
from byok.cli.command_context import JsonOption, load
from byok.cli.output import say, say_json, tell
from byok.platform.paths import find_paths


class ClientKind(StrEnum):
    """The clients that byok prints settings for."""

    VSCODE = "vscode"
    JETBRAINS = "jetbrains"
    CLI = "cli"
    SDK = "sdk"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="connect")(connect)


def connect(
    client: Annotated[
        ClientKind, typer.Argument(help="Which client to point at byok.")
    ],
    json: JsonOption = False,
) -> None:
    """Print the settings or variables that point a client at the running daemon."""
    from byok.daemon.token import read_token
    from byok.daemon_client.find import find_daemon

    paths = find_paths()
    daemon = find_daemon(paths)
    if daemon is None:
        refuse_if_silent(paths)
    port = daemon.port if daemon else load()[0].server.port
    url, token = f"http://127.0.0.1:{port}", read_token(paths.token)
    if daemon is None:
        tell("byok is not running; these settings are for its configured port.")
    values = _VALUES[client](url, token)
    if json:
        say_json(values)
        return
    tell(_WHERE[client])
    if client in (ClientKind.CLI, ClientKind.SDK):
        for name, value in values.items():
            say(f"export {name}={value}")
    else:
        say_json(values)


def _editor(url: str, token: str) -> dict[str, str]:
    return {
        "augment.advanced.completionURL": url,
        "augment.advanced.apiToken": token,
    }


def _environment(url: str, token: str) -> dict[str, str]:
    return {"AUGMENT_API_URL": url, "AUGMENT_API_TOKEN": token}


def _jetbrains(url: str, token: str) -> dict[str, str]:
    return {"completionURL": url, "apiToken": token}


_VALUES = {
    ClientKind.VSCODE: _editor,
    ClientKind.JETBRAINS: _jetbrains,
    ClientKind.CLI: _environment,
    ClientKind.SDK: _environment,
}
_WHERE = {
    ClientKind.VSCODE: "Add to settings.json (Preferences: Open User Settings (JSON)):",
    ClientKind.JETBRAINS: (
        "Enter both in the plugin's settings. Its documentation does not name the "
        "fields, and not every version was tested:"
    ),
    ClientKind.CLI: "Set in the shell that runs the CLI:",
    ClientKind.SDK: "Set for the program, or pass as api_url and api_key:",
}
