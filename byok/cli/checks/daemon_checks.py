"""Checks of the daemon: its identity, its service, its port and its code index."""

import errno
import socket
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from byok import __version__
from byok.cli.checks.base import (
    CannotCheck,
    CheckContext,
    CheckResult,
    NoProof,
    doubtful,
    good,
    in_background,
    skip,
    wrong,
)
from byok.clients.service.base import ServiceState
from byok.clients.service.control import UserService, make_launch, read_file
from byok.core.chat import Json
from byok.core.daemon.challenge import verify_daemon
from byok.core.daemon.instance import Instance
from byok.core.daemon.sockets import listen
from byok.core.daemon.token import read_token
from byok.core.errors import ByokError, CannotStart, ConfigError, NotReady
from byok.core.escapes import shell_word
from byok.core.platform.paths import Paths
from byok.core.routing import Service
from byok.search.index.files.roots import OwnFolders, check_root
from byok.search.index.store.tantivy_index import check_folder
from byok.search.index.store.tantivy_index import find_damaged as find_damaged_file
from byok.search.index.store.workspaces import permanent_roots
from byok.search.index.types import Phase
from byok.storage.database import open_unchanged

_MINUTE = 60
# Commands that name the program at a port, by sys.platform.
_PORT_COMMANDS = {"linux": "ss -ltnp 'sport = :{port}'", "win32": "netstat -ano -p tcp"}
_OTHER_PORT_COMMAND = "lsof -nP -iTCP:{port} -sTCP:LISTEN"
_NO_CONSENT, _FAILED = "no_consent", "failed"
INDEX_SECONDS = 40.0
_QUICK_CHECK_SECONDS = 25.0  # a large database is checked only in part
_GLANCE_SECONDS = 5.0
_CHECK_STEPS = 100_000  # of SQLite's virtual machine, between two looks at the clock
_REBUILD = "byok index rebuild"
_RESTART = "byok restart"
if sys.platform == "linux":
    _RESTART += (
        "; if the system allows too few watches: "
        "sudo sysctl fs.inotify.max_user_watches=524288"
    )


async def check_daemon(context: CheckContext) -> CheckResult:
    """Check that a daemon runs, and proves to be this user's."""
    try:
        daemon = await context.daemon()
    except NoProof as error:
        return wrong(
            f"{error}",
            f"Try again; if it stays so, end the process whose pid is in "
            f"{context.paths.daemon}",
        )
    if daemon is None:
        return doubtful("it is not running", "byok serve")
    minutes = max(0.0, time.time() - daemon.started) / _MINUTE
    return good(f"pid {daemon.pid}, port {daemon.port}, for {minutes:,.0f} min")


async def check_daemon_version(context: CheckContext) -> CheckResult:
    """Check that the running daemon has the version of this command."""
    try:
        status = await context.ask(Service.DAEMON)
    except NotReady as error:
        return wrong(str(error), error.hint or "byok restart")
    version = str(status.get("version", ""))
    if version != __version__:
        daemon = f"the daemon is byok {version or 'of an older version'}"
        return doubtful(f"{daemon}, this command is byok {__version__}", "byok restart")
    return good(f"byok {version}, as this command")


async def check_settings_in_force(context: CheckContext) -> CheckResult:
    """Check that the daemon uses the current content of the settings file."""
    in_force = (await context.ask(Service.DAEMON)).get("settings") or {}
    if error := in_force.get("error"):
        return wrong(
            f"the daemon keeps the previous ones: {error}", "byok config check"
        )
    if keys := in_force.get("restart"):
        return doubtful(f"these wait for a restart: {', '.join(keys)}", "byok restart")
    if str(in_force.get("file", "")) != str(context.config.absolute()):
        return doubtful(
            f"the daemon uses another file: {in_force.get('file')}",
            f"byok doctor --config {in_force.get('file')}",
        )
    return good("the daemon uses the file as it is")


async def check_service(context: CheckContext) -> CheckResult:
    """Check that the service, if there is one, runs this byok and starts at login."""
    try:
        service = UserService.of_this_machine(context.paths)
    except CannotStart as error:
        return skip(str(error))
    if not await in_background(service.is_installed):
        if await in_background(service.is_for_others):
            return skip("another byok of yours, with other folders, is a service")
        return good(
            "byok is not installed as one; byok service install keeps it running"
        )
    state = await in_background(service.state)
    is_other = await in_background(lambda: _runs_another(service))
    return judge_service(state, await context.running(), is_other=is_other)


def _runs_another(service: UserService) -> bool:
    """Tell whether no file of the service names the Python that runs this command.

    Each system writes that path in its own way, so the lines that would differ with
    another Python are searched for as a whole.
    """
    launch = make_launch(service.paths, port=1)
    own_lines, other_lines = (
        {line for f in service.system.render(each) for line in f.content.splitlines()}
        for each in (launch, replace(launch, python="/"))
    )
    contents = [read_file(path) or "" for path in service.system.paths]
    installed_lines = {line for content in contents for line in content.splitlines()}
    return installed_lines.isdisjoint(own_lines - other_lines)


