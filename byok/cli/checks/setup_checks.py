"""Checks of this machine: settings, variables, files, disk, ripgrep, clients."""

import errno
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib import request

from msgspec.structs import replace

from byok.cli.checks.base import (
    CannotCheck,
    CheckContext,
    CheckResult,
    CheckState,
    doubtful,
    good,
    in_background,
    once,
    skip,
    wrong,
)
from byok.clients.connection import (
    DaemonAddress,
    Pointer,
    largest_file,
    place_of,
    read_pointers,
)
from byok.clients.locations import (
    EDITORS,
    WRITABLE,
    ClientKind,
    ClientMachine,
    RunPlace,
    find_location,
    find_mcp_location,
)
from byok.clients.settings_text import decode_text
from byok.core.daemon.token import read_token
from byok.core.errors import ConfigError
from byok.core.escapes import escape, shell_word
from byok.core.platform.paths import Paths
from byok.core.platform.programs import clean_environment, find_program, run_program
from byok.core.prompts.own_files import check_folder as check_prompts
from byok.core.urls import is_loopback
from byok.settings import foreign_variables

_BYOK_HOSTS = ("127.0.0.1", "localhost", "::1")
_HTTP_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_LOW_SPACE = 512 * 2**20  # bytes; with less, the index stops growing
_NO_SPACE = 2**20  # bytes
_TRIAL_BYTES = 2**18  # written to see whether the disk takes them
_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT)
_APT = "sudo snap remove ripgrep; sudo apt install ripgrep"
_RIPGREP = "Install ripgrep, such as: apt install ripgrep, or brew install ripgrep"
_RIPGREP_SECONDS = 5.0
_MAX_PROFILES = 20
_IS_WINDOWS = sys.platform == "win32"
VARIABLE = "AUGMENT_API_URL"
_TOKEN_VARIABLE = "AUGMENT_API_TOKEN"  # noqa: S105 - a name
_NO_PORT = "server.port is 0: any free port is taken at the start"


def check_settings_file(context: CheckContext) -> CheckResult:
    """Check that the settings can be read and used."""
    try:
        context.read_settings()
    except ConfigError as error:
        first, *others = str(error).split("\n")
        finding = f"{first} ({len(others)} more)" if others else first
        return wrong(
            finding, error.hint or f"Correct {context.config}; byok config check"
        )
    if foreign := foreign_variables(context.environ):
        return doubtful(foreign[0], "Remove the variable, or correct its name")
    exists = context.config.exists()
    absent = f"{context.config} does not exist: defaults apply"
    return good(f"{context.config}" if exists else absent)


def check_own_prompts(context: CheckContext) -> CheckResult:
    """Check that the user's own prompts can be used; their text is not shown."""
    folder = context.paths.prompts
    own, problems = check_prompts(folder)
    if problems:
        first = problems[0]
        location = f"{first.file}:{first.line}" if first.line else first.file
        more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
        return wrong(f"{escape(location)} cannot be used{more}", "byok prompts check")
    return good(f"{len(own)} of your own in {folder}" if own else "none of your own")


def check_proxies(context: CheckContext) -> CheckResult:
    """Check that no proxy variable diverts what clients send to byok."""
    environ = context.environ
    variable = next((name for name in _HTTP_PROXIES if environ.get(name)), "")
    if not variable:
        return good("no variable names a proxy for plain HTTP")
    excepted = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    for host in _BYOK_HOSTS[:2]:
        if not request.proxy_bypass_environment(host, {"no": excepted}):  # type: ignore[attr-defined]
            hosts = [host.strip() for host in excepted.split(",") if host.strip()]
            return doubtful(
                f"{variable} is set and NO_PROXY does not name {host}: clients that "
                "obey it send what is meant for byok, and its token, to the proxy",
                f"export NO_PROXY={','.join(dict.fromkeys((*hosts, *_BYOK_HOSTS)))}",
            )
    return good(f"{variable} is set, and NO_PROXY keeps this machine out")


def check_token(context: CheckContext) -> CheckResult:
    """Check that byok's tokens are complete, and that only their owner reads them."""
    paths, file = context.paths, context.paths.token
    if not os.path.lexists(file):
        if paths.daemon.exists():
            return wrong(
                f"{file} is gone", "byok token rotate, then byok connect again"
            )
        return skip(f"{file} does not exist yet: the first start creates it")
    try:
        for secret in (file, paths.metrics_token, paths.owner_secret):
            if os.path.lexists(secret):  # `read_token` creates a missing one
                context.redactor.add(read_token(secret))
    except ConfigError as error:
        return wrong(str(error), error.hint)
    return good(f"{file} is readable by its owner only")


