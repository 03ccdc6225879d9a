"""byok connect and byok disconnect: point a client at the daemon, or undo that."""

import shlex
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from byok.cli.command_context import JsonOption
from byok.cli.completion import complete_model
from byok.cli.control import require_answer, require_daemon
from byok.cli.terminal import (
    Asker,
    YesOption,
    find_asker,
    say,
    say_json,
    say_text,
    show_progress,
    tell,
)
from byok.clients.connection import (
    DaemonAddress,
    open_connector,
    settings_for,
)
from byok.clients.document import put_all
from byok.clients.locations import (
    WRITABLE,
    ClientKind,
    FileLocation,
    RunPlace,
    advise,
    find_location,
    find_machine,
    find_mcp_location,
    find_windows_files,
)
from byok.clients.settings_file import SettingsFile, is_open_to_others
from byok.clients.settings_text import preview_change, write_path
from byok.core.daemon.token import read_token
from byok.core.errors import ConfigError, DaemonGone
from byok.core.escapes import shell_word
from byok.core.platform.paths import find_paths
from byok.core.redact import Redactor
from byok.core.routing import Service

_AUGMENT = ("AUGMENT_API_URL", "AUGMENT_API_TOKEN")
_VARIABLES = {
    ClientKind.CLI: _AUGMENT,
    ClientKind.SDK: _AUGMENT,
    ClientKind.CLAUDE_CODE: ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"),
}
ClientArgument = Annotated[ClientKind, typer.Argument(help="Which client.")]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", help="Its settings file, if elsewhere.", metavar="PATH"),
]
ProfileOption = Annotated[
    str, typer.Option("--profile", help="Id of a profile of VS Code.", metavar="ID")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the change without writing.")
]
_SYNC = (  # code.visualstudio.com/docs/configure/settings-sync
    "If Settings Sync is on, it copies both settings to your other machines: name them "
    "in settingsSync.ignoredSettings to keep them here."
)
_MCP_SYNC = (
    "The file has byok's token: leave MCP servers out of Settings Sync, if that is on."
)
_MCP_AWAY = (
    "Windows that are connected to this machine from another one have a file of their "
    'own: "MCP: Open Remote User Configuration" opens it; name it with --file.'
)
_OTHER_WAYS = (
    "Or name another settings file: --file PATH. Or make the change by hand: "
    "byok connect prints it without --write."
)
_NO_FILE = {
    ClientKind.JETBRAINS: "the plugin's documentation names no file for it.",
    ClientKind.CLI: (
        "the CLI reads variables, and its session file belongs to its own login."
    ),
    ClientKind.SDK: "the SDKs read variables, or get the values from your program.",
    ClientKind.CLAUDE_CODE: "it reads variables; --mcp writes code search alone.",
}
_EDITOR_INSTRUCTION = "Add to settings.json (Preferences: Open User Settings (JSON)):"
_INSTRUCTIONS = {
    ClientKind.JETBRAINS: (
        "Enter both in the plugin's settings. Its documentation does not name the "
        "fields, and not every version was tested:"
    ),
    ClientKind.CLI: "Set in the shell that runs the CLI:",
    ClientKind.CLAUDE_CODE: "Set in the shell that runs Claude Code:",
    ClientKind.SDK: "Set for the program, or pass as api_url and api_key:",
    ClientKind.CODEX: "Add to {}, the first lines above all tables:",
    ClientKind.CONTINUE: "Add the model to {}:",
}