def judge_service(
    state: ServiceState, daemon: Instance | None, *, is_other: bool
) -> CheckResult:
    """Judge the state of the service, given the daemon that runs."""
    if is_other:
        return doubtful(
            "it starts a byok of another Python than this one", "byok service install"
        )
    if not state.enabled:
        return doubtful("it does not start at login", "byok service install")
    if daemon and not state.is_of(daemon):
        finding = "the daemon that runs was started by hand"
        if state.pid:
            finding = "it runs, and so does a daemon that was started by hand"
        return doubtful(finding, "byok stop, then byok service start")
    if state.running or state.waits:
        return good("it runs" if state.running else "the first request starts it")
    return doubtful(
        f"it does not run: {state.detail}", "byok service start; byok service logs"
    )


async def check_port(context: CheckContext) -> CheckResult:
    """Check that byok listens, or could listen, on both loopback addresses."""
    if daemon := await context.daemon():
        try:
            port = (await context.settings()).server.port
        except CannotCheck:
            port = daemon.port
        return await in_background(lambda: _check_answers(context, daemon, port))
    port = (await context.settings()).server.port
    if not port:
        return skip("server.port is 0: any free port is taken at the start")
    return await in_background(lambda: _try_to_listen(context, port))


def _check_answers(context: CheckContext, daemon: Instance, port: int) -> CheckResult:
    """Check that the daemon answers on every loopback address of this machine."""
    hosts = []
    for sock in listen(0):
        hosts.append(str(sock.getsockname()[0]))
        sock.close()
    secret = read_token(context.paths.owner_secret)
    for host in hosts:
        if not verify_daemon(daemon, secret, host):
            return wrong(
                f"port {daemon.port} on {host} is taken by another program",
                f"End it ({_port_command(daemon.port)} names it). If clients were "
                "pointed at this port, it may have their token: byok token rotate",
            )
    finding = f"byok answers at port {daemon.port} on {' and '.join(hosts)}"
    return good(
        finding if port == daemon.port else f"{finding}, the settings say {port}"
    )


def _try_to_listen(context: CheckContext, port: int) -> CheckResult:
    """Check that the port is free: listen on it, and close it at once."""
    try:
        for sock in listen(port):
            sock.close()
    except CannotStart as error:
        if _waits_for_request(context):
            return good(
                f"the system listens at port {port}: the first request starts byok"
            )
        return wrong(str(error), cure_for_port(error, port))
    return good(f"port {port} is free")


def cure_for_port(error: CannotStart, port: int) -> str:
    """Return an error's hint; if the port is in use, with a command to find by whom."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE:
        return f"{error.hint} ({_port_command(port)} names the program)"
    return error.hint


def _waits_for_request(context: CheckContext) -> bool:
    """Tell whether the system listens on the port and starts byok at a request."""
    try:
        service = UserService.of_this_machine(context.paths)
        return service.is_installed() and service.state().waits
    except ByokError:
        return False


def _port_command(port: int) -> str:
    return _PORT_COMMANDS.get(sys.platform, _OTHER_PORT_COMMAND).format(port=port)


def check_localhost(context: CheckContext) -> CheckResult:
    """Check that the name localhost, which clients may use, means this machine."""
    try:
        rows = socket.getaddrinfo("localhost", None)
    except OSError:
        return doubtful(
            "the name localhost has no address",
            "Add it to the hosts file: 127.0.0.1 localhost",
        )
    addresses = [*dict.fromkeys(str(row[4][0]) for row in rows)]
    if others := [a for a in addresses if a != "::1" and not a.startswith("127.")]:
        return wrong(
            f"localhost means {others[0]}: what clients send there is not for byok",
            "Correct localhost in the hosts file: 127.0.0.1 localhost",
        )
    return good(" and ".join(addresses))


async def check_official(context: CheckContext) -> CheckResult:
    """Check that the daemon's last requests to the official service succeeded."""
    answer = await context.ask(Service.OFFICIAL)
    troubles = answer.get("troubles") or {}
    for subject, trouble in troubles.items():
        return doubtful(f"{subject}: {trouble}", "byok keys test official")
    groups = [g for g, p in (answer.get("groups") or {}).items() if p == "official"]
    return good(f"used for {', '.join(groups)}" if groups else "not used")


async def check_search_server(context: CheckContext) -> CheckResult:
    """Check that the user allowed the search server, and that it answered last time."""
    status = (await context.ask(Service.INDEX_STATUS)).get("remote") or {}
    if not status.get("enabled"):
        return doubtful("it is not enabled, so nothing is sent", "byok remote enable")
    if note := status.get("note"):
        return doubtful(f"it is left out: {note}", "ask who runs it")
    return good(f"{status['asked']:,} questions, {status['answered']:,} answered")


