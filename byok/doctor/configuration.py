"""Checks of the settings, of those in force, and of variables around them."""

from collections.abc import Mapping
from functools import partial
from urllib import request

from byok.config import foreign_variables
from byok.doctor.background import in_background
from byok.doctor.results import CheckResult, doubtful, good, wrong
from byok.doctor.surroundings import Surroundings
from byok.errors import ConfigError
from byok.escapes import escape
from byok.prompts.own_files import check_folder
from byok.routing import Service

_CLIENTS_HOSTS = ("127.0.0.1", "localhost", "::1")
_HTTP_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


async def check_settings_file(around: Surroundings, about: str) -> CheckResult:
    """Check that the settings can be read and used."""
    del about
    try:
        await in_background(around.read_settings)
    except ConfigError as error:
        first, *more = str(error).split("\n")
        said = f"{first} ({len(more)} more)" if more else first
        return wrong(said, error.hint or f"Correct {around.config}; byok config check")
    if foreign := foreign_variables(around.environ):
        return doubtful(foreign[0], "Remove the variable, or correct its name")
    there = await in_background(around.config.exists)
    return good(f"{around.config}{'' if there else ' does not exist: defaults apply'}")


async def check_own_prompts(around: Surroundings, about: str) -> CheckResult:
    """Check that the user's own prompts can be used; nothing of their text is told."""
    del about
    folder = around.paths.prompts
    own, problems = await in_background(partial(check_folder, folder))
    if problems:
        first = problems[0]
        place = f"{first.file}:{first.line}" if first.line else first.file
        more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
        return wrong(f"{escape(place)} cannot be used{more}", "byok prompts check")
    return good(f"{len(own)} of your own in {folder}" if own else "none of your own")


async def check_settings_in_force(around: Surroundings, about: str) -> CheckResult:
    """Check that the daemon uses the settings as the file is now."""
    del about
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


async def check_proxies(around: Surroundings, about: str) -> CheckResult:
    """Check that no proxy variable diverts what clients send to byok."""
    del about
    variable = next((name for name in _HTTP_PROXIES if around.environ.get(name)), "")
    if not variable:
        return good("no variable names a proxy for plain HTTP")
    if caught := [h for h in _CLIENTS_HOSTS[:2] if not _is_excepted(around.environ, h)]:
        return doubtful(
            f"{variable} is set and NO_PROXY does not name {caught[0]}: clients that "
            "obey it send what is meant for byok, and its token, to the proxy",
            f"export NO_PROXY={_no_proxy(around.environ)}",
        )
    return good(f"{variable} is set, and NO_PROXY keeps this machine out")


def _exceptions(environ: Mapping[str, str]) -> str:
    return environ.get("no_proxy") or environ.get("NO_PROXY") or ""


def _is_excepted(environ: Mapping[str, str], host: str) -> bool:
    given = {"no": _exceptions(environ)}
    return bool(request.proxy_bypass_environment(host, given))  # type: ignore[attr-defined]


def _no_proxy(environ: Mapping[str, str]) -> str:
    """Return the value that also names this machine."""
    given = [one.strip() for one in _exceptions(environ).split(",") if one.strip()]
    return ",".join(dict.fromkeys((*given, *_CLIENTS_HOSTS)))
