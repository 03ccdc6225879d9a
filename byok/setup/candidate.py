"""An upstream that could be used, and how it was found."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from byok.config import UpstreamSettings
from byok.dialects.model_facts import ModelFacts


class FoundBy(StrEnum):
    """How an upstream was found; the value is shown to users."""

    SETTINGS = "your settings"
    SERVER = "runs on this machine"
    KEY = "has a key"
    NAME = "named by you"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An upstream that could be used.

    `models` are those that a local server lists; hosted ones are not asked before they
    are chosen. `key_source` says where a key is, never which. `trouble` says why it
    cannot be used now, "" if it can. `is_offered` is False where a key has other uses
    too, so that byok does not choose it by itself.
    """

    name: str
    section: UpstreamSettings
    address: str
    found_by: FoundBy
    models: tuple[ModelFacts, ...] = ()
    key_source: str = ""
    trouble: str = ""
    is_offered: bool = True

    @property
    def detail(self) -> str:
        """What a user wants to know before choosing it."""
        if self.trouble:
            return self.trouble
        known = [f"key in {self.key_source}"] if self.key_source else []
        if self.models:
            number = len(self.models)
            known.append(f"{number} model{'' if number == 1 else 's'}")
        return ", ".join(known)


def best_candidate(candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the first one that can be used and may be chosen without a question."""
    usable = (one for one in candidates if one.is_offered and not one.trouble)
    return next(usable, None)
