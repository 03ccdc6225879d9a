"""One language's catalogue: takes a message apart, and translates each part."""

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import or_
from typing import NamedTuple

SLOT = re.compile(r"\{(\w+)\}")
_COUNT, _NUMBER = "count", re.compile(r"[\d.,]+")
_TERM = "term"
_SENTENCES = re.compile(r"(?<=[.?!]) (?=\S)")
_BEHIND_NAME = ": "
_BRACKETS = " ("
_END = ". "
_CLAUSES = re.compile(r"([,;] )")
_LONGEST = 5_000  # characters that are looked through for sentences
_DEEPEST = 4  # texts in values of texts


class _Template(NamedTuple):
    """A text with values: its fixed parts, the values' names, and the translation."""

    parts: Sequence[str]
    names: Sequence[str]
    translation: str

    def values_in(self, text: str) -> dict[str, str] | None:
        """Return the values with which this is the text; None if there are none."""
        first, *middle, last = self.parts
        at, end = len(first), len(text) - len(last)
        if at > end or not (text.startswith(first) and text.endswith(last)):
            return None
        values = []
        for part in middle:
            found = text.find(part, at, end)
            if found < 0:
                return None
            values.append(text[at:found])
            at = found + len(part)
        given = dict(zip(self.names, (*values, text[at:end]), strict=True))
        counts = (value for name, value in given.items() if name.startswith(_COUNT))
        return given if all(map(_NUMBER.fullmatch, counts)) else None

    def translate(self, values: Mapping[str, str]) -> str:
        """Return the translation with these values."""
        return SLOT.sub(lambda slot: values.get(slot[1], slot[0]), self.translation)


class Catalogue:
    """The texts of a language, by the English ones."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Prepare the texts; a value is {name} in both languages."""
        self._whole = {key: text for key, text in texts.items() if not SLOT.search(key)}
        templates = (
            _Template(SLOT.split(key)[::2], SLOT.findall(key), text)
            for key, text in texts.items()
            if SLOT.search(key)
        )
        # A text that begins alike is the likeliest, then the one with most in common.
        self._templates = sorted(
            templates,
            key=lambda template: (
                not template.parts[0],
                -sum(map(len, template.parts)),
            ),
        )

    def translate(self, text: str, depth: int = 0) -> str:
        """Return a text in this language, as a whole, by sentences or by clauses."""
        if text in self._whole:
            return self._whole[text]
        body = text.strip(" ")
        if not body or len(body) > _LONGEST:
            return text
        done = self._whole_text(body, depth)
        if done is None:
            sentences = _SENTENCES.split(body)
            known = [self._sentence(sentence, depth) for sentence in sentences]
            done = None if all(known) else self._whole_text(body, depth, is_any=True)
            if done is None:
                pairs = zip(known, sentences, strict=True)
                done = _join_sentences(one or english for one, english in pairs)
        return text.replace(body, done, 1)

    def _sentence(self, text: str, depth: int) -> str | None:
        return (
            self._whole_text(text, depth)
            or self._clauses(text, depth)
            or self._behind_name(text, depth)
            or self._before_brackets(text, depth)
            or self._ended(text, depth)
        )

    def _before_brackets(self, text: str, depth: int) -> str | None:
        """Return a text, or a name, that ends with a text in brackets."""
        begin, sign, _ = text.partition(_BRACKETS)
        rest = self._whole_text(text[len(begin) + 1 :], depth) if sign else None
        known = self._whole_text(begin, depth) or ("" if " " in begin else begin)
        return f"{known}{rest}" if known and rest else None

    def _ended(self, text: str, depth: int) -> str | None:
        """Return a sentence of a text that is known without its end."""
        ends = text.endswith(_END[0]) and _END in self._whole
        known = self._sentence(text[:-1], depth) if ends else None
        return f"{known}{self._whole[_END]}" if known else None

    def _clauses(self, text: str, depth: int) -> str | None:
        """Return a text of clauses that are all known, or names."""
        clauses = _CLAUSES.split(text)  # every second one is a sign
        done = [
            self._whole_text(clause, depth) or self._before_brackets(clause, depth)
            for clause in clauses
        ]
        names = [" " not in clause for clause in clauses[::2]]
        is_known = not all(names) and all(map(or_, names, map(bool, done[::2])))
        pairs = zip(done, clauses, strict=True)
        return "".join(known or clause for known, clause in pairs) if is_known else None

    def _behind_name(self, text: str, depth: int) -> str | None:
        """Return a text that begins with a name, such as that of an upstream."""
        name, sign, rest = text.partition(_BEHIND_NAME)
        if not rest or depth == _DEEPEST:
            return None
        known = self.translate(rest, depth + 1)
        begin = self._whole.get(name, name) if " " in name else name
        return None if known == rest else f"{begin}{self._whole.get(sign, sign)}{known}"

    def _whole_text(self, text: str, depth: int, *, is_any: bool = False) -> str | None:
        """Return a text without sentences in its values, or with any values."""
        if (whole := self._whole.get(text)) is not None or depth == _DEEPEST:
            return whole
        if text[:-1] in self._whole and (ended := self._ended(text, depth)):
            return ended
        for template in self._templates:
            values = template.values_in(text)
            if values is None:
                continue
            if is_any or not any(map(_SENTENCES.search, values.values())):
                done = template.translate(
                    {
                        name: self._value(name, value, depth + 1)
                        for name, value in values.items()
                    }
                )
                ends = text.endswith(_END[0]) and not is_any
                return self._end_alike(done) if ends else done
        return None

    def _end_alike(self, text: str) -> str:
        """Return a text whose last value took the end of the sentence with it."""
        is_end = re.search(r"[^. ]\.$", text) and _END in self._whole
        return f"{text[:-1]}{self._whole[_END]}" if is_end else text

    def _value(self, name: str, value: str, depth: int) -> str:
        """Return a value; one of a single word may be a name, unless it is a term."""
        is_text = " " in value or name.startswith(_TERM)
        if not is_text:
            return value
        done = self.translate(value, depth)
        return done if done.lstrip()[:1].isascii() else done.lstrip()


def _join_sentences(sentences: Iterable[str]) -> str:
    """Join sentences; there is no space behind a full-width sign."""
    done = ""
    for sentence in sentences:
        done += " " if done and done[-1].isascii() else ""
        done += sentence
    return done
