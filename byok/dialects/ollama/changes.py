"""A weaker `think` for models of Ollama that refuse it."""

from byok.chat import Json
from byok.dialects.parameter_rows import drop_parameter
from byok.dialects.remedies import Body, RefusedRequest, Remedy, RemedyRow
from byok.errors import RefusalKind

_UNCLEAR = (RefusalKind.UNKNOWN, RefusalKind.BAD_PARAMETER)


def _find_think(refused: RefusedRequest) -> tuple[str, str] | None:
    """Find a refused `think`: a level may be no more than on or off to a model."""
    is_named = "think" in refused.text.lower() and "think" in refused.body
    if not is_named or refused.error.kind not in _UNCLEAR:
        return None
    is_level = isinstance(refused.body["think"], str)
    return ("think", "switch" if is_level else "drop")


def _change_think(body: Json, remedy: Remedy) -> Body:
    if remedy.version == "drop":
        return drop_parameter(body, "think")
    is_level = isinstance(body.get("think"), str)
    return {**body, "think": True} if is_level else dict(body)


THINK_ROW = RemedyRow(_find_think, _change_think)
