"""Aliases for tool names and call ids that an API would refuse.

Aliases are unique within one request, and equal in each request: an upstream's prompt
cache needs the same bytes for the same conversation.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_LENGTH = 64
_ID_LENGTH = 64  # of an alias where ids have no limit
_DIGEST = 8


class Aliases:
    """Originals and the aliases that are sent for them; no two share one.

    `spell` gives the alias of an original. Where that is in use already, it is called
    again with 1, 2, ... and must give another one.
    """

    def __init__(self, spell: Callable[[str, int], str]) -> None:
        self._spell = spell
        self._aliases: dict[str, str] = {}
        self._originals: dict[str, str] = {}

    def alias(self, original: str) -> str:
        """Return what is sent instead of an original; often the same."""
        if original not in self._aliases:
            again, alias = 0, self._spell(original, 0)
            while alias in self._originals:
                again += 1
                alias = self._spell(original, again)
            self._aliases[original] = alias
            self._originals[alias] = original
        return self._aliases[original]

    @property
    def originals(self) -> Mapping[str, str]:
        """The originals by the aliases that were given so far."""
        return self._originals


@dataclass(frozen=True, slots=True)
class IdRule:
    """Which tool call ids an API takes.

    Attributes:
        longest: the most characters, of ASCII only; 0 takes any printable id.
        is_exact: just `longest` characters, letters and digits only.
        is_plain: letters, digits, _ and - only.
    """

    longest: int = 0
    is_exact: bool = False
    is_plain: bool = False

    def spell(self, call_id: str, again: int) -> str:
        """Return an id, or a digest of it where it would be refused.

        Whatever may be sent stays as it is: some gateways hide signatures in ids.
        """
        if not again and call_id and self._fits(call_id):
            return call_id
        return _digest(call_id, again)[: self.longest or _ID_LENGTH]

    def _fits(self, call_id: str) -> bool:
        if self.is_exact:
            is_plain = call_id.isascii() and call_id.isalnum()
            return is_plain and len(call_id) == self.longest
        if self.longest and (len(call_id) > self.longest or not call_id.isascii()):
            return False
        return not _UNSAFE.search(call_id) if self.is_plain else call_id.isprintable()


ANY_ID = IdRule()


def spell_name(name: str, again: int) -> str:
    """Return a tool's name, or a readable alias of 1 to 64 letters, digits, _ and -."""
    if not again and _SAFE_NAME.match(name):
        return name
    stem = _UNSAFE.sub("_", name).strip("_") or "tool"
    return f"{stem[: _NAME_LENGTH - _DIGEST - 1]}_{_digest(name, again)[:_DIGEST]}"


def _digest(text: str, again: int) -> str:
    raw = f"{again}:{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()
