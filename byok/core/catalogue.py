"""The catalogue of one language: it splits a message, and translates each part."""

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
_MAX_CHARS = 5_000  # of a text that is split into sentences
_MAX_DEPTH = 4  # of texts in values of texts


class _Template(NamedTuple):
    """A text with values: its fixed parts, the values' names, and the translation."""

    parts: Sequence[str]
    names: Sequence[str]
    translation: str

    def values_in(self, text: str) -> dict[str, str] | None:
        """Return the values with which this template gives the text, or None."""
        first, *middle, last = self.parts
        position, end = len(first), len(text) - len(last)
        if position > end or not (text.startswith(first) and text.endswith(last)):
            return None
        values = []
        for part in middle:
            begin = text.find(part, position, end)
            if begin < 0:
                return None
            values.append(text[position:begin])
            position = begin + len(part)
        by_name = dict(zip(self.names, (*values, text[position:end]), strict=True))
        counts = (value for name, value in by_name.items() if name.startswith(_COUNT))
        return by_name if all(map(_NUMBER.fullmatch, counts)) else None

    def translate(self, values: Mapping[str, str]) -> str:
        """Return the translation with these values."""
        return SLOT.sub(lambda slot: values.get(slot[1], slot[0]), self.translation)


class Catalogue:
    """The texts of a language, by the English ones."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Prepare `texts`, translations by English text; {name} stands for a value."""
        self._whole = {key: text for key, text in texts.items() if not SLOT.search(key)}
        templates = (
            _Template(SLOT.split(key)[::2], SLOT.findall(key), text)
            for key, text in texts.items()
            if SLOT.search(key)
        )
        # Templates that begin with a fixed text come first, then those with the longest
        # fixed parts: they are the least ambiguous.
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
        if not body or len(body) > _MAX_CHARS:
            return text
        translated = self._as_whole(body, depth)
        if translated is None:
            sentences = _SENTENCES.split(body)
            parts = [self._as_sentence(sentence, depth) for sentence in sentences]
            if not all(parts):
                translated = self._as_whole(body, depth, is_any=True)
            if translated is None:
                pairs = zip(parts, sentences, strict=True)
                translated = _join_sentences(part or english for part, english in pairs)
        return text.replace(body, translated, 1)

    def _as_sentence(self, text: str, depth: int) -> str | None:
        return (
            self._as_whole(text, depth)
            or self._as_clauses(text, depth)
            or self._as_named(text, depth)
            or self._as_bracketed(text, depth)
            or self._as_ended(text, depth)
        )

    def _as_bracketed(self, text: str, depth: int) -> str | None:
        """Translate a text that ends in brackets; before them there may be a name."""
        begin, sign, _ = text.partition(_BRACKETS)
        in_brackets = self._as_whole(text[len(begin) + 1 :], depth) if sign else None
        beginning = self._as_whole(begin, depth) or ("" if " " in begin else begin)
        return f"{beginning}{in_brackets}" if beginning and in_brackets else None

    def _as_ended(self, text: str, depth: int) -> str | None:
        """Translate a sentence whose text is in the catalogue without a full stop."""
        ends = text.endswith(_END[0]) and _END in self._whole
        translated = self._as_sentence(text[:-1], depth) if ends else None
        return f"{translated}{self._whole[_END]}" if translated else None

    def _as_clauses(self, text: str, depth: int) -> str | None:
        """Translate a text of clauses, if each is in the catalogue or is a name."""
        clauses = _CLAUSES.split(text)  # every second one is a sign
        parts = [
            self._as_whole(clause, depth) or self._as_bracketed(clause, depth)
            for clause in clauses
        ]
        names = [" " not in clause for clause in clauses[::2]]
        is_known = not all(names) and all(map(or_, names, map(bool, parts[::2])))
        pairs = zip(parts, clauses, strict=True)
        return "".join(part or clause for part, clause in pairs) if is_known else None

    def _as_named(self, text: str, depth: int) -> str | None:
        """Translate a text that begins with a name, such as that of an upstream."""
        name, sign, rest = text.partition(_BEHIND_NAME)
        if not rest or depth == _MAX_DEPTH:
            return None
        translated = self.translate(rest, depth + 1)
        if translated == rest:
            return None
        begin = self._whole.get(name, name) if " " in name else name
        return f"{begin}{self._whole.get(sign, sign)}{translated}"

    def _as_whole(self, text: str, depth: int, *, is_any: bool = False) -> str | None:
        """Translate a text as a whole; its values hold no sentences unless `is_any`."""
        if (whole := self._whole.get(text)) is not None or depth == _MAX_DEPTH:
            return whole
        if text[:-1] in self._whole and (ended := self._as_ended(text, depth)):
            return ended
        for template in self._templates:
            values = template.values_in(text)
            if values is None:
                continue
            if is_any or not any(map(_SENTENCES.search, values.values())):
                translated = template.translate(
                    {
                        name: self._as_value(name, value, depth + 1)
                        for name, value in values.items()
                    }
                )
                ends = text.endswith(_END[0]) and not is_any
                return self._end_alike(translated) if ends else translated
        return None

    def _end_alike(self, text: str) -> str:
        """Translate the full stop, if it was a part of the last value."""
        is_end = re.search(r"[^. ]\.$", text) and _END in self._whole
        return f"{text[:-1]}{self._whole[_END]}" if is_end else text

    def _as_value(self, name: str, value: str, depth: int) -> str:
        """Translate a value; a single word is taken for a name unless it is a term."""
        is_text = " " in value or name.startswith(_TERM)
        if not is_text:
            return value
        translated = self.translate(value, depth)
        return translated if translated.lstrip()[:1].isascii() else translated.lstrip()


def _join_sentences(sentences: Iterable[str]) -> str:
    """Join sentences by spaces, but not behind a full-width full stop."""
    joined = ""
    for sentence in sentences:
        joined += " " if joined and joined[-1].isascii() else ""
        joined += sentence
    return joined
