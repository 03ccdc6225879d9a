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
    CheckResult,
    Surroundings,
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
from byok.clients.editor import decode_text
from byok.clients.locations import (
    EDITORS,
    WRITABLE,
    ClientKind,
    ClientMachine,
    RunPlace,
    find_location,
)
from byok.core.daemon.token import read_token
from byok.core.errors import ConfigError
from byok.core.escapes import escape, shell_word
from byok.core.platform.paths import Paths
from byok.core.platform.programs import clean_environment, find_program, run_program
from byok.core.prompts.own_files import check_folder as check_prompts
from byok.core.urls import is_loopback
from byok.settings import foreign_variables

_CLIENTS_HOSTS = ("127.0.0.1", "localhost", "::1")
_HTTP_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_LITTLE, _NOTHING = 512 * 2**20, 2**20  # bytes; an index wants to keep the first free
_TRIED = 2**18  # bytes that are written to see whether that can be done
_FULL = (errno.ENOSPC, errno.EDQUOT)
_APT = "sudo snap remove ripgrep; sudo apt install ripgrep"
_RIPGREP = "Install ripgrep, such as: apt install ripgrep, or brew install ripgrep"
_SECONDS = 5.0


def check_settings_file(around: Surroundings) -> CheckResult:
    """Check that the settings can be read and used."""
    try:
        around.read_settings()
    except ConfigError as error:
        first, *more = str(error).split("\n")
        said = f"{first} ({len(more)} more)" if more else first
        return wrong(said, error.hint or f"Correct {around.config}; byok config check")
    if foreign := foreign_variables(around.environ):
        return doubtful(foreign[0], "Remove the variable, or correct its name")
    there = around.config.exists()
    absent = f"{around.config} does not exist: defaults apply"
    return good(f"{around.config}" if there else absent)


def check_own_prompts(around: Surroundings) -> CheckResult:
    """Check that the user's own prompts can be used; nothing of their text is told."""
    folder = around.paths.prompts
    own, problems = check_prompts(folder)
    if problems:
        first = problems[0]
        place = f"{first.file}:{first.line}" if first.line else first.file
        more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
        return wrong(f"{escape(place)} cannot be used{more}", "byok prompts check")
    return good(f"{len(own)} of your own in {folder}" if own else "none of your own")


def check_proxies(around: Surroundings) -> CheckResult:
    """Check that no proxy variable diverts what clients send to byok."""
    environ = around.environ
    variable = next((name for name in _HTTP_PROXIES if environ.get(name)), "")
    if not variable:
        return good("no variable names a proxy for plain HTTP")
    excepted = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    for host in _CLIENTS_HOSTS[:2]:
        if not request.proxy_bypass_environment(host, {"no": excepted}):  # type: ignore[attr-defined]
            named = [one.strip() for one in excepted.split(",") if one.strip()]
            return doubtful(
                f"{variable} is set and NO_PROXY does not name {host}: clients that "
                "obey it send what is meant for byok, and its token, to the proxy",
                f"export NO_PROXY={','.join(dict.fromkeys((*named, *_CLIENTS_HOSTS)))}",
            )
    return good(f"{variable} is set, and NO_PROXY keeps this machine out")


def check_token(around: Surroundings) -> CheckResult:
    """Check that the token is there, whole, and for its owner alone; so the others."""
    paths, file = around.paths, around.paths.token
    if not os.path.lexists(file):
        if paths.daemon.exists():
            return wrong(
                f"{file} is gone", "byok token rotate, then byok connect again"
            )
        return skip(f"{file} does not exist yet: the first start creates it")
    try:
        for one in (file, paths.metrics_token, paths.owner_secret):
            if os.path.lexists(one):  # else it would be created
                around.redactor.add(read_token(one))
    except ConfigError as error:
        return wrong(str(error), error.hint)
    return good(f"{file} is readable by its owner only")


async def folders(around: Surroundings) -> Iterable[str]:
    """Return byok's folders, those that are the same only once."""
    return map(str, around.paths.folders)


