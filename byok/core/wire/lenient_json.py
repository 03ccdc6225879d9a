"""Read the JSON that models write, without guessing.

Accepted beyond RFC 8259, because the meaning is certain: single quotes (with Python
escapes inside them), Python literals, raw control characters in strings, trailing
commas, a missing bracket inside a value whose outer bracket is there, and surplus
closing brackets after a complete value.

Refused, because the text may have been cut: anything that is still open at the end. A
forgotten last brace looks just like a cut stream, and to act on half a command is worse
than to ask the model again.

Refused, because it is ambiguous: a backslash before a character that JSON does not
escape. In a shell command or a regular expression it must stay; in doubled escaping it
must go.
"""

import re
import sys
from typing import Any

from byok.core.wire.json_body import join_surrogates

MAX_DEPTH = 64
_SPACE = re.compile(r"\s*")
_JSON_SPACE = " \t\r\n"
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_ANY_WORDS = _WORDS | _PYTHON_WORDS
_WORD = re.compile(r"[A-Za-z]+")
_ESCAPES = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r",
    "t": "\t",
}  # fmt: skip
_ESCAPES_OF = {
    '"': _ESCAPES,
    "'": {k: v for k, v in _ESCAPES.items() if k != "/"} | {"'": "'"},
}
_HEX_OF = {'"': {"u": 4}, "'": {"u": 4, "x": 2, "U": 8}}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_PLAIN = {quote: re.compile(rf"[^{quote}\\]*") for quote in "\"'"}
_MISSING_BRACKET = "missing closing bracket"
_SURPLUS_BRACKETS = re.compile(r"[\]}\s]+\Z")
_UNFINISHED = re.compile(r"[-+.\w\\]*\Z")  # a word, number or escape at the end


class BrokenJson(ValueError):
    """The text is not a value: it is wrong at the index `at`, or was `cut` there."""

    def __init__(self, message: str, at: int, *, cut: bool) -> None:
        super().__init__(message)
        self.at = at
        self.cut = cut


