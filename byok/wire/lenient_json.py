"""Read the JSON that models write, without guessing.

Accepted beyond RFC 8259, because the meaning stays certain: single quotes and
Python's literals and escapes, raw control characters inside strings, a trailing
comma, and a bracket left out inside a value whose outer bracket is there.
Refused, because the text may have been cut: anything still open at the end. A
dropped last brace cannot be told from a cut stream, and acting on half a command
is worse than asking the model again.
"""

import re
from typing import Any

from byok.wire.surrogates import joined

MAX_DEPTH = 64
_SPACE = re.compile(r"\s*")
_JSON_SPACE = " \t\r\n"
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_WORD = re.compile(r"[A-Za-z]+")
_ESCAPES = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r",
    "t": "\t", "'": "'",
}  # fmt: skip
_HEX = {"u": 4, "x": 2, "U": 8}
_PLAIN = {quote: re.compile(rf"[^{quote}\\]*") for quote in "\"'"}
_AFTER_VALUE = ",]}"


class Lenient:
    """One reading of one text; `rules` names the liberties that were needed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.rules: list[str] = []

    def document(self) -> Any:
        """Read the whole text as one value.

        Raises:
            ValueError: it is something else, or it was cut.
        """
        value = self._value(0)
        self._skip()
        if self._at != len(self._text):
            raise ValueError("text after the value")
        return value

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        match self._peek():
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"' | "'" as quote:
                return self._string(quote)
            case _:
                return self._scalar()

    def _object(self, depth: int) -> dict[str, Any]:
        self._opened("}")
        out: dict[str, Any] = {}
        while self._peek() != "}":
            quote = self._peek()
            if quote not in _PLAIN:
                raise ValueError("a key must be quoted")
            key = self._string(quote)
            self._expect(":")
            out[key] = self._value(depth + 1)
            if not self._comma("}"):
                return out
        self._at += 1
        return out

    def _array(self, depth: int) -> list[Any]:
        self._opened("]")
        out: list[Any] = []
        while self._peek() != "]":
            out.append(self._value(depth + 1))
            if not self._comma("]"):
                return out
        self._at += 1
        return out

    def _opened(self, closer: str) -> None:
        """Pass the opening bracket, and a comma that is all there is inside."""
        self._at += 1
        start = self._at
        if self._peek() == ",":
            self._at += 1
            if self._peek() == closer:
                self._note("trailing comma")
            else:
                self._at = start

    def _comma(self, closer: str) -> bool:
        """Pass what follows a member; False when the container ends here unclosed."""
        match self._peek():
            case ",":
                self._at += 1
                if self._peek() == closer:
                    self._note("trailing comma")
                return True
            case found if found == closer:
                return True
            case "}" | "]":
                self._note("missing closing bracket")
                return False
            case _:
                raise ValueError("a comma or a bracket is missing")

    def _string(self, quote: str) -> str:
        if quote == "'":
            self._note("single quotes")
        self._at += 1
        pieces: list[str] = []
        while True:
            plain = _PLAIN[quote].match(self._text, self._at)
            assert plain is not None  # noqa: S101 - the pattern matches emptiness
            pieces.append(plain.group())
            self._at = plain.end()
            if self._at >= len(self._text):
                raise ValueError("a string was left open")
            if self._text[self._at] == quote:
                self._at += 1
                break
            pieces.append(self._escape())
        if any(char < " " for piece in pieces[::2] for char in piece):
            self._note("raw control character in a string")
        return joined("".join(pieces))

    def _escape(self) -> str:
        letter = self._text[self._at + 1 : self._at + 2]
        if letter in _ESCAPES and letter:
            self._at += 2
            if letter == "'":
                self._note("python escape")
            return _ESCAPES[letter]
        if size := _HEX.get(letter):
            digits = self._text[self._at + 2 : self._at + 2 + size]
            if len(digits) < size or not all(c in _HEX_DIGITS for c in digits):
                raise ValueError("a broken escape")
            if letter != "u":
                self._note("python escape")
            self._at += 2 + size
            return chr(int(digits, 16))
        raise ValueError("a broken escape")

    def _scalar(self) -> Any:
        if word := _WORD.match(self._text, self._at):
            name = word.group()
            self._at = word.end()
            if name in _PYTHON_WORDS:
                self._note("python literal")
                return _PYTHON_WORDS[name]
            if name in _WORDS:
                return _WORDS[name]
        elif number := _NUMBER.match(self._text, self._at):
            self._at = number.end()
            return _to_number(number.group())
        raise ValueError("no JSON value")

    def _peek(self) -> str:
        self._skip()
        if self._at >= len(self._text):
            raise ValueError("the text ends too early")
        return self._text[self._at]

    def _expect(self, char: str) -> None:
        if self._peek() != char:
            raise ValueError(f"{char} is missing")
        self._at += 1

    def _skip(self) -> None:
        if space := _SPACE.match(self._text, self._at):
            self._at = space.end()
            if space.group().strip(_JSON_SPACE):
                self._note("odd white space")

    def _note(self, rule: str) -> None:
        if rule not in self.rules:
            self.rules.append(rule)


_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def _to_number(digits: str) -> int | float:
    if digits.lstrip("-").isdigit():
        return int(digits)
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return number


def parse_lenient(text: str) -> tuple[Any, list[str]]:
    """Return the value and the names of the liberties taken.

    Raises:
        ValueError: the text is no value, or it was cut.
    """
    reader = Lenient(text)
    return reader.document(), reader.rules