def check_folder(around: Surroundings, name: str) -> CheckResult:
    """Check that a folder and byok's files in it are this user's, and no one else's."""
    folder = Path(name)
    if not folder.exists():
        return good("it does not exist yet")
    for place in (folder, *_files_in(around.paths, folder)):
        facts = place.stat()
        if not hasattr(os, "geteuid"):
            break  # Windows: the user's profile folder is private by its access list
        if facts.st_uid != os.geteuid():
            return wrong(
                f"{place} belongs to another user",
                f"sudo chown $(id -u) {shell_word(place)}",
            )
        if facts.st_mode & 0o022 and not facts.st_mode & stat.S_ISVTX:
            return wrong(f"others may change {place}", f"chmod go= {shell_word(place)}")
        if facts.st_mode & 0o055:
            return doubtful(
                f"others may read {place}", f"chmod go= {shell_word(place)}"
            )
    return good("only its owner may read it")


def _files_in(paths: Paths, folder: Path) -> Iterator[Path]:
    """Give byok's files in a folder, but for those that `check_token` looks at."""
    others = (paths.token, paths.metrics_token, paths.owner_secret)
    for file in paths.files:
        if file.is_file() and folder in file.parents and file not in others:
            yield file


def check_disk(around: Surroundings) -> CheckResult:
    """Check that there is room to write in the folders of state and data."""
    room = dict[Path, int]()
    for folder in (around.paths.state_dir, around.paths.data_dir):
        place = next(place for place in (folder, *folder.parents) if place.is_dir())
        try:
            with tempfile.TemporaryFile(dir=place, buffering=0) as file:
                file.write(bytes(_TRIED))
        except OSError as error:
            if error.errno in _FULL:
                return _no_room(place, is_quota=error.errno == errno.EDQUOT)
            return wrong(
                f"nothing can be written to {place}: {error.strerror}",
                "Make it writable for you, or let BYOK_HOME name another folder",
            )
        room[place] = around.machine.free(place)
    where = min(room, key=lambda place: room[place])
    if room[where] < _NOTHING:
        return _no_room(where)
    said = f"{room[where] / 1e9:,.1f} GB free at {where}"
    if room[where] < _LITTLE:
        return doubtful(f"only {said}: the index stops growing", "Free some disk space")
    return good(said)


def _no_room(place: Path, *, is_quota: bool = False) -> CheckResult:
    return wrong(
        f"the quota is full at {place}" if is_quota else f"the disk is full at {place}",
        "Free some disk space: byok then goes on",
    )


def check_ripgrep(around: Surroundings) -> CheckResult:
    """Check that ripgrep is found where byok looks for it, and searches."""
    program = find_program("rg", path=around.environ.get("PATH"))
    if program is None:
        return doubtful(
            "it is not in PATH: nothing is found until an index is built", _RIPGREP
        )
    if failure := _try_ripgrep(program):
        return wrong(f"{program} {failure}", _RIPGREP)
    if program.startswith("/snap/") or Path(program).resolve().name == "snap":
        # It needs privileges to start, which byok's service can never gain.
        return doubtful(f"{program} is a snap, which the service cannot start", _APT)
    return good(program)


def _try_ripgrep(program: str) -> str:
    """Let it search three lines; return what went wrong."""
    try:
        ended = run_program(
            [program, "--no-config", "--json", "--fixed-strings", "needle", "-"],
            clean_environment(),
            seconds=_SECONDS,
            given=b"hay\na needle\nhay\n",
        )
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    if ended.was_late:
        return f"does not answer within {_SECONDS:g} s"
    found = ended.exit_code == 0 and b'"type":"match"' in ended.out
    return "" if found else f"does not find a word (exit {ended.exit_code})"


# Checks of clients: that their settings point at byok, with its token.


_MOST_PROFILES = 20
VARIABLE = "AUGMENT_API_URL"
_TOKEN_VARIABLE = "AUGMENT_API_TOKEN"  # noqa: S105 - a name
_NO_PORT = "server.port is 0: any free port is taken at the start"


class ClientFile(NamedTuple):
    """A settings file that exists; `is_usual` if it is where a client has it first."""

    client: ClientKind
    path: Path
    is_usual: bool = True


