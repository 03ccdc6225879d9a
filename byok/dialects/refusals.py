"""Refusals classified: by what they say, else by their status."""

import re
from collections.abc import Iterable

from byok.dialects.refusal_rows import ROWS, TOO_LONG, Refusal, RefusalRow
from byok.errors import RefusalKind

_BY_STATUS = {
    401: Refusal(RefusalKind.AUTH, "Check the key: byok keys list."),
    402: Refusal(RefusalKind.QUOTA, "Check the balance of that account."),
    403: Refusal(RefusalKind.AUTH, "Check the key: byok keys list."),
    404: Refusal(
        RefusalKind.NOT_FOUND, "Check the model's name (byok models) and base_url."
    ),
    405: Refusal(RefusalKind.NOT_FOUND, "Check base_url: it usually ends in /v1."),
    413: Refusal(
        RefusalKind.TOO_LARGE, "Start a new conversation, or send fewer images."
    ),
    429: Refusal(RefusalKind.RATE_LIMIT, "Wait a little and try again.", True),
    529: Refusal(
        RefusalKind.OVERLOADED,
        "Wait a little and try again, or choose another model.",
        True,
    ),
}


# Inside a stream only the type of an error says that the request is at fault.
_OWN_FAULT = re.compile(
    r"invalid[_ ](?:request|argument|prompt)|bad[_ ]request|permission|failed_precond"
)


def _compile(rows: Iterable[RefusalRow]) -> tuple[tuple[re.Pattern[str], Refusal], ...]:
    return tuple((re.compile("|".join(words)), refusal) for words, refusal in rows)


_KNOWN = _compile(ROWS)
_READ = 8192  # characters: a message and its codes


def class_of(text: str, status: int) -> Refusal:
    """Classify a refusal; `status` 0 means that it came inside a stream.

    Only the beginning of the text counts: the patterns may take quadratic time.
    """
    text = text[:_READ].lower()
    for pattern, refusal in _KNOWN:
        if pattern.search(text):
            return refusal
    if status == 413 and "token" in text:
        return TOO_LONG
    may_pass = status >= 500 or not (status or _OWN_FAULT.search(text))
    unknown = Refusal(RefusalKind.UNKNOWN, "", may_pass)
    return _BY_STATUS.get(status, unknown)
