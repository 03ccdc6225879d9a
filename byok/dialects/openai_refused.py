"""What to leave out of a request that the upstream refused by naming a parameter."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

# Parameters without which the request still means the same. The first that the
# refusal names is dropped; the order puts the more specific words first.
_DROPPABLE = (
    "stream_options",
    "parallel_tool_calls",
    "tool_choice",
    "temperature",
    "top_p",
)
_CAPS = ("max_completion_tokens", "max_tokens")


def refused_parameter(
    body: Mapping[str, Any], message: str, extra: Iterable[str] = ()
) -> str:
    """Return the parameter of the body that the refusal names, or "".

    `extra` are the fields that the user added and that may be left out as well.
    """
    words = set(re.findall(r"[a-z_]+", message.lower()))
    candidates = (*_DROPPABLE, *_CAPS, *extra)
    return next((name for name in candidates if name in words and name in body), "")


def without(body: Mapping[str, Any], refused: Iterable[str]) -> dict[str, Any]:
    """Return the body without the refused parameters; a cap changes its name."""
    refused = set(refused)
    out = {key: value for key, value in body.items() if key not in refused}
    caps = [name for name in _CAPS if name in refused and name in body]
    if len(caps) == 1:
        other = next(name for name in _CAPS if name not in caps)
        if other not in refused:
            out[other] = body[caps[0]]
    return out
