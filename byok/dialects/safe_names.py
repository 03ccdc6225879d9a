"""Aliases for tool names and call ids that an API would refuse.

Aliases are unique within a request. The same name gets the same alias in every request,
which keeps the prompt prefix, and with it the upstream's prompt cache, unchanged.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from byok.core.chat import (
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ToolResult,
)
from byok.core.wire.json_fields import parse_object

_SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_LENGTH = 64
_ID_LENGTH = 64  # of an alias where ids have no limit
_DIGEST = 8

# Returns the alias of an original. If it is already taken, it is called again with 1,
# 2, ... and must return another one.
Spelling: TypeAlias = Callable[[str, int], str]


class Aliases:
    """A one-to-one mapping from originals to the aliases that are sent.

    `originals` are by the aliases used so far.
    """

    def __init__(self, spell: Spelling) -> None:
        self._spell = spell
        self._aliases: dict[str, str] = {}
        self.originals: dict[str, str] = {}

    def alias(self, original: str) -> str:
        """Return the alias of an original, which is often the original itself."""
        if original not in self._aliases:
            again, alias = 0, self._spell(original, 0)
            while alias in self.originals:
                again += 1
                alias = self._spell(original, again)
            self._aliases[original] = alias
            self.originals[alias] = original
        return self._aliases[original]

    @property
    def are_needed(self) -> bool:
        """Whether an alias is another one than its original."""
        return self._aliases != self.originals


class IdRule(Struct, frozen=True):
    """The tool call ids that an API accepts.

    Attributes:
        longest: the maximum length, in ASCII; 0 accepts any printable id.
        is_exact: exactly `longest` letters and digits.
        is_plain: letters, digits, _ and - only.
        is_unique: calls and results are paired by them in the whole conversation.
    """

    longest: int = 0
    is_exact: bool = False
    is_plain: bool = False
    is_unique: bool = False

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


class NameRule(Struct, frozen=True):
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


# Parts of requests that several dialects share: results, arguments, signatures.


NO_OUTPUT = "(no output)"
_ERROR_WORDS = ("error", "fail", "exception", "traceback", "fatal")


def result_text(result: ToolResult) -> str:
    """Return a result as one non-empty string that marks an error."""
    content = result.content if result.content.strip() else NO_OUTPUT
    if result.is_error and not content.lstrip().lower().startswith(_ERROR_WORDS):
        return f"ERROR: {content}"
    return content


def read_arguments(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call; a text that is no object becomes one field."""
    found = parse_object(arguments)
    return {"arguments": arguments} if found is None else found


def move_images(messages: Iterable[Message]) -> Iterator[Message]:
    """Move the images of results into the user message that follows them.

    If none follows, a user message with the images alone is inserted.
    """
    images: list[Part] = []
    tool = Role.TOOL  # looked up once: Python 3.11 takes .1 µs for it
    for message in messages:
        if message.role is tool:
            for part in message.parts:
                if isinstance(part, ToolResult) and part.images:
                    images += _with_captions(part)
                    bare = tuple(map(_without_images, message.parts))
                    message = Message(Role.TOOL, bare)
        elif images and message.role is Role.USER:
            message = Message(Role.USER, (*images, *message.parts))
            images = []
        elif images:
            yield Message(Role.USER, tuple(images))
            images = []
        yield message
    if images:
        yield Message(Role.USER, tuple(images))


def _without_images(part: Part) -> Part:
    return replace(part, images=()) if isinstance(part, ToolResult) else part


def _with_captions(result: ToolResult) -> Iterator[TextPart | ImagePart]:
    for number, image in enumerate(result.images, 1):
        whose = f"{result.name} ({result.call_id})"
        yield TextPart(f"Image {number}, output of {whose}:")
        yield image


# Gemini's thought signatures: which models want them, and what replaces a missing one.
#
# Gemini 3 refuses conversations in which the first call of a step has no signature.
# Calls of another model, or whose signature the client lost, get the value that Google
# documents as not checked (Gemini API, Thought Signatures).


NOT_CHECKED = "skip_thought_signature_validator"
_ASKED = re.compile(r"gemini(?!-[12]\b)")


def wants_signatures(model: str) -> bool:
    """Tell whether a model refuses tool calls without a signature."""
    return bool(_ASKED.search(model.lower()))