async def folders(context: CheckContext) -> Iterable[str]:
    """Return byok's folders, without duplicates."""
    return map(str, context.paths.folders)


def check_folder(context: CheckContext, name: str) -> CheckResult:
    """Check that only this user has access to a folder and to byok's files in it."""
    folder = Path(name)
    if not folder.exists():
        return good("it does not exist yet")
    for path in (folder, *_files_in(context.paths, folder)):
        status = path.stat()
        if not hasattr(os, "geteuid"):
            break  # Windows: the user's profile folder is private by its access list
        if status.st_uid != os.geteuid():
            return wrong(
                f"{path} belongs to another user",
                f"sudo chown $(id -u) {shell_word(path)}",
            )
        if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
            return wrong(f"others may change {path}", f"chmod go= {shell_word(path)}")
        if status.st_mode & 0o055:
            return doubtful(f"others may read {path}", f"chmod go= {shell_word(path)}")
    return good("only its owner may read it")


def _files_in(paths: Paths, folder: Path) -> Iterator[Path]:
    """Yield byok's files in a folder, without those of `check_token`."""
    others = (paths.token, paths.metrics_token, paths.owner_secret)
    for file in paths.files:
        if file.is_file() and folder in file.parents and file not in others:
            yield file


def check_disk(context: CheckContext) -> CheckResult:
    """Check that the folders of state and data take files and have free space."""
    free_bytes = dict[Path, int]()
    for path in (context.paths.state_dir, context.paths.data_dir):
        folder = next(parent for parent in (path, *path.parents) if parent.is_dir())
        try:
            with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
                file.write(bytes(_TRIAL_BYTES))
        except OSError as error:
            if error.errno in _FULL_ERRORS:
                return _disk_full(folder, is_quota=error.errno == errno.EDQUOT)
            return wrong(
                f"nothing can be written to {folder}: {error.strerror}",
                "Make it writable for you, or let BYOK_HOME name another folder",
            )
        free_bytes[folder] = context.machine.free(folder)
    fullest = min(free_bytes, key=lambda folder: free_bytes[folder])
    if free_bytes[fullest] < _NO_SPACE:
        return _disk_full(fullest)
    finding = f"{free_bytes[fullest] / 1e9:,.1f} GB free at {fullest}"
    if free_bytes[fullest] < _LOW_SPACE:
        return doubtful(
            f"only {finding}: the index stops growing", "Free some disk space"
        )
    return good(finding)


def _disk_full(folder: Path, *, is_quota: bool = False) -> CheckResult:
    return wrong(
        f"the quota is full at {folder}"
        if is_quota
        else f"the disk is full at {folder}",
        "Free some disk space: byok then goes on",
    )


def check_ripgrep(context: CheckContext) -> CheckResult:
    """Check that ripgrep is found where byok looks for it, and searches."""
    program = find_program("rg", path=context.environ.get("PATH"))
    if program is None:
        return doubtful(
            "it is not in PATH: nothing is found until an index is built", _RIPGREP
        )
    if failure := _try_ripgrep(program):
        return wrong(f"{program} {failure}", _RIPGREP)
    if program.startswith("/snap/") or Path(program).resolve().name == "snap":
        # A snap needs privileges to start, which byok's service can never gain.
        return doubtful(f"{program} is a snap, which the service cannot start", _APT)
    return good(program)


def _try_ripgrep(program: str) -> str:
    """Search three lines with ripgrep; return what went wrong, "" for nothing."""
    try:
        result = run_program(
            [program, "--no-config", "--json", "--fixed-strings", "needle", "-"],
            clean_environment(),
            seconds=_RIPGREP_SECONDS,
            stdin_bytes=b"hay\na needle\nhay\n",
        )
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    if result.was_late:
        return f"does not answer within {_RIPGREP_SECONDS:g} s"
    has_match = result.exit_code == 0 and b'"type":"match"' in result.out
    return "" if has_match else f"does not find a word (exit {result.exit_code})"


class ClientFile(NamedTuple):
    """A settings file; `is_usual` if `byok connect` writes to it by default.

    An `mcp` file has the client's MCP servers and nothing else of byok.
    """

    client: ClientKind
    path: Path
    is_usual: bool = True
    mcp: bool = False


