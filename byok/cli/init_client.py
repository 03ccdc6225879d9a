"""byok init: point an editor at byok, and wait for its first request."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from byok.cli.ask import ask_daemon
from byok.cli.asker import Asker
from byok.cli.client_files import find_machine, open_connector
from byok.cli.output import fail, say, tell
from byok.client_settings.client_kind import EDITORS_LIKE_VSCODE, ClientKind
from byok.errors import ByokError, CannotStart, ConfigError
from byok.platform.paths import Paths
from byok.routing import Service

if TYPE_CHECKING:
    from byok.journal.entry import JournalEntry

_MOST_TROUBLES = 10
_OTHERS = "Other clients: byok connect jetbrains | cli | sdk | codex | opencode ..."


def offer_editors(paths: Paths, url: str, asker: Asker) -> bool:
    """Offer to point each editor that is installed at byok; return whether one does."""
    if not asker.is_person:
        tell("Point your editor at it: byok connect vscode --write")
        return False
    from byok.cli.connect import offer_connection

    is_connected = False
    for client, is_needed in _find_editors(paths, url):
        if not is_needed:
            say(f"{client.readable_name} points at byok already.")
            is_connected = True
            continue
        tell(f"{client.readable_name} would be pointed at byok so:")
        try:
            is_connected = offer_connection(client, asker) or is_connected
        except ByokError as error:
            fail(error)
    tell(_OTHERS)
    return is_connected


def _find_editors(paths: Paths, url: str) -> "Iterable[tuple[ClientKind, bool]]":
    """Give the editors that are there, and whether they have to be pointed at byok."""
    from byok.client_settings.locations import find_location
    from byok.client_settings.wanted_settings import DaemonAddress
    from byok.daemon.token import read_token

    connector = open_connector(paths)
    address = DaemonAddress(url, read_token(paths.token), paths.token, "")
    for client in sorted(EDITORS_LIKE_VSCODE):
        path = find_location(client, find_machine()).path
        if not path.parent.is_dir():
            continue
        try:
            change = connector.plan_connect(client, path, address)
        except ConfigError as error:
            fail(error)
            continue
        yield client, change.is_needed


def last_request(paths: Paths) -> int:
    """Return the number of the last request there was, 0 if that cannot be read."""
    from byok.journal.reading import highest_number

    try:
        return highest_number(paths.journal)
    except CannotStart:  # the daemon sets a damaged journal aside, and begins anew
        return 0


def wait_for_first(paths: Paths, after: int, keep_days: int) -> None:
    """Wait until a client was answered, and say which; Ctrl-C ends the waiting."""
    from byok.setup.first_request import wait_for_clients

    if not keep_days:
        tell("The journal is off, so byok cannot tell when your editor comes.")
        return
    try:
        tell("Reload your editor's window.")
        tell("Waiting for its first request (Ctrl-C ends it)")
        _tell_first(wait_for_clients(paths.journal, after))
    except CannotStart as error:
        fail(error)
    except KeyboardInterrupt:
        tell("byok goes on without waiting. byok status tells who asked it.")


def _tell_first(entries: "Iterable[JournalEntry]") -> None:
    """Say which client was answered first, and before that who was not."""
    from byok.setup.first_request import describe_client

    told = set[str]()
    for entry in entries:
        who = describe_client(entry.client)
        if entry.outcome == "ok":
            say(f"{who} is connected, model {_model_of(entry)}.")
            return
        trouble = f"{who} asked, and it failed: {entry.error or entry.outcome}."
        if trouble not in told and len(told) < _MOST_TROUBLES:
            told.add(trouble)
            tell(f"{trouble} See: byok log --errors")


def _model_of(entry: "JournalEntry") -> str:
    """Return the model that answered; that of the daemon where none was asked."""
    if entry.model:
        return f"{entry.upstream}:{entry.model}"
    answer = ask_daemon(Service.DAEMON) or {}
    return str(answer.get("model", "")).removeprefix("byok:")
