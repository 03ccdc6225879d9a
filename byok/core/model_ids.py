"""Ids of models as clients see them: `byok:<upstream>:<model>`, or `byok:<alias>`."""

from dataclasses import dataclass

MAX_ID_LENGTH = 512  # characters
PREFIX = "byok:"


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One model of one upstream, or the user's own name for it."""

    upstream: str
    model: str
    alias: str = ""

    @property
    def id(self) -> str:
        """The id that clients send back."""
        if self.alias:
            return f"{PREFIX}{self.alias}"
        return f"{PREFIX}{self.upstream}:{self.model}"

    @property
    def label(self) -> str:
        """The name that is shown."""
        return self.alias or self.model


def split_id(model_id: str) -> tuple[str, str] | None:
    """Split `byok:<upstream>:<model>` at the first two colons; None for others."""
    prefix, _, rest = model_id.partition(":")
    upstream, colon, model = rest.partition(":")
    unfit = len(model_id) > MAX_ID_LENGTH or not model_id.isprintable()
    if prefix != "byok" or not colon or not upstream or not model or unfit:
        return None
    return upstream, model
