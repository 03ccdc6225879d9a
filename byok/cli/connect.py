"""byok connect: point a client at the running daemon, or print how."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from byok.cli.ask import ask_daemon
from byok.cli.asker import Asker
from byok.cli.client_files import (
    Answer,
    ClientArgument,
    DryRunOption,
    FileOption,
    ProfileOption,
    find_machine,
    make_change,
    open_connector,
    write_command,
)
from byok.cli.command_context import JsonOption, load
from byok.cli.confirm import YesOption
from byok.cli.output import say, say_json, say_text, tell
from byok.client_settings.client_kind import ClientKind
from byok.errors import ConfigError, DaemonGone
from byok.escapes import shell_word
from byok.platform.paths import Paths, find_paths
from byok.routing import Service

if TYPE_CHECKING:
    from byok.client_settings.locations import FileLocation
    from byok.client_settings.wanted_settings import DaemonAddress

_VARIABLES = (ClientKind.CLI, ClientKind.SDK)


def connect(
    client: ClientArgument,
    write: Annotated[
        bool, typer.Option("--write", help="Write into the client's settings file.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    profile: ProfileOption = "",
    model: Annotated[
        str,
        typer.Option(
            help="The model for codex, opencode, aider, continue.", metavar="M"
        ),
    ] = "",
    start: Annotated[
        bool,
        typer.Option(
            "--start", help="Start byok in the background if it is not running."
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print the settings or variables that point a client at the running daemon.

    --write shows the change, asks, and writes it to the client's settings file.
    Comments and all other settings stay. `byok disconnect` undoes it, byte for byte.
    """
    from byok.client_settings.locations import FileLocation, find_location
    from byok.client_settings.wanted_settings import FORMATS

    address = _find_address(find_paths(), client, model, start=start)
    if not (write or dry_run):
        _print(client, address, json=json)
        return
    if client not in FORMATS:
        tell(f"byok cannot write this for you: {_NO_FILE[client]}")
        _print(client, address, json=json)
        raise typer.Exit(1)
    found = (
        FileLocation(file) if file else find_location(client, find_machine(), profile)
    )
    words = ("byok", "connect", client.value, "--write")
    command = write_command(*words, file=file, profile=profile, model=model)
    is_done = _write(client, address, found, Answer(yes, dry_run, command))
    if not (is_done or dry_run):
        raise typer.Exit(1)
    _advise(client, address, None if file else found.is_remote)


def offer_connection(client: ClientKind, asker: Asker) -> bool:
    """Show how a client is pointed at byok, ask, and do it; return whether it was done.

    Raises:
        ByokError: there is no daemon, or the settings cannot be changed.
    """
    from byok.client_settings.locations import find_location

    address = _find_address(find_paths(), client, "", start=False)
    found = find_location(client, find_machine(), "")
    command = f"byok connect {client.value} --write"
    is_done = _write(client, address, found, Answer(False, False, command, asker))
    if is_done:
        _advise(client, address, found.is_remote)
    return is_done


def _find_address(
    paths: Paths, client: ClientKind, model: str, *, start: bool
) -> "DaemonAddress":
    """Return where the daemon answers, and the token that it takes.

    Raises:
        ByokError: no daemon has proved itself; the token is for nobody else.
    """
    from byok.cli.ensure_service import require_daemon
    from byok.client_settings.wanted_settings import NEEDS_MODEL, DaemonAddress
    from byok.daemon.token import read_token

    try:
        daemon = require_daemon(paths, start=start)
    except DaemonGone as error:
        words = f"byok connect {client.value} --start"
        raise error.with_hint(
            f"Start it: byok serve. Or let this do it: {words}"
        ) from None
    if client in NEEDS_MODEL and not model:
        model = _find_model()
    url = f"http://127.0.0.1:{daemon.port}"
    return DaemonAddress(url, read_token(paths.token), paths.token, model)


def _find_model() -> str:
    """Return the default model of the daemon, or of the settings."""
    answer = ask_daemon(Service.CATALOG)
    model = answer["default"] if answer else load()[0].routing.default
    if not model:
        raise ConfigError(
            "This client names its model in its settings, and there is no default yet.",
            hint="Start byok first (byok serve), or name a model: --model M. "
            "byok models lists them.",
        )
    return str(model)


