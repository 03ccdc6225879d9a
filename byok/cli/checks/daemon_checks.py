"""Checks of the daemon: that it is ours, its service, its port, its index of code."""

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
    CheckResult,
    NoProof,
    Surroundings,
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
from byok.search.index.store.workspaces import kept_roots
from byok.search.index.types import Phase
from byok.storage.database import open_unchanged

_MINUTE = 60
_FINDERS = {"linux": "ss -ltnp 'sport = :{port}'", "win32": "netstat -ano -p tcp"}
_FINDER = "lsof -nP -iTCP:{port} -sTCP:LISTEN"  # of the others
_NO_CONSENT, _FAILED = "no_consent", "failed"


async def check_daemon(around: Surroundings) -> CheckResult:
    """Check that a daemon runs, and proves to be this user's."""
    try:
        daemon = await around.daemon()
    except NoProof as error:
        return wrong(
            f"{error}",
            f"Try again; if it stays so, end the process whose pid is in "
            f"{around.paths.daemon}",
        )
    if daemon is None:
        return doubtful("it is not running", "byok serve")
    minutes = max(0.0, time.time() - daemon.started) / _MINUTE
    return good(f"pid {daemon.pid}, port {daemon.port}, for {minutes:,.0f} min")


async def check_daemon_version(around: Surroundings) -> CheckResult:
    """Check that the running daemon is of the version of this command."""
    try:
        status = await around.ask(Service.DAEMON)
    except NotReady as error:
        return wrong(str(error), error.hint or "byok restart")
    version = str(status.get("version", ""))
    if version != __version__:
        told = f"the daemon is byok {version or 'of an older version'}"
        return doubtful(f"{told}, this command is byok {__version__}", "byok restart")
    return good(f"byok {version}, as this command")


async def check_settings_in_force(around: Surroundings) -> CheckResult:
    """Check that the daemon uses the settings as the file is now."""
    told = (await around.ask(Service.DAEMON)).get("settings") or {}
    if error := told.get("error"):
        return wrong(
            f"the daemon keeps the previous ones: {error}", "byok config check"
        )
    if keys := told.get("restart"):
        return doubtful(f"these wait for a restart: {', '.join(keys)}", "byok restart")
    if str(told.get("file", "")) != str(around.config.absolute()):
        return doubtful(
            f"the daemon uses another file: {told.get('file')}",
            f"byok doctor --config {told.get('file')}",
        )
    return good("the daemon uses the file as it is")


async def check_service(around: Surroundings) -> CheckResult:
    """Check that the service, if there is one, runs this byok and starts at login."""
    try:
        service = UserService.of_this_machine(around.paths)
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
    return judge_service(state, await around.running(), is_other=is_other)


def _runs_another(service: UserService) -> bool:
    """Tell whether no file of the service names the Python that runs this command.

    Each system writes its path in another way, so whole lines are compared: those that
    would be others with another Python.
    """
    launch = make_launch(service.paths, port=1)
    own, other = (
        {line for f in service.system.render(one) for line in f.content.splitlines()}
        for one in (launch, replace(launch, python="/"))
    )
    contents = [read_file(path) or "" for path in service.system.paths]
    installed = {line for content in contents for line in content.splitlines()}
    return installed.isdisjoint(own - other)


def judge_service(
    state: ServiceState, daemon: Instance | None, *, is_other: bool
) -> CheckResult:
    """Say what a state means, beside the daemon that runs."""
    if is_other:
        return doubtful(
            "it starts a byok of another Python than this one", "byok service install"
        )
    if not state.enabled:
        return doubtful("it does not start at login", "byok service install")
    if daemon and not state.is_of(daemon):
        said = "the daemon that runs was started by hand"
        if state.pid:
            said = "it runs, and so does a daemon that was started by hand"
        return doubtful(said, "byok stop, then byok service start")
    if state.running or state.waits:
        return good("it runs" if state.running else "the first request starts it")
    return doubtful(
        f"it does not run: {state.detail}", "byok service start; byok service logs"
    )


async def check_port(around: Surroundings) -> CheckResult:
    """Check that byok has the port, or can have it, on both loopback addresses."""
    if daemon := await around.daemon():
        try:
            port = (await around.settings()).server.port
        except CannotCheck:
            port = daemon.port
        return await in_background(lambda: _check_answers(around, daemon, port))
    port = (await around.settings()).server.port
    if not port:
        return skip("server.port is 0: any free port is taken at the start")
    return await in_background(lambda: _try_to_listen(around, port))


