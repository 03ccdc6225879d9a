"""Aliases for tool names and call ids that an API would refuse.

Aliases are unique within a request. The same name gets the same alias in every request,
so that the prefix of the prompt stays the same and is found in the upstream's cache.
Below are other parts of requests that several dialects share.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from byok.core.chat import (
    Message,
    Part,
    Role,
    TextPart,
    ToolResult,
)
from byok.core.wire.json_fields import parse_object

_SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME_LENGTH = 64
_ID_LENGTH = 64  # of an alias, if the API has no limit
_DIGEST_LENGTH = 8
NO_OUTPUT = "(no output)"
_ERROR_WORDS = ("error", "fail", "exception", "traceback", "fatal")
# Gemini 3 refuses conversations in which the first call of a step has no signature.
# Calls of another model, or whose signature the client lost, get the value that Google
# documents as not checked (Gemini API, Thought Signatures).
NOT_CHECKED = "skip_thought_signature_validator"
_NEEDS_SIGNATURES = re.compile(r"gemini(?!-[12]\b)")

# Returns the alias of an original, given with the number of attempts that returned an
# alias which is already taken; each attempt must return another one.
Spelling: TypeAlias = Callable[[str, int], str]


class Aliases:
    """A one-to-one mapping from originals to the aliases that are sent.

    `originals` maps the aliases used so far to their originals.
    """

    def __init__(self, spell: Spelling) -> None:
        self._spell = spell
        self._aliases: dict[str, str] = {}
        self.originals: dict[str, str] = {}

    def alias(self, original: str) -> str:
        """Return the alias of an original, which is often the original itself."""
        if original not in self._aliases:
            attempts, alias = 0, self._spell(original, 0)
            while alias in self.originals:
                attempts += 1
                alias = self._spell(original, attempts)
            self._aliases[original] = alias
            self.originals[alias] = original
        return self._aliases[original]

    @property
    def are_needed(self) -> bool:
        """Whether any alias differs from its original."""
        return self._aliases != self.originals


class IdRule(Struct, frozen=True):
    """The tool call ids that an API accepts.

    Attributes:
        longest: the maximum length, in ASCII; 0 accepts any printable id.
        is_exact: exactly `longest` letters and digits.
        is_plain: letters, digits, _ and - only.
        is_unique: an id must not occur twice in the conversation.
    """

    longest: int = 0
    is_exact: bool = False
    is_plain: bool = False
    is_unique: bool = False

    def spell(self, call_id: str, again: int) -> str:
        """Return the id, or a digest of it if the API would refuse it.

        Accepted ids are never changed: some gateways hide signatures in them.
        """
        if not again and call_id and self._accepts(call_id):
            return call_id
        return _digest(call_id, again)[: self.longest or _ID_LENGTH]

    def _accepts(self, call_id: str) -> bool:
        if self.is_exact:
            is_plain = call_id.isascii() and call_id.isalnum()
            return is_plain and len(call_id) == self.longest
        if self.longest and (len(call_id) > self.longest or not call_id.isascii()):
            return False
        return not _UNSAFE.search(call_id) if self.is_plain else call_id.isprintable()


ANY_ID = IdRule()


class NameRule(Struct, frozen=True):
    """The names of tools that an API accepts, where it refuses some.

    They consist of letters and digits, begin with a letter, and may contain the
    separator `sign`; "" if there is none.
    """

    longest: int = _MAX_NAME_LENGTH
    sign: str = "_"

    def spell(self, name: str, again: int) -> str:
        """Return an accepted name that is as similar to the original as possible.

        It has a digest only if it would be too long or equal to another name.
        """
        stem = re.sub("[^A-Za-z0-9]+", self.sign, name).strip(self.sign) or "tool"
        stem = stem if stem[0].isalpha() else f"t{stem}"
        if not again and len(stem) <= self.longest:
            return stem
        digest = _digest(name, again)[:_DIGEST_LENGTH]
        length = self.longest - _DIGEST_LENGTH - len(self.sign)
        return f"{stem[:length]}{self.sign}{digest}"


def spell_name(name: str, again: int) -> str:
    """Return a tool's name, or a readable alias of 1 to 64 letters, digits, _ and -."""
    if not again and _SAFE_NAME.match(name):
        return name
    stem = _UNSAFE.sub("_", name).strip("_") or "tool"
    digest = _digest(name, again)[:_DIGEST_LENGTH]
    return f"{stem[: _MAX_NAME_LENGTH - _DIGEST_LENGTH - 1]}_{digest}"


def _digest(text: str, again: int) -> str:
    raw = f"{again}:{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()


def result_text(result: ToolResult) -> str:
    """Return a result as a non-empty string, with a mark if it is an error."""
    content = result.content if result.content.strip() else NO_OUTPUT
    if result.is_error and not content.lstrip().lower().startswith(_ERROR_WORDS):
        return f"ERROR: {content}"
    return content


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a body that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def read_arguments(arguments: str) -> dict[str, Any]:
    """Return a call's arguments; a text that is no object becomes a field of one."""
    parsed = parse_object(arguments)
    return {"arguments": arguments} if parsed is None else parsed


def move_images(messages: Iterable[Message]) -> Iterator[Message]:
    """Move the images of results into the user message that follows them.

    If no user message follows, one with the images alone is inserted.
    """
    images: list[Part] = []
    tool = Role.TOOL  # looked up once: Python 3.11 takes .1 µs for it
    for message in messages:
        if message.role is tool:
            for part in message.parts:
                if isinstance(part, ToolResult) and part.images:
                    call = f"{part.name} ({part.call_id})"
                    for number, image in enumerate(part.images, 1):
                        caption = f"Image {number}, output of {call}:"
                        images += (TextPart(caption), image)
                    message = Message(Role.TOOL, (replace(part, images=()),))
        elif images and message.role is Role.USER:
            message = Message(Role.USER, (*images, *message.parts))
            images = []
        elif images:
            yield Message(Role.USER, tuple(images))
            images = []
        yield message
    if images:
        yield Message(Role.USER, tuple(images))


def wants_signatures(model: str) -> bool:
    """Tell whether a model refuses tool calls without a signature."""
    return bool(_NEEDS_SIGNATURES.search(model.lower()))
