"""User-Agent headers of the clients: a family and a version, for logs.

Their shapes: `Augment.vscode-augment/<version> (<system>) vscode/<version>`, the same
with `cursor/` and others, `augment.intellij/<version> (...)`,
`augment.cli/<version> (...)/interactive`, `augment.sdk.context/<version> (python)`,
`OpenAI/Python <version>`, `byok.replay/<version>`.
"""

import re
from functools import lru_cache

OTHER = "other"
REPLAY = "byok-replay"  # `byok replay`, whose requests are captured
_VERSION = r"(\d[\w.+-]{0,31})"
_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("vscode", rf"augment\.vscode-augment/{_VERSION}"),
        ("intellij", rf"augment\.intellij/{_VERSION}"),
        ("cli", rf"augment\.cli/{_VERSION}"),
        ("sdk", rf"augment\.sdk\.[a-z]{{1,16}}/{_VERSION}"),
        (REPLAY, rf"byok\.replay/{_VERSION}"),
        ("openai-python", rf"(?:Async)?OpenAI/Python {_VERSION}"),
        ("openai-js", rf"OpenAI/JS {_VERSION}"),
    )
)


@lru_cache(maxsize=64)  # every request has one, and nearly always the same
def client_of(user_agent: str) -> str:
    """Return a known client as `family/version`, else `other`.

    Nothing else of the header is kept: it is the client's to choose.
    """
    for name, pattern in _FAMILIES:
        if found := pattern.match(user_agent):
            return f"{name}/{found[1]}"
    return OTHER if user_agent else ""
