"""Checks of clients: that their settings point at byok, with its token."""

import hmac
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from byok.daemon.token import read_token
from byok.doctor.background import in_background
from byok.doctor.client_files import ClientTarget, read_target, settings_files
from byok.doctor.results import CannotCheck, CheckResult, doubtful, good, skip, wrong
from byok.doctor.surroundings import Surroundings
from byok.errors import ConfigError
from byok.urls import is_loopback

VARIABLES = "AUGMENT_API_URL"
_TOKEN_VARIABLE = "AUGMENT_API_TOKEN"  # noqa: S105 - a name
_HTTP = 80


async def clients(around: Surroundings) -> Sequence[str]:
    """Return the settings files that exist, and the variable if it is set."""
    home, environ = around.machine.home, around.environ
    files = await in_background(lambda: settings_files(home, environ))
    named = [VARIABLES] if environ.get(VARIABLES) else []
    return [*map(str, files), *named]


async def check_client(around: Surroundings, about: str) -> CheckResult:
    """Check where a settings file, or the variables, point a client to."""
    if about == VARIABLES:
        environ, cure = around.environ, 'eval "$(byok connect cli)"'
        target = ClientTarget(environ[VARIABLES], environ.get(_TOKEN_VARIABLE, ""))
    else:
        cure = "byok connect vscode prints the two settings to put there"
        try:
            target = await in_background(lambda: read_target(Path(about)))
        except ValueError as error:
            return doubtful(f"it cannot be read: {error}", "Correct it in the editor")
        if not target.url:
            return skip("it names no address for the client", "byok connect vscode")
    around.redactor.add(target.token)
    return await _judge(around, target, cure)


async def _judge(around: Surroundings, target: ClientTarget, cure: str) -> CheckResult:
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
    if not await in_background(lambda: _is_own_token(around, target.token)):
        return wrong("its token is not the one of byok", cure)
    return good(f"it points at byok, port {port}")


async def _own_port(around: Surroundings) -> int:
    """Return the port of the daemon, else that of the settings; 0 if any will do."""
    if daemon := await around.running():
        return daemon.port
    return (await around.settings()).server.port


def _is_own_token(around: Surroundings, given: str) -> bool:
    if not around.paths.token.exists():
        raise CannotCheck("there is no token yet")
    try:
        token = read_token(around.paths.token)
    except ConfigError as error:
        raise CannotCheck("the token cannot be used") from error
    bare = given.removeprefix("Bearer ").strip()
    return hmac.compare_digest(bare.encode("utf-8", "replace"), token.encode())