class Approval(NamedTuple):
    """Who is asked before a change, with which default; or only show it (`dry_run`)."""

    asker: Asker
    default: bool
    dry_run: bool = False


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
            help="The model for codex, opencode, aider, continue.",
            metavar="M",
            autocompletion=complete_model,
        ),
    ] = "",
    mcp: Annotated[
        bool,
        typer.Option(
            "--mcp", help="Give the client byok's code search, as an MCP server."
        ),
    ] = False,
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
    if mcp and not client.facts.has_mcp:
        raise ConfigError(
            f"byok knows no file of MCP servers of {client.facts.name}.",
            hint="docs/search.md tells what to enter by hand.",
        )
    words = ["byok", "connect", client.value, *(["--mcp"] if mcp else [])]
    try:
        address = _find_address(client, model, start=start, mcp=mcp)
    except DaemonGone as error:
        again = shlex.join([*words, *(["--write"] if write else []), "--start"])
        raise error.with_hint(
            f"Start it: byok serve. Or let this do it: {again}"
        ) from None
    if not (write or dry_run):
        _print(client, address, json=json, mcp=mcp)
        return
    if client not in WRITABLE and not mcp:
        tell(f"byok cannot write this for you: {_NO_FILE[client]}")
        _print(client, address, json=json)
        raise typer.Exit(1)
    find = find_mcp_location if mcp else find_location
    location = FileLocation(file) if file else find(client, find_machine(), profile)
    command = write_command(*words, "--write", file=file, profile=profile, model=model)
    approval = Approval(find_asker(f"{command} --yes", yes=yes), yes, dry_run)
    is_done = _write(client, address, location, approval, mcp=mcp)
    if not (is_done or dry_run):
        raise typer.Exit(1)
    if not mcp:
        _advise(client, address, None if file else location.is_remote)
    elif client.is_editor:
        tell(_MCP_SYNC)
        if find_machine().place is not RunPlace.DESKTOP and not file:
            tell(_MCP_AWAY)


def offer_connection(client: ClientKind, asker: Asker) -> bool:
    """Show the change of a client's settings, ask, and make it; return whether it was.

    Raises:
        ByokError: there is no daemon, or the settings cannot be changed.
    """
    address = _find_address(client)
    location = find_location(client, find_machine())
    is_done = _write(client, address, location, Approval(asker, default=True))
    if is_done:
        _advise(client, address, location.is_remote)
    return is_done


def _find_address(
    client: ClientKind, model: str = "", *, start: bool = False, mcp: bool = False
) -> DaemonAddress:
    """Return the daemon's address, its token, and the model for the client.

    Raises:
        ByokError: no daemon passed the challenge; no other program may get the token.
    """
    paths = find_paths()
    daemon = require_daemon(paths, start=start)
    address = DaemonAddress(daemon.url, read_token(paths.token), paths.token, model)
    if mcp or not client.facts.names_model:
        return address
    with show_progress("asking the upstreams for their models"):
        address = address.with_model(require_answer(Service.CATALOG), model)
    if not address.model:
        raise ConfigError(
            "This client names its model in its settings, and there is no default yet.",
            hint="Start byok first (byok serve), or name a model: --model M. "
            "byok models lists them.",
        )
    return address


def _write(
    client: ClientKind,
    address: DaemonAddress,
    location: FileLocation,
    approval: Approval,
    *,
    mcp: bool = False,
) -> bool:
    """Point a client at byok, or show the change; return whether it points there."""
    connector, redactor = open_connector(find_paths()), Redactor()
    redactor.add(address.token)
    try:
        change = connector.plan_connect(client, location.path, address, mcp=mcp)
    except ConfigError as error:
        raise error.with_hint(f"{error.hint} {_OTHER_WAYS}".lstrip()) from None
    path = change.file.path
    if not change.is_needed:
        say(f"{path} points at byok already.")
        return True
    if not approve_change(change.file, change.after, redactor, approval):
        return False
    connector.carry_out(change)
    say(f"{path} points at byok. To undo it: byok disconnect {client}")
    if client.is_editor:
        tell("Then reload the editor's window.")
    if is_open_to_others(path) and address.token.encode() in (change.after or b""):
        tell(
            "Other users of this machine may read this file, which has byok's token "
            f"now. Unless its folder keeps them out: chmod 600 {shell_word(path)}"
        )
    return True


def _advise(client: ClientKind, address: DaemonAddress, is_remote: bool | None) -> None:
    """Print on which machine the settings belong, if there are several."""
    if client.is_editor and not is_remote:
        tell(_SYNC)
    port = int(address.url.rpartition(":")[2])
    files = find_windows_files(client) if client.is_editor else []
    run_place = find_machine().place
    for line in advise(
        client, run_place, port, is_remote_file=is_remote, windows_files=files
    ):
        tell(line)