async def check_vectors(context: CheckContext) -> CheckResult:
    """Check that the vectors are enabled and computed."""
    answer = await context.ask(Service.EMBED_STATUS)
    state, error = str(answer.get("state", "")), str(answer.get("error", ""))
    if state == _NO_CONSENT:
        return doubtful("they are not enabled, so nothing is sent", "byok embed enable")
    if state == _FAILED or error:
        judge = wrong if state == _FAILED else doubtful
        return judge(error or "they cannot be made", "byok embed status says more")
    embedded, total = answer.get("embedded", 0), answer.get("chunks", 0)
    return good(f"{state}, {embedded:,} of {total:,} chunks")


async def check_index(context: CheckContext) -> CheckResult:
    """Check that the index opens, and that its files are not damaged."""
    paths = context.paths
    status = await context.ask_if_running(Service.INDEX_STATUS)
    if status and status.get("error"):
        return wrong(str(status["error"]), f"If it stays so: {_REBUILD}")
    if not paths.database.exists():
        return good("nothing is indexed yet (byok index add DIR)")
    damage = await in_background(
        lambda: find_damage(paths.database, _QUICK_CHECK_SECONDS)
    )
    if damage:
        name = paths.database.name
        return wrong(
            f"the database {paths.database} is damaged: {damage}",
            f"byok stop; move {name} and {name}-wal away; byok serve; byok index add "
            "DIR for each folder",
        )
    if status is None:
        problem = await in_background(lambda: _check_files(paths))
        return problem or good(f"{paths.database} is whole")
    chunks = (status.get("totals") or {}).get("chunks", 0)
    return good(f"{status.get('state')}, {chunks:,} chunks; its database is whole")


def _check_files(paths: Paths) -> CheckResult | None:
    """Check the files of the lexical index, which must not change meanwhile."""
    try:
        check_folder(paths.index)
    except ConfigError as error:
        return wrong(str(error), error.hint)
    if paths.index.is_dir() and (name := find_damaged_file(paths.index)):
        finding = f"{paths.index / name} is damaged"
        return doubtful(finding, "byok serve: it sets it aside and fills it again")
    return None


async def workspaces(context: CheckContext) -> Sequence[str]:
    """Return the indexed folders: those of the daemon if one runs."""
    if status := await context.ask_if_running(Service.INDEX_STATUS):
        return [str(space["root"]) for space in status.get("workspaces", ())]
    declared = (await context.settings()).context.workspaces
    return await in_background(lambda: _list_roots(context.paths, declared))


def _list_roots(paths: Paths, in_settings: Sequence[str]) -> list[str]:
    """Return the folders of the settings and those added by `byok index add`."""
    roots = [str(Path(root).expanduser()) for root in in_settings]
    if paths.database.exists() and not find_damage(paths.database, _GLANCE_SECONDS):
        with closing(open_unchanged(paths.database)) as db:
            roots += map(str, permanent_roots(db))
    return [*dict.fromkeys(roots)]


async def check_workspace(context: CheckContext, root: str) -> CheckResult:
    """Check that a folder is indexed completely; count its skipped files."""
    status = await context.ask_if_running(Service.INDEX_STATUS) or {}
    row: Json = next((w for w in status.get("workspaces", ()) if w["root"] == root), {})
    try:
        own_folders = OwnFolders(context.paths.folders)
        await in_background(lambda: check_root(Path(root), own_folders))
    except ConfigError as error:
        word = shell_word(root)
        cure = f"byok index remove {word}, or take it out of context.workspaces"
        return doubtful(str(error), error.hint or cure)
    if row.get("phase") == Phase.TOO_LARGE:
        return doubtful(
            str(row.get("note")), "Raise context.max_files, or ignore folders in it"
        )
    if note := row.get("note"):
        return doubtful(str(note), _RESTART)
    counts = await in_background(lambda: count_files(context.paths.database, root))
    if not counts:
        return doubtful(
            "nothing of it is indexed yet", "byok serve, then wait a little"
        )
    finding = f"{counts.pop('', 0):,} files indexed"
    if counts:
        reasons = (f"{count:,} {reason}" for reason, count in sorted(counts.items()))
        finding = f"{finding}, skipped: {', '.join(reasons)}"
    if row and row.get("phase") != Phase.COMPLETE:
        finding += f"; being indexed, {row.get('percentage', 0):.0f} %"
    return good(finding)


def find_damage(file: Path, seconds: float) -> str:
    """Return the damage of a database, "" if none was found in the time."""
    deadline = time.monotonic() + seconds
    try:
        with closing(open_unchanged(file)) as db:
            db.set_progress_handler(lambda: time.monotonic() > deadline, _CHECK_STEPS)
            row = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        return "" if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if row == ("ok",) else str(row[0]).partition("\n")[0]


def count_files(file: Path, root: str) -> dict[str, int]:
    """Count a workspace's files by the reason they were skipped for, "" if indexed."""
    if not file.exists():
        return {}
    sql = (
        "SELECT coalesce(b.reason, f.reason, ''), count(*) FROM file f "
        "JOIN workspace w ON w.id = f.workspace_id "
        "LEFT JOIN blob b ON b.id = f.blob_id WHERE w.root = ? GROUP BY 1"
    )
    with closing(open_unchanged(file)) as db:
        return dict(db.execute(sql, (root,)).fetchall())