def client_files(home: Path, environ: Mapping[str, str]) -> list[ClientFile]:
    """Return the settings files of this user's clients that exist.

    An editor may have three kinds: the user's, those of profiles, and one for windows
    that are connected from other machines. MCP servers may have files of their own.
    """
    here = ClientMachine(sys.platform, environ, home)
    away = replace(here, place=RunPlace.SSH)
    files = []
    for client in EDITORS:
        user = find_location(client, here).path
        profiles = sorted((user.parent / "profiles").glob("*/settings.json"))
        others = profiles[:_MAX_PROFILES]
        remote = find_location(client, away)
        others += [remote.path] if remote.is_remote else []
        files.append(ClientFile(client, user))
        files += [ClientFile(client, path, is_usual=False) for path in others]
    for client in (kind for kind in WRITABLE if kind not in EDITORS):
        files.append(ClientFile(client, find_location(client, here).path))
    known = {file.path for file in files}
    for client in (kind for kind in ClientKind if kind.facts.has_mcp):
        usual = find_mcp_location(client, here).path
        profiles = sorted((usual.parent / "profiles").glob("*/mcp.json"))
        for path in {usual, *profiles[:_MAX_PROFILES]} - known:
            files.append(ClientFile(client, path, path == usual, mcp=True))
    return [file for file in files if file.path.is_file()]


def read_text(file: ClientFile) -> str:
    """Return the text of a settings file.

    Raises:
        ValueError: it is too large, or not in its client's format.
        OSError: it cannot be read at all.
    """
    max_bytes = largest_file(file.client)
    with file.path.open("rb") as reader:
        raw = reader.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise ValueError(f"it is larger than {max_bytes:,} bytes")
    return decode_text(raw).text


@once
async def clients(context: CheckContext) -> Mapping[str, ClientFile | None]:
    """Return the settings files by client and path; None for the variable."""
    home, environ = context.machine.home, context.environ
    files = await in_background(lambda: client_files(home, environ))
    variables = {VARIABLE: None} if environ.get(VARIABLE) else {}
    return {f"{file.client} {file.path}": file for file in files} | variables


async def check_client(context: CheckContext, about: str) -> CheckResult:
    """Check whether a settings file, or the variables, point a client at byok."""
    daemon = await _address(context)
    file = (await clients(context))[about]
    if file is None:
        token = context.environ.get(_TOKEN_VARIABLE, "")
        address = Pointer(daemon.url, context.environ[VARIABLE])
        pointers = [address, Pointer(daemon.token, token)]
        return _judge_pointers(context, pointers, daemon, 'eval "$(byok connect cli)"')
    try:
        text = await in_background(lambda: read_text(file))
        found = {
            mcp: read_pointers(file.client, text, daemon, windows=_IS_WINDOWS, mcp=mcp)
            for mcp in (False, True)
        }
    except ValueError as error:
        return doubtful(f"it cannot be read: {error}", "Correct it in its program")
    results = [
        _judge_pointers(context, pointers, daemon, _cure(file, mcp=mcp))
        for mcp, pointers in found.items()
        # aider has one address for all providers; another one is no mistake there.
        if pointers
        and (file.client is not ClientKind.AIDER or is_loopback(pointers[0].found))
    ]
    if not results:
        finding = "it does not point its client at byok"
        return skip(finding, _cure(file, mcp=file.mcp))
    return next((r for r in results if r.state is not CheckState.OK), results[0])


def _cure(file: ClientFile, *, mcp: bool) -> str:
    file_option = "" if file.is_usual else f" --file {shell_word(file.path)}"
    mcp_option = " --mcp" if mcp else ""
    return f"byok connect {file.client}{mcp_option} --write{file_option}"


def _judge_pointers(
    context: CheckContext, pointers: list[Pointer], daemon: DaemonAddress, cure: str
) -> CheckResult:
    if not daemon.token:
        raise CannotCheck("there is no token yet")
    for pointer in pointers:
        if pointer.wanted == daemon.token:
            context.redactor.add(pointer.found)
    mistakes = [pointer for pointer in pointers if not pointer.is_right]
    if not mistakes:
        return good(f"it points at byok, port {daemon.url.rpartition(':')[2]}")
    expected, actual = mistakes[0]
    if expected == daemon.token:
        return wrong("its token is not the one of byok", cure)
    judge = wrong if is_loopback(actual) else doubtful
    return judge(f"it points at {place_of(actual)}, not at byok", cure)


async def _address(context: CheckContext) -> DaemonAddress:
    """Return the address that the daemon has or will have; its token may be ""."""
    daemon = await context.running()
    port = daemon.port if daemon else (await context.settings()).server.port
    if not port:
        raise CannotCheck(_NO_PORT)
    file = context.paths.token
    try:
        token = read_token(file) if file.exists() else ""
    except ConfigError as error:
        raise CannotCheck("the token cannot be used") from error
    return DaemonAddress(f"http://127.0.0.1:{port}", token, file, "-")