def _print(
    client: ClientKind, address: DaemonAddress, *, json: bool, mcp: bool = False
) -> None:
    is_object = client.is_editor and not mcp
    instruction = "Add to {}:" if mcp else _INSTRUCTIONS.get(client, "Add to {}:")
    if mcp or client in WRITABLE:
        windows = open_connector(find_paths()).windows
        settings = settings_for(client, address, windows=windows, mcp=mcp)
        text = put_all("", settings, client.text_format)
        find = find_mcp_location if mcp else find_location
        instruction = instruction.format(find(client, find_machine()).path)
        values: dict[str, Any] = {write_path(path): value for path, value in settings}
    elif client is ClientKind.JETBRAINS:
        values, text = {"completionURL": address.url, "apiToken": address.token}, ""
    else:
        names = _VARIABLES[client]
        values = dict(zip(names, (address.url, address.token), strict=True))
        text = "".join(f"export {name}={value}\n" for name, value in values.items())
    if json:
        say_json(values)
        return
    tell(_EDITOR_INSTRUCTION if is_object else instruction)
    if text and not is_object:
        say_text(text.rstrip("\n"))
    else:
        say_json(values)


def disconnect(
    client: ClientArgument,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    profile: ProfileOption = "",
) -> None:
    """Undo `byok connect --write`: restore the client's previous settings files.

    If one was edited since, only byok's settings are removed, and their previous values
    restored.
    """
    if client.facts.format is None:
        raise ConfigError(
            f"byok writes no file for {client.facts.name}.",
            hint="Take the settings out where you entered them.",
        )
    words = ("byok", "disconnect", client.value)
    command = write_command(*words, file=file, profile=profile)
    approval = Approval(find_asker(f"{command} --yes", yes=yes), yes, dry_run)
    for path in [file] if file else _find_changed_files(client, profile):
        _undo_connection(client, path, approval)


def _undo_connection(client: ClientKind, path: Path, approval: Approval) -> None:
    connector, redactor = open_connector(find_paths()), Redactor()
    if (token := find_paths().token).exists():
        redactor.add(read_token(token))
    change = connector.plan_disconnect(client, path)
    path = change.file.path
    for setting in change.changed:
        tell(f"{write_path(setting)} was changed since; it stays as it is.")
    if not change.is_needed:
        if not approval.dry_run:
            connector.carry_out(change)
        say(f"There is nothing of byok's in {path}.")
        if change.file.raw is None:
            for copy in connector.backups.kept_copies(client, path):
                tell(f"The file is gone; what it was before byok is kept in {copy}")
        return
    if not change.is_exact:
        tell("The file was edited since, so only byok's settings are taken out.")
    if approve_change(change.file, change.after, redactor, approval):
        connector.carry_out(change)
        is_gone = change.after is None
        say(f"{path} was removed." if is_gone else f"{path} no longer points at byok.")
    elif not approval.dry_run:
        raise typer.Exit(1)


def _find_changed_files(client: ClientKind, profile: str) -> list[Path]:
    """Return the files at their default places that byok changed, else the only one.

    Raises:
        ConfigError: byok changed several files, and none at a default place.
    """
    machine = find_machine()
    finders = [find_location] if client in WRITABLE else []
    finders += [find_mcp_location] if client.facts.has_mcp else []
    paths = [find(client, machine, profile).path for find in finders]
    default_paths = [*dict.fromkeys(paths)]
    changed = open_connector(find_paths()).backups.list_paths(client)
    both = [path for path in default_paths if path.resolve() in changed]
    if both:
        return both
    if profile or not changed:
        return default_paths[:1]
    if len(changed) > 1:
        raise ConfigError(
            f"byok changed several files: {', '.join(map(str, changed))}.",
            hint="Name one: --file PATH",
        )
    return changed


def write_command(*words: str, **options: object) -> str:
    """Write a command of byok, with its options that have a value, for a shell."""
    pairs = [(f"--{name}", str(value)) for name, value in options.items() if value]
    return shlex.join([*words, *(word for pair in pairs for word in pair)])


def approve_change(
    file: SettingsFile, after: bytes | None, redactor: Redactor, approval: Approval
) -> bool:
    """Show the change of a file, ask, and return whether the answer was yes.

    Raises:
        ConfigError: there is no terminal to ask at.
    """
    for line in preview_change(str(file.path), file.raw, after, redactor):
        say_text(line)
    question = f"Remove {file.path}?" if after is None else f"Write {file.path}?"
    asker, default = approval.asker, approval.default
    if not approval.dry_run and asker.confirm(question, default=default):
        return True
    tell("Nothing was written.")
    return False
