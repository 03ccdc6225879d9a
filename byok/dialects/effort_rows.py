"""The remedy for a refused effort: the nearest of the values that a refusal names."""

import re

from byok.chat import Json
from byok.dialects.efforts import EFFORTS, nearest_effort
from byok.dialects.parameter_rows import drop_parameter, read_parameter, set_parameter
from byok.dialects.remedies import Body, RefusedRequest, Remedy, RemedyRow

# "Supported values are: 'low', 'medium', and 'high'." (OpenAI, xAI, Groq)
_ACCEPTED = re.compile(
    r"(?:supported values are|must be one of|expected one of|allowed values)"
    r"\W+(.{1,200})"
)


def effort_row(path: str) -> RemedyRow:
    """Return the row for an effort that a model does not accept, by its path."""

    def find(refused: RefusedRequest) -> tuple[str, str] | None:
        text, sent = refused.text.lower(), read_parameter(refused.body, path)
        found = _ACCEPTED.search(text)
        if not found or not isinstance(sent, str):
            return None
        words = re.findall(r"[a-z]+", found[1])
        accepted = [word for word in words if word in EFFORTS]
        is_meant = "effort" in text or f"'{sent}'" in text
        is_other = accepted and sent not in accepted
        return (path, " ".join(accepted)) if is_meant and is_other else None

    return RemedyRow(find, _use_nearest)


def _use_nearest(body: Json, remedy: Remedy) -> Body:
    sent = read_parameter(body, remedy.what)
    if not isinstance(sent, str):
        return dict(body)
    nearest = nearest_effort(sent, remedy.version.split())
    if not nearest:
        return drop_parameter(body, remedy.what)
    return set_parameter(body, remedy.what, nearest)
