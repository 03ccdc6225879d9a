"""Aliases for tool names and call ids that an API would refuse.

Aliases are unique within a request. The same name gets the same alias in every request,
which keeps the prompt prefix, and with it the upstream's prompt cache, unchanged.
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
    """A one-to-one mapping from originals to the aliases that are sent.

    `spell` returns the alias of an original. If it is already taken, `spell` is called
    again with 1, 2, ... and must return another one.
    """

    def __init__(self, spell: Callable[[str, int], str]) -> None:
        self._spell = spell
        self._aliases: dict[str, str] = {}
        self._originals: dict[str, str] = {}

    def alias(self, original: str) -> str:
        """Return the alias of an original, which is often the original itself."""
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
        """The originals, by the aliases used so far."""
        return self._originals


@dataclass(frozen=True, slots=True)
class IdRule:
    """The tool call ids that an API accepts.

    Attributes:
        longest: the maximum length, in ASCII; 0 accepts any printable id.
        is_exact: exactly `longest` letters and digits.
        is_plain: letters, digits, _ and - only.
    """

    longest: int = 0
    is_exact: bool = False
    is_plain: bool = False

    def spell(self, call_id: str, again: int) -> str:
        """Return the id, or a digest of it where the API would refuse it.

        Accepted ids are never changed: some gateways hide signatures in them.
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


@dataclass(frozen=True, slots=True)
class NameRule:
    """The names of tools that an API accepts, where it refuses some.

    They begin with a letter, and `sign` may stand between letters and digits; "" if
    nothing may.
    """

    longest: int = _NAME_LENGTH
    sign: str = "_"

    def spell(self, name: str, again: int) -> str:
        """Return a name that is readable, and as much like the original as it may be.

        It has a digest only where names would become the same, or too long.
        """
        stem = re.sub("[^A-Za-z0-9]+", self.sign, name).strip(self.sign) or "tool"
        stem = stem if stem[0].isalpha() else f"t{stem}"
        if not again and len(stem) <= self.longest:
            return stem
        digest = _digest(name, again)[:_DIGEST]
        return f"{stem[: self.longest - _DIGEST - len(self.sign)]}{self.sign}{digest}"


def spell_name(name: str, again: int) -> str:
    """Return a tool's name, or a readable alias of 1 to 64 letters, digits, _ and -."""
    if not again and _SAFE_NAME.match(name):
        return name
    stem = _UNSAFE.sub("_", name).strip("_") or "tool"
    return f"{stem[: _NAME_LENGTH - _DIGEST - 1]}_{_digest(name, again)[:_DIGEST]}"


def _digest(text: str, again: int) -> str:
    raw = f"{again}:{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()
