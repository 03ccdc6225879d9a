"""The table of all checks; they run concurrently, each with a time limit."""

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
    CheckContext,
    CheckResult,
    CheckRow,
    in_background,
    skip,
    wrong,
)
from byok.core.errors import ByokError
from byok.features.web.settings import WebSettings
from byok.settings import Settings

T = TypeVar("T")
_Subjects: TypeAlias = Iterable[str] | CheckResult
_MAX_CHARS = 400  # of a line
_MAX_SUBJECTS = 50  # of a check
_REPORT = "Please report this: byok doctor --bundle FILE.zip collects what is needed"


class Check(Struct, frozen=True):
    """One check: its name, its function, and how many seconds the function may take.

    The function is called once for each subject, such as an upstream or a folder, with
    the subject as second argument unless that is "". A plain function runs in a thread.
    """

    name: str
    run: Callable[..., Awaitable[CheckResult] | CheckResult]
    subjects: Callable[[CheckContext], Awaitable[_Subjects]] | None = None
    seconds: float = 15.0


def _if_on(
    is_on: Callable[[Settings], object],
) -> Callable[[CheckContext], Awaitable[_Subjects]]:
    """Return a `subjects` function for a check of a part that settings switch on."""

    async def subjects(context: CheckContext) -> _Subjects:
        return ("",) if is_on(await context.settings()) else ()

    return subjects


_ANSWER_SECONDS = 2 * upstreams.QUESTION_SECONDS
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
    Check("key", upstreams.check_key, upstreams.lookups_by_title),
    Check("model list", upstreams.check_models, upstreams.upstreams_of, 30.0),
    Check("model", upstreams.check_model, upstreams.models_by_use, 30.0),
    Check("context window", upstreams.check_window, upstreams.upstreams_of, 35.0),
    Check("chat", upstreams.check_chat, upstreams.asked_upstreams, _ANSWER_SECONDS),
    Check(
        "streaming",
        upstreams.check_streaming,
        upstreams.asked_upstreams,
        _ANSWER_SECONDS,
    ),
    Check(
        "tool call",
        upstreams.check_tool_call,
        upstreams.asked_upstreams,
        2 * _ANSWER_SECONDS,
    ),
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
    context: CheckContext,
    checks: Sequence[Check] = CHECKS,
    show: Callable[[int], None] = lambda done: None,
) -> list[CheckRow]:
    """Run checks, and return their results in the order of the table.

    `show` is called with the number of checks that have ended.
    """
    ended = itertools.count(1)

    async def run(check: Check) -> list[CheckRow]:
        rows = await _run_check(context, check)
        show(next(ended))
        return rows

    rows_by_check = await asyncio.gather(*map(run, checks))
    rows = [row for rows in rows_by_check for row in rows]
    return [
        _clean(context, row) for row in rows
    ]  # only now has the redactor learned all secrets


async def _run_check(context: CheckContext, check: Check) -> list[CheckRow]:
    find = check.subjects
    subjects = await _limit(find(context), check.seconds) if find else ("",)
    if isinstance(subjects, CheckResult):
        return [CheckRow(check.name, "", subjects)]
    names = [*subjects]
    checked = names[:_MAX_SUBJECTS]
    runs = (_limit(_run(check, context, about), check.seconds) for about in checked)
    results = await asyncio.gather(*runs)
    rows = [
        CheckRow(check.name, about, result)
        for about, result in zip(checked, results, strict=True)
    ]
    if more := len(names) - len(checked):
        rows.append(CheckRow(check.name, "", skip(f"{more} more are not looked at")))
    return rows


async def _run(check: Check, context: CheckContext, about: str) -> CheckResult:
    work = partial(check.run, context, about) if about else partial(check.run, context)
    result = work() if inspect.iscoroutinefunction(check.run) else in_background(work)
    return await cast("Awaitable[CheckResult]", result)


async def _limit(work: Awaitable[T], seconds: float) -> T | CheckResult:
    """Return the result of `work`; a CheckResult if it fails or exceeds the limit."""
    task = asyncio.ensure_future(work)
    await asyncio.wait([task], timeout=seconds)
    if not task.done():
        task.cancel()
        return wrong(
            f"there was no answer within {seconds:g} s", "Try again, or report it"
        )
    error = task.exception()
    return task.result() if error is None else _describe_error(error)


def _describe_error(error: BaseException) -> CheckResult:
    match error:
        case CannotCheck():
            return skip(str(error))
        case ByokError():
            return wrong(str(error), error.hint or _REPORT)
        case OSError(strerror=reason, filename=file) if reason and file:
            return wrong(f"{file}: {reason}", "Make it accessible for you")
        case Exception():
            return wrong(f"the check itself broke ({type(error).__name__})", _REPORT)
        case _:
            raise error


def _clean(context: CheckContext, row: CheckRow) -> CheckRow:
    """Return a row whose texts are single lines without secrets."""

    def clean(text: str) -> str:
        return context.redactor(" ".join(text.split()))[:_MAX_CHARS]

    result = row.result
    cleaned = CheckResult(result.state, clean(result.found), clean(result.cure))
    return CheckRow(row.check, clean(row.about), cleaned)