class LenientParser:
    """A parser for one text; `rules` names the deviations that it has accepted."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self.rules: list[str] = []

    def read_document(self) -> Any:
        """Read the whole text as one value.

        Raises:
            BrokenJson: it is something else, or it was cut.
        """
        value = self._read_value(0)
        self._skip_space()
        if self._position != len(self._text):
            raise self._syntax_error("text after the value")
        return value

    def read_run(self) -> list[Any]:
        """Read the whole text as one or more values in a row.

        Raises:
            BrokenJson: it is something else, or it was cut.
        """
        values = [self._read_value(0)]
        self._skip_space()
        while self._position < len(self._text):
            if _SURPLUS_BRACKETS.match(self._text, self._position):
                if (
                    _MISSING_BRACKET in self.rules
                ):  # then it is uncertain what closes what
                    raise self._syntax_error("brackets do not match")
                self._record_rule("surplus closing bracket")
                break
            values.append(self._read_value(0))
            self._skip_space()
        return values

    def read_value_at(self, at: int) -> tuple[Any, int]:
        """Read the value that begins at an index; return it and the index of its end.

        Raises:
            BrokenJson: it is not a value, or the text ends within it (`cut`).
        """
        self._position = at
        return self._read_value(0), self._position

    def _read_value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise self._syntax_error("nested too deeply")
        match self._peek():
            case "{":
                return self._read_object(depth)
            case "[":
                return self._read_array(depth)
            case '"' | "'" as quote:
                return self._read_string(quote)
            case _:
                return self._read_scalar()

    def _read_object(self, depth: int) -> dict[str, Any]:
        self._open_bracket("}")
        out: dict[str, Any] = {}
        while self._peek() != "}":
            quote = self._peek()
            if quote not in _PLAIN:
                raise self._syntax_error("a key must be quoted")
            key = self._read_string(quote)
            if self._peek() != ":":
                raise self._syntax_error(": is missing")
            self._position += 1
            out[key] = self._read_value(depth + 1)
            if not self._skip_comma("}"):
                return out
        self._position += 1
        return out

    def _read_array(self, depth: int) -> list[Any]:
        self._open_bracket("]")
        out: list[Any] = []
        while self._peek() != "]":
            out.append(self._read_value(depth + 1))
            if not self._skip_comma("]"):
                return out
        self._position += 1
        return out

    def _open_bracket(self, closer: str) -> None:
        """Skip the opening bracket, and a comma if nothing else is inside."""
        self._position += 1
        start = self._position
        if self._peek() == ",":
            self._position += 1
            if self._peek() == closer:
                self._record_rule("trailing comma")
            else:
                self._position = start

    def _skip_comma(self, closer: str) -> bool:
        """Skip what follows a member; False if the container ends here unclosed."""
        match self._peek():
            case ",":
                self._position += 1
                if self._peek() == closer:
                    self._record_rule("trailing comma")
                return True
            case found if found == closer:
                return True
            case "}" | "]":
                self._record_rule(_MISSING_BRACKET)
                return False
            case _:
                raise self._syntax_error("a comma or a bracket is missing")

    def _read_string(self, quote: str) -> str:
        if quote == "'":
            self._record_rule("single quotes")
        self._position += 1
        pieces: list[str] = []
        while True:
            plain = _PLAIN[quote].match(self._text, self._position)
            assert plain is not None  # noqa: S101 - the pattern matches emptiness
            pieces.append(plain.group())
            self._position = plain.end()
            if self._position >= len(self._text):
                raise self._syntax_error("a string is not closed")
            if self._text[self._position] == quote:
                self._position += 1
                break
            pieces.append(self._read_escape(quote))
        if any(char < " " for piece in pieces[::2] for char in piece):
            self._record_rule("raw control character in a string")
        return join_surrogates("".join(pieces))

    def _read_escape(self, quote: str) -> str:
        letter = self._text[self._position + 1 : self._position + 2]
        if plain := _ESCAPES_OF[quote].get(letter):
            self._position += 2
            if letter not in _ESCAPES:
                self._record_rule("python escape")
            return plain
        if size := _HEX_OF[quote].get(letter):
            digits = self._text[self._position + 2 : self._position + 2 + size]
            whole = len(digits) == size and all(c in _HEX_DIGITS for c in digits)
            if whole and (code := int(digits, 16)) <= sys.maxunicode:
                if letter != "u":
                    self._record_rule("python escape")
                self._position += 2 + size
                return chr(code)
        raise self._syntax_error("an invalid escape")

    def _read_scalar(self) -> Any:
        if word := _WORD.match(self._text, self._position):
            name = word.group()
            if name in _ANY_WORDS:
                self._position = word.end()
                if name in _PYTHON_WORDS:
                    self._record_rule("python literal")
                return _ANY_WORDS[name]
        elif number := _NUMBER.match(self._text, self._position):
            self._position = number.end()
            return self._convert_number(number.group())
        raise self._syntax_error("not a JSON value")

    def _convert_number(self, digits: str) -> int | float:
        try:
            number = int(digits) if digits.lstrip("-").isdigit() else float(digits)
        except ValueError:  # Python reads no integer of more than 4,300 digits
            number = float("inf")
        if number in (float("inf"), float("-inf")):
            raise self._syntax_error("a number is too large")
        return number

    def _peek(self) -> str:
        self._skip_space()
        if self._position >= len(self._text):
            raise self._syntax_error("the text ends too early")
        return self._text[self._position]

    def _skip_space(self) -> None:
        if space := _SPACE.match(self._text, self._position):
            self._position = space.end()
            if space.group().strip(_JSON_SPACE):
                self._record_rule("odd white space")

    def _record_rule(self, rule: str) -> None:
        if rule not in self.rules:
            self.rules.append(rule)

    def _syntax_error(self, message: str) -> BrokenJson:
        """Return the error for this position; at the end of the text it means "cut"."""
        cut = (
            self._position > 0
            and _UNFINISHED.match(self._text, self._position) is not None
        )
        return BrokenJson(message, self._position, cut=cut)


def parse_lenient(text: str) -> tuple[Any, list[str]]:
    """Return the value of a text, and the names of the accepted deviations.

    Raises:
        BrokenJson: the text is not a value, or it was cut.
    """
    reader = LenientParser(text)
    return reader.read_document(), reader.rules


def parse_run(text: str) -> tuple[list[Any], list[str]]:
    """Return several values in a row, and the names of the accepted deviations.

    Raises:
        BrokenJson: the text is not a value, or it was cut.
    """
    reader = LenientParser(text)
    return reader.read_run(), reader.rules