def client_files(home: Path, environ: Mapping[str, str]) -> list[ClientFile]:
    """Return the settings files of this user's clients that exist.

    Those of editors are the user's, of profiles, and for windows from other machines.
    """
    here = ClientMachine(sys.platform, environ, home)
    away = replace(here, place=RunPlace.SSH)
    found = []
    for client in EDITORS:
        user = find_location(client, here).path
        profiles = sorted((user.parent / "profiles").glob("*/settings.json"))
        others = profiles[:_MOST_PROFILES]
        remote = find_location(client, away)
        others += [remote.path] if remote.is_remote else []
        found.append(ClientFile(client, user))
        found += [ClientFile(client, path, is_usual=False) for path in others]
    for client in (kind for kind in WRITABLE if kind not in EDITORS):
        found.append(ClientFile(client, find_location(client, here).path))
    return [file for file in found if file.path.is_file()]


def read_file(file: ClientFile, daemon: DaemonAddress) -> list[Pointer]:
    """Return what a settings file has of an address and a token.

    Raises:
        ValueError: it cannot be read as what it is to be.
        OSError: it cannot be read at all.
    """
    most = largest_file(file.client)
    with file.path.open("rb") as opened:
        raw = opened.read(most + 1)
    if len(raw) > most:
        raise ValueError(f"it is larger than {most:,} bytes")
    return read_pointers(file.client, decode_text(raw).text, daemon)


@once
async def clients(around: Surroundings) -> Mapping[str, ClientFile | None]:
    """Return the settings files by what they are called; None for the variable."""
    home, environ = around.machine.home, around.environ
    found = await in_background(lambda: client_files(home, environ))
    named = {VARIABLE: None} if environ.get(VARIABLE) else {}
    return {f"{file.client} {file.path}": file for file in found} | named


async def check_client(around: Surroundings, about: str) -> CheckResult:
    """Check where a settings file, or the variables, point a client to."""
    daemon = await _address(around)
    file = (await clients(around))[about]
    if file is None:
        token = around.environ.get(_TOKEN_VARIABLE, "")
        address = Pointer(daemon.url, around.environ[VARIABLE])
        found = [address, Pointer(daemon.token, token)]
        return _judge(around, found, daemon, 'eval "$(byok connect cli)"')
    where = "" if file.is_usual else f" --file {shell_word(file.path)}"
    cure = f"byok connect {file.client} --write{where}"
    try:
        found = await in_background(lambda: read_file(file, daemon))
    except ValueError as error:
        return doubtful(f"it cannot be read: {error}", "Correct it in its program")
    # A client that has one address only may use it for somebody else.
    is_other = file.client is ClientKind.AIDER
    if not found or (is_other and not is_loopback(found[0].found)):
        return skip("it does not point its client at byok", cure)
    return _judge(around, found, daemon, cure)


def _judge(
    around: Surroundings, found: list[Pointer], daemon: DaemonAddress, cure: str
) -> CheckResult:
    if not daemon.token:
        raise CannotCheck("there is no token yet")
    for one in found:
        if one.wanted == daemon.token:
            around.redactor.add(one.found)
    wrong_ones = [one for one in found if not one.is_right]
    if not wrong_ones:
        return good(f"it points at byok, port {daemon.url.rpartition(':')[2]}")
    wanted, there = wrong_ones[0]
    if wanted == daemon.token:
        return wrong("its token is not the one of byok", cure)
    judge = wrong if is_loopback(there) else doubtful
    return judge(f"it points at {place_of(there)}, not at byok", cure)


async def _address(around: Surroundings) -> DaemonAddress:
    """Return where the daemon is, or is to be; without a token if there is none."""
    daemon = await around.running()
    port = daemon.port if daemon else (await around.settings()).server.port
    if not port:
        raise CannotCheck(_NO_PORT)
    file = around.paths.token
    try:
        token = read_token(file) if file.exists() else ""
    except ConfigError as error:
        raise CannotCheck("the token cannot be used") from error
    return DaemonAddress(f"http://127.0.0.1:{port}", token, file, "-")
