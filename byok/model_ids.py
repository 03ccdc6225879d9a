"""Ids of models as clients see them: `byok:<upstream>:<model>`."""

from dataclasses import dataclass

MAX_ID_LENGTH = 512  # characters


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One model of one upstream."""

    upstream: str
    model: str

    @property
    def id(self) -> str:
        """The id that clients send back."""
        return f"byok:{self.upstream}:{self.model}"


def split_id(model_id: str) -> tuple[str, str] | None:
    """Split `byok:<upstream>:<model>` at the first two colons; None for others."""
    prefix, _, rest = model_id.partition(":")
    upstream, colon, model = rest.partition(":")
    unfit = len(model_id) > MAX_ID_LENGTH or not model_id.isprintable()
    if prefix != "byok" or not colon or not upstream or not model or unfit:
        return None
    return upstream, model
