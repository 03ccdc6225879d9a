"""A tool call with its result, and what makes two of them equal."""

from dataclasses import dataclass
from hashlib import blake2b

import orjson

from byok.escapes import escape

_LONGEST_NAME, _LONGEST_ARGUMENTS, _LONGEST_ERROR = 60, 120, 160
_CANONICAL = orjson.OPT_SORT_KEYS


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call of the model, and what the client says became of it.

    `arguments` is the JSON text of an object, `content` the tool's words.
    """

    name: str
    arguments: str
    content: str
    is_error: bool = False

    @property
    def key(self) -> bytes:
        """Equal for the same tool with the same arguments, in any order and spacing."""
        return _digest(self.name, _canonical(self.arguments))

    @property
    def result(self) -> bytes:
        """Equal for the same words of a tool."""
        return _digest("error" if self.is_error else "", self.content)

    @property
    def shown(self) -> str:
        """The tool and the start of its arguments, on one line."""
        arguments = _line(self.arguments, _LONGEST_ARGUMENTS)
        return f"{self.shown_name} with {arguments}"

    @property
    def shown_name(self) -> str:
        """The name of the tool, on one line."""
        return _line(self.name, _LONGEST_NAME)

    @property
    def shown_error(self) -> str:
        """The first words of the result, on one line."""
        return _line(self.content.strip(), _LONGEST_ERROR) or "no result"


def _canonical(arguments: str) -> str:
    """Return one text for equal values; a text that is no JSON stands for itself."""
    try:
        value = orjson.loads(arguments)
        return orjson.dumps(value, option=_CANONICAL).decode()
    except (ValueError, TypeError):  # no JSON, nested too deeply, half an emoji
        return arguments


def _digest(kind: str, text: str) -> bytes:
    data = f"{len(kind)} {kind}{text}".encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=12).digest()


def _line(text: str, longest: int) -> str:
    """Return the start of a stranger's text on one line, in which all can be seen."""
    line = escape(" ".join(text[: 4 * longest].split()))
    return line if len(line) <= longest else f"{line[:longest]}…"
