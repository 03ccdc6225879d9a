"""Checks of clients: that their settings point at byok, with its token."""

import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from byok.client_settings.client_kind import ClientKind
from byok.daemon.token import read_token
from byok.doctor.background import in_background
from byok.doctor.client_files import (
    ClientFile,
    ClientTarget,
    client_files,
    read_target,
)
from byok.doctor.results import CannotCheck, CheckResult, doubtful, good, skip, wrong
from byok.doctor.surroundings import Surroundings
from byok.errors import ConfigError
from byok.escapes import shell_word
from byok.urls import is_loopback

VARIABLE = "AUGMENT_API_URL"
_TOKEN_VARIABLE = "AUGMENT_API_TOKEN"  # noqa: S105 - a name
_HTTP = 80


async def clients(around: Surroundings) -> Sequence[str]:
    """Return the settings files that exist, and the variable if it is set."""
    named = [VARIABLE] if around.environ.get(VARIABLE) else []
    return [*await _files(around), *named]


async def _files(around: Surroundings) -> Mapping[str, ClientFile]:
    """Return the files by what they are called: the editors', and those with byok."""

    async def find() -> Mapping[str, ClientFile]:
        home, environ = around.machine.home, around.environ
        found = await in_background(lambda: client_files(home, environ))
        return {f"{file.client} {file.path}": file for file in found}

    return await around.once("clients", find)


async def check_client(around: Surroundings, about: str) -> CheckResult:
    """Check where a settings file, or the variables, point a client to."""
    if about == VARIABLE:
        url, token = around.environ[VARIABLE], around.environ.get(_TOKEN_VARIABLE, "")
        return await _judge(
            around, ClientTarget(url, token), 'eval "$(byok connect cli)"'
        )
    file = (await _files(around))[about]
    cure = _cure(file)
    try:
        target = await in_background(lambda: read_target(file))
    except ValueError as error:
        return doubtful(f"it cannot be read: {error}", "Correct it in its program")
    if not target.url or _is_of_others(file.client, target):
        return skip("it does not point its client at byok", cure)
    return await _judge(around, target, cure)


def _is_of_others(client: ClientKind, target: ClientTarget) -> bool:
    """Tell whether a client that has one address only uses it for somebody else."""
    return client is ClientKind.AIDER and not is_loopback(target.url)


def _cure(file: ClientFile) -> str:
    where = "" if file.is_usual else f" --file {shell_word(file.path)}"
    return f"byok connect {file.client} --write{where}"


async def _judge(around: Surroundings, target: ClientTarget, cure: str) -> CheckResult:
    around.redactor.add(target.token or "")
    try:
        parts = urlsplit(target.url)
        host, port = parts.hostname or "", parts.port or _HTTP
    except ValueError:
        return wrong("its address is none", cure)
    if not is_loopback(target.url):
        return doubtful(f"it points at {parts.scheme}://{host}, not at byok", cure)
    if parts.scheme != "http":
        return wrong(f"it says {parts.scheme}://, and byok speaks plain HTTP", cure)
    own = await _own_port(around)
    if own and port != own:
        return wrong(f"it points at port {port}, and byok is at {own}", cure)
    token = target.token
    if token is not None and not await in_background(lambda: _is_own(around, token)):
        return wrong("its token is not the one of byok", cure)
    return good(f"it points at byok, port {port}")


async def _own_port(around: Surroundings) -> int:
    """Return the port of the daemon, else that of the settings; 0 if any will do."""
    if daemon := await around.running():
        return daemon.port
    return (await around.settings()).server.port


def _is_own(around: Surroundings, given: str) -> bool:
    if not around.paths.token.exists():
        raise CannotCheck("there is no token yet")
    try:
        token = read_token(around.paths.token)
    except ConfigError as error:
        raise CannotCheck("the token cannot be used") from error
    bare = given.removeprefix("Bearer ").strip()
    return hmac.compare_digest(bare.encode("utf-8", "replace"), token.encode())
