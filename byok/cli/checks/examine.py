"""All checks, run at once and independently, each with a time limit."""

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar, cast

from msgspec import Struct

from byok.cli.checks import daemon_checks as daemon
from byok.cli.checks import setup_checks as setup
from byok.cli.checks import upstream_checks as upstreams
from byok.cli.checks.base import (
    CannotCheck,
    CheckResult,
    CheckRow,
    Surroundings,
    in_background,
    skip,
    wrong,
)
from byok.core.errors import ByokError
from byok.features.web.settings import WebSettings
from byok.settings import Settings

T = TypeVar("T")
_LONGEST = 400  # characters of a line
_MOST_SUBJECTS = 50
_REPORT = "Please report this: byok doctor --bundle FILE.zip collects what is needed"


_Subjects: TypeAlias = Iterable[str] | CheckResult


class Check(Struct, frozen=True):
    """One check: its name, what it runs, and how many seconds that may take.

    It runs once for each of its subjects, such as an upstream or a folder, which it
    gets as second argument unless it is "". What is no coroutine runs in a thread.
    """

    name: str
    run: Callable[..., Awaitable[CheckResult] | CheckResult]
    subjects: Callable[[Surroundings], Awaitable[_Subjects]] | None = None
    seconds: float = 15.0


def _if_on(
    is_on: Callable[[Settings], object],
) -> Callable[[Surroundings], Awaitable[_Subjects]]:
    """Return the subjects of a check of what the settings may switch on."""

    async def subjects(around: Surroundings) -> _Subjects:
        return ("",) if is_on(await around.settings()) else ()

    return subjects


_ASKED = 2 * upstreams.QUESTION_SECONDS
_ASKED_ONES = upstreams.asked_upstreams

CHECKS = (
    Check("settings", setup.check_settings_file),
    Check("own prompts", setup.check_own_prompts),
    Check("settings in force", daemon.check_settings_in_force),
    Check("daemon", daemon.check_daemon),
    Check("daemon version", daemon.check_daemon_version),
    Check("service", daemon.check_service, seconds=30.0),
    Check("port", daemon.check_port, seconds=30.0),
    Check("localhost", daemon.check_localhost),
    Check("proxy variables", setup.check_proxies),
    Check("token", setup.check_token),
    Check("folder", setup.check_folder, setup.folders),
    Check("disk", setup.check_disk),
    Check("upstreams", upstreams.check_choice),
    Check("key", upstreams.check_key, upstreams.wanted_keys),
    Check("model list", upstreams.check_models, upstreams.upstreams_of, 30.0),
    Check("model", upstreams.check_model, upstreams.models_by_use, 30.0),
    Check("context window", upstreams.check_window, upstreams.upstreams_of, 35.0),
    Check("chat", upstreams.check_chat, _ASKED_ONES, _ASKED),
    Check("streaming", upstreams.check_streaming, _ASKED_ONES, _ASKED),
    Check("tool call", upstreams.check_tool_call, _ASKED_ONES, 2 * _ASKED),
    Check(
        "official service",
        daemon.check_official,
        _if_on(lambda s: s.routing.official.base_url),
    ),
    Check("vectors", daemon.check_vectors, _if_on(lambda s: s.embeddings.on)),
    Check(
        "search server",
        daemon.check_search_server,
        _if_on(lambda s: s.search.remote.on),
    ),
    Check(
        "web tools",
        upstreams.check_web_tools,
        _if_on(lambda s: s.section(WebSettings).on),
    ),
    Check("client", setup.check_client, setup.clients),
    Check("ripgrep", setup.check_ripgrep),
    Check("index", daemon.check_index, seconds=daemon.INDEX_SECONDS),
    Check("workspace", daemon.check_workspace, daemon.workspaces, daemon.INDEX_SECONDS),
)


async def examine(
    around: Surroundings,
    checks: Sequence[Check] = CHECKS,
    show: Callable[[int], None] = lambda done: None,
) -> list[CheckRow]:
    """Run checks, and return their results in the order of the table.

    `show` gets the number of those that have ended.
    """
    ended = itertools.count(1)

    async def run(check: Check) -> list[CheckRow]:
        rows = await _run_check(around, check)
        show(next(ended))
        return rows

    found = await asyncio.gather(*map(run, checks))
    rows = [row for rows in found for row in rows]
    return [_clean(around, row) for row in rows]  # by now all secrets are known


async def _run_check(around: Surroundings, check: Check) -> list[CheckRow]:
    find = check.subjects
    subjects = await _limit(find(around), check.seconds) if find else ("",)
    if isinstance(subjects, CheckResult):
        return [CheckRow(check.name, "", subjects)]
    found = [*subjects]
    some = found[:_MOST_SUBJECTS]
    runs = (_limit(_run(check, around, about), check.seconds) for about in some)
    results = await asyncio.gather(*runs)
    rows = [
        CheckRow(check.name, about, result)
        for about, result in zip(some, results, strict=True)
    ]
    if more := len(found) - len(some):
        rows.append(CheckRow(check.name, "", skip(f"{more} more are not looked at")))
    return rows


async def _run(check: Check, around: Surroundings, about: str) -> CheckResult:
    work = partial(check.run, around, about) if about else partial(check.run, around)
    result = work() if inspect.iscoroutinefunction(check.run) else in_background(work)
    return await cast("Awaitable[CheckResult]", result)


async def _limit(work: Awaitable[T], seconds: float) -> T | CheckResult:
    """Return what `work` gives; a result that says why if it gives nothing."""
    task = asyncio.ensure_future(work)
    await asyncio.wait([task], timeout=seconds)
    if not task.done():
        task.cancel()
        return wrong(
            f"there was no answer within {seconds:g} s", "Try again, or report it"
        )
    error = task.exception()
    return task.result() if error is None else _result_of(error)


def _result_of(error: BaseException) -> CheckResult:
    match error:
        case CannotCheck():
            return skip(str(error))
        case ByokError():
            return wrong(str(error), error.hint or _REPORT)
        case OSError(strerror=why, filename=file) if why and file:
            return wrong(f"{file}: {why}", "Make it accessible for you")
        case Exception():
            return wrong(f"the check itself broke ({type(error).__name__})", _REPORT)
        case _:
            raise error


def _clean(around: Surroundings, row: CheckRow) -> CheckRow:
    """Return a row of single lines without secrets."""

    def line(text: str) -> str:
        return around.redactor(" ".join(text.split()))[:_LONGEST]

    result = row.result
    clean = CheckResult(result.state, line(result.found), line(result.cure))
    return CheckRow(row.check, line(row.about), clean)