def _check_answers(around: Surroundings, daemon: Instance, port: int) -> CheckResult:
    """Check that the daemon answers wherever clients may look for it."""
    hosts = []
    for one in listen(0):
        hosts.append(str(one.getsockname()[0]))
        one.close()
    secret = read_token(around.paths.owner_secret)
    for host in hosts:
        if not verify_daemon(daemon, secret, host):
            return wrong(
                f"port {daemon.port} on {host} is taken by another program",
                f"End it ({_finder(daemon.port)} names it). If clients were pointed at "
                "this port, it may have their token: byok token rotate",
            )
    said = f"byok answers at port {daemon.port} on {' and '.join(hosts)}"
    return good(said if port == daemon.port else f"{said}, the settings say {port}")


def _try_to_listen(around: Surroundings, port: int) -> CheckResult:
    """Listen as the daemon would, and let go at once."""
    try:
        for one in listen(port):
            one.close()
    except CannotStart as error:
        if _waits_for_request(around):
            return good(
                f"the system listens at port {port}: the first request starts byok"
            )
        return wrong(str(error), cure_for_port(error, port))
    return good(f"port {port} is free")


def cure_for_port(error: CannotStart, port: int) -> str:
    """Return what to do; where a program has the port, also how its name is found."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE:
        return f"{error.hint} ({_finder(port)} names the program)"
    return error.hint


def _waits_for_request(around: Surroundings) -> bool:
    """Tell whether the system listens for byok, which it starts when needed."""
    try:
        service = UserService.of_this_machine(around.paths)
        return service.is_installed() and service.state().waits
    except ByokError:
        return False


def _finder(port: int) -> str:
    return _FINDERS.get(sys.platform, _FINDER).format(port=port)


def check_localhost(around: Surroundings) -> CheckResult:
    """Check that the name localhost means this machine: clients may use it."""
    try:
        rows = socket.getaddrinfo("localhost", None)
    except OSError:
        return doubtful(
            "the name localhost has no address",
            "Add it to the hosts file: 127.0.0.1 localhost",
        )
    found = [*dict.fromkeys(str(row[4][0]) for row in rows)]
    if others := [h for h in found if h != "::1" and not h.startswith("127.")]:
        return wrong(
            f"localhost means {others[0]}: what clients send there is not for byok",
            "Correct localhost in the hosts file: 127.0.0.1 localhost",
        )
    return good(" and ".join(found))


async def check_official(around: Surroundings) -> CheckResult:
    """Check that nothing failed that the daemon asked of the official service."""
    answer = await around.ask(Service.OFFICIAL)
    troubles = answer.get("troubles") or {}
    for what, trouble in troubles.items():
        return doubtful(f"{what}: {trouble}", "byok keys test official")
    groups = [g for g, p in (answer.get("groups") or {}).items() if p == "official"]
    return good(f"used for {', '.join(groups)}" if groups else "not used")


async def check_search_server(around: Surroundings) -> CheckResult:
    """Check that the search server may be asked, and answered the last question."""
    status = (await around.ask(Service.INDEX_STATUS)).get("remote") or {}
    if not status.get("enabled"):
        return doubtful("it is not enabled, so nothing is sent", "byok remote enable")
    if note := status.get("note"):
        return doubtful(f"it is left out: {note}", "ask who runs it")
    return good(f"{status['asked']:,} questions, {status['answered']:,} answered")


async def check_vectors(around: Surroundings) -> CheckResult:
    """Check that the vectors that the settings want are made."""
    answer = await around.ask(Service.EMBED_STATUS)
    state, error = str(answer.get("state", "")), str(answer.get("error", ""))
    if state == _NO_CONSENT:
        return doubtful("they are not enabled, so nothing is sent", "byok embed enable")
    if state == _FAILED or error:
        judge = wrong if state == _FAILED else doubtful
        return judge(error or "they cannot be made", "byok embed status says more")
    done, whole = answer.get("embedded", 0), answer.get("chunks", 0)
    return good(f"{state}, {done:,} of {whole:,} chunks")


# Checks of the code index: its files, and each workspace; nothing is changed.


INDEX_SECONDS = 40.0
_CHECK_SECONDS = 25.0  # of a large database, as much as can be looked at by then
_GLANCE_SECONDS = 5.0
_REBUILD = "byok index rebuild"
_RESTART = "byok restart"
if sys.platform == "linux":
    _RESTART += (
        "; if the system allows too few watches: "
        "sudo sysctl fs.inotify.max_user_watches=524288"
    )
_STEPS = 100_000  # of SQLite's machine, between two looks at the clock


async def check_index(around: Surroundings) -> CheckResult:
    """Check that the index opens, and that its files are whole."""
    paths = around.paths
    status = await around.ask_if_running(Service.INDEX_STATUS)
    if status and status.get("error"):
        return wrong(str(status["error"]), f"If it stays so: {_REBUILD}")
    if not paths.database.exists():
        return good("nothing is indexed yet (byok index add DIR)")
    damage = await in_background(lambda: find_damage(paths.database, _CHECK_SECONDS))
    if damage:
        name = paths.database.name
        return wrong(
            f"the database {paths.database} is damaged: {damage}",
            f"byok stop; move {name} and {name}-wal away; byok serve; byok index add "
            "DIR for each folder",
        )
    if status is None and (trouble := await in_background(lambda: _trouble(paths))):
        return trouble
    if status is None:
        return good(f"{paths.database} is whole")
    chunks = (status.get("totals") or {}).get("chunks", 0)
    return good(f"{status.get('state')}, {chunks:,} chunks; its database is whole")


def _trouble(paths: Paths) -> CheckResult | None:
    """Look at the files of the lexical index, which a running daemon would change."""
    try:
        check_folder(paths.index)
    except ConfigError as error:
        return wrong(str(error), error.hint)
    if paths.index.is_dir() and (name := find_damaged_file(paths.index)):
        said = f"{paths.index / name} is damaged"
        return doubtful(said, "byok serve: it sets it aside and fills it again")
    return None


async def workspaces(around: Surroundings) -> Sequence[str]:
    """Return the folders that are indexed, those of the daemon if one runs."""
    if status := await around.ask_if_running(Service.INDEX_STATUS):
        return [str(space["root"]) for space in status.get("workspaces", ())]
    declared = (await around.settings()).context.workspaces
    return await in_background(lambda: _list_roots(around.paths, declared))


def _list_roots(paths: Paths, in_settings: Sequence[str]) -> list[str]:
    """Return the folders of the settings and those that were added by a command."""
    roots = [str(Path(root).expanduser()) for root in in_settings]
    if paths.database.exists() and not find_damage(paths.database, _GLANCE_SECONDS):
        with closing(open_unchanged(paths.database)) as db:
            roots += map(str, kept_roots(db))
    return [*dict.fromkeys(roots)]


async def check_workspace(around: Surroundings, root: str) -> CheckResult:
    """Check that a folder is indexed as a whole, and say what was skipped of it."""
    status = await around.ask_if_running(Service.INDEX_STATUS) or {}
    row: Json = next((w for w in status.get("workspaces", ()) if w["root"] == root), {})
    try:
        own = OwnFolders(around.paths.folders)
        await in_background(lambda: check_root(Path(root), own))
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
    known = await in_background(lambda: count_files(around.paths.database, root))
    if not known:
        return doubtful(
            "nothing of it is indexed yet", "byok serve, then wait a little"
        )
    said = f"{known.pop('', 0):,} files indexed"
    if known:
        reasons = (f"{count:,} {why}" for why, count in sorted(known.items()))
        said = f"{said}, skipped: {', '.join(reasons)}"
    if row and row.get("phase") != Phase.COMPLETE:
        said += f"; being indexed, {row.get('percentage', 0):.0f} %"
    return good(said)


def find_damage(file: Path, seconds: float) -> str:
    """Return what is wrong with a database, "" if nothing was found in time."""
    deadline = time.monotonic() + seconds
    try:
        with closing(open_unchanged(file)) as db:
            db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            row = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        return "" if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if row == ("ok",) else str(row[0]).partition("\n")[0]


def count_files(file: Path, root: str) -> dict[str, int]:
    """Count what the database knows of a workspace, by why it is skipped or ""."""
    if not file.exists():
        return {}
    sql = (
        "SELECT coalesce(b.reason, f.reason, ''), count(*) FROM file f "
        "JOIN workspace w ON w.id = f.workspace_id "
        "LEFT JOIN blob b ON b.id = f.blob_id WHERE w.root = ? GROUP BY 1"
    )
    with closing(open_unchanged(file)) as db:
        return dict(db.execute(sql, (root,)).fetchall())