def _write(
    client: ClientKind,
    address: "DaemonAddress",
    found: "FileLocation",
    answer: Answer,
) -> bool:
    """Point a client at byok, or show how; return whether it points there now."""
    from byok.client_settings.settings_file import is_open_to_others
    from byok.redact import Redactor

    connector, redactor = open_connector(), Redactor()
    redactor.add(address.token)
    change = connector.plan_connect(client, found.path, address)
    path = change.file.path
    if not change.is_needed:
        say(f"{path} points at byok already.")
        return True
    if not make_change(connector, change, redactor, answer):
        return False
    say(f"{path} points at byok. To undo it: byok disconnect {client}")
    if client.is_editor:
        tell("Then reload the editor's window.")
    if is_open_to_others(path) and address.token.encode() in (change.after or b""):
        tell(
            "Other users of this machine may read this file, which has byok's token "
            f"now. Unless its folder keeps them out: chmod 600 {shell_word(path)}"
        )
    return True


def _advise(
    client: ClientKind, address: "DaemonAddress", is_remote: bool | None
) -> None:
    """Say on which side the settings belong, if there is more than one."""
    from byok.client_settings.locations import find_windows_files
    from byok.client_settings.run_place import advise

    if client.is_editor and not is_remote:
        tell(_SYNC)
    port = int(address.url.rpartition(":")[2])
    files = find_windows_files(client) if client.is_editor else []
    place = find_machine().place
    for line in advise(
        client, place, port, is_remote_file=is_remote, windows_files=files
    ):
        tell(line)


def _print(client: ClientKind, address: "DaemonAddress", *, json: bool) -> None:
    from byok.client_settings.document import put_all
    from byok.client_settings.wanted_settings import FORMATS, settings_for

    if client in FORMATS:
        settings = settings_for(client, address, windows=open_connector().windows)
        text = put_all("", settings, FORMATS[client])
        if client.is_editor:
            values: dict[str, Any] = {path[0]: value for path, value in settings}
        else:
            values = {" > ".join(path): value for path, value in settings}
    elif client is ClientKind.JETBRAINS:
        values, text = {"completionURL": address.url, "apiToken": address.token}, ""
    else:
        values = {"AUGMENT_API_URL": address.url, "AUGMENT_API_TOKEN": address.token}
        text = "".join(f"export {name}={value}\n" for name, value in values.items())
    if json:
        say_json(values)
        return
    tell(_WHERE[client])
    if text and not client.is_editor:
        say_text(text.rstrip("\n"))
    else:
        say_json(values)


_SYNC = (  # code.visualstudio.com/docs/configure/settings-sync
    "If Settings Sync is on, it copies both settings to your other machines: name them "
    "in settingsSync.ignoredSettings to keep them here."
)
_NO_FILE = {
    ClientKind.JETBRAINS: "the plugin's documentation names no file for it.",
    ClientKind.CLI: (
        "the CLI reads variables, and its session file belongs to its own login."
    ),
    ClientKind.SDK: "the SDKs read variables, or get the values from your program.",
}
_EDITOR = "Add to settings.json (Preferences: Open User Settings (JSON)):"
_WHERE = {
    ClientKind.VSCODE: _EDITOR,
    ClientKind.VSCODE_INSIDERS: _EDITOR,
    ClientKind.VSCODIUM: _EDITOR,
    ClientKind.CURSOR: _EDITOR,
    ClientKind.JETBRAINS: (
        "Enter both in the plugin's settings. Its documentation does not name the "
        "fields, and not every version was tested:"
    ),
    ClientKind.CLI: "Set in the shell that runs the CLI:",
    ClientKind.SDK: "Set for the program, or pass as api_url and api_key:",
    ClientKind.CODEX: "Add to ~/.codex/config.toml, the first two above all tables:",
    ClientKind.OPENCODE: "Add to ~/.config/opencode/opencode.json:",
    ClientKind.AIDER: "Add to ~/.aider.conf.yml:",
    ClientKind.CONTINUE: "Add the model to ~/.continue/config.yaml:",
}
