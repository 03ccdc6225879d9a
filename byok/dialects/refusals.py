"""Refusals classified: by the error's structure, then its words, then its status."""

import re
from collections.abc import Iterable
from typing import Any

from byok.chat import Json
from byok.dialects.rate_limits import (
    quotas_exceeded,
    read_details,
    read_error_reasons,
    requested_wait,
)
from byok.dialects.refusal_rows import (
    AUTH,
    BALANCE,
    BUSY,
    CODES,
    FAILED,
    NOT_FOUND,
    NOT_IN_PLAN,
    RATE,
    ROWS,
    TOO_LONG,
    USED_UP,
    Refusal,
    RefusalRow,
)
from byok.errors import RefusalKind

_BY_STATUS = {
    401: AUTH,
    402: BALANCE,
    403: AUTH,
    404: NOT_FOUND,
    405: Refusal(RefusalKind.NOT_FOUND, "Check base_url: it usually ends in /v1."),
    413: Refusal(
        RefusalKind.TOO_LARGE, "Start a new conversation, or send fewer images."
    ),
    429: RATE,
    451: Refusal(
        RefusalKind.REGION,
        "That provider does not serve your place: choose another upstream.",
    ),
    529: BUSY,
}
_NOT_SERVED = 501  # the request asks for something that the server does not have
# Inside a stream only the type of an error says that the request is at fault.
_OWN_FAULT = re.compile(
    r"invalid[_ ](?:request|argument|prompt)|bad[_ ]request|permission|failed_precond"
)
_LONGEST_RATE = 3600.0  # seconds; a limit that takes longer to reset is one of a plan


def _compile(rows: Iterable[RefusalRow]) -> tuple[tuple[re.Pattern[str], Refusal], ...]:
    return tuple((re.compile("|".join(words)), refusal) for words, refusal in rows)


_KNOWN = _compile(ROWS)
_READ = 8192  # characters: a message and its codes


def classify_refusal(
    message: str, codes: Iterable[str], error: Any, status: int
) -> Refusal:
    """Classify an error body; `status` 0 means that it came inside a stream.

    `codes` are the fields that name the kind of error, `error` is the object that has
    them.
    """
    names = [*codes, quotas_exceeded(error)]
    found = _read_structure(error, names)
    found = found or class_of(" ".join((message, *names)), status)
    if found.kind is RefusalKind.RATE_LIMIT:
        wait = requested_wait(message, error)
        if wait is not None and wait > _LONGEST_RATE:
            return USED_UP
    return found


def class_of_words(text: str) -> Refusal | None:
    """Classify a refusal by its words alone; None where they say nothing that is known.

    Only the beginning of the text counts: the patterns may take quadratic time.
    """
    text = text[:_READ].lower()
    return next((refusal for row, refusal in _KNOWN if row.search(text)), None)


def class_of(text: str, status: int) -> Refusal:
    """Classify a refusal by its words and status; 0 is the status inside a stream."""
    if refusal := class_of_words(text):
        return refusal
    text = text[:_READ].lower()
    if status == 413 and "token" in text:
        return TOO_LONG
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status == _NOT_SERVED:
        return Refusal(RefusalKind.UNKNOWN, "", True)
    # Where a stream has begun, the request was accepted, unless the error denies it.
    if status >= 500 or (not status and not _OWN_FAULT.search(text)):
        return FAILED
    return Refusal(RefusalKind.UNKNOWN, "")


def _read_structure(error: Any, codes: Iterable[str]) -> Refusal | None:
    """Classify by Google's details, else by a code; None where neither says enough."""
    if refusal := _read_google(error):
        return refusal
    for code in codes:
        code = code.lower()
        names = (code, code.partition(".")[0])
        if refusal := next((CODES[name] for name in names if name in CODES), None):
            return refusal
    return None


def _read_google(error: Any) -> Refusal | None:
    """Classify by the details of Google's APIs (`google.rpc.QuotaFailure` and others).

    Their messages say "exceeded your current quota" of every limit, also of those for
    a minute, so only the name of the quota tells how long it takes.
    """
    details: list[Json] = [*read_details(error)]
    if not details:
        return None
    quotas = quotas_exceeded(error).lower()
    message = error.get("message") if isinstance(error, dict) else None
    if quotas and isinstance(message, str) and "limit: 0" in message:
        return NOT_IN_PLAN
    if "perday" in quotas:
        return None  # the words for a day
    if "perminute" in quotas or "persecond" in quotas:
        return RATE
    for reason in read_error_reasons(error):
        if reason in CODES:
            return CODES[reason]
    asks = any("retryDelay" in detail for detail in details)
    return RATE if asks and (quotas or requested_wait("", error)) else None
