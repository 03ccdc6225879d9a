"""Remove a model's remarks that stand before its code, or instead of it.

Certain remarks are dropped: sentences before a fence, a first line that announces the
code. An uncertain answer fails, because the client would replace code with it.
"""

import re
from collections.abc import Iterator

from byok.augment.fences import LINE
from byok.augment.talk import (
    Holds,
    is_lead,
    is_refusal,
    is_talk,
    may_be_words,
    may_become_words,
    may_open_label,
    may_open_remark,
    uncertain,
)

_FENCE = re.compile(r" {0,3}(?:`{3,}|~{3,})[ \t]*([^`\r\n]*)\s*\Z")
_MARKS = re.compile(r" {0,3}~{1,2}\Z")  # may become a fence
_MOST_HELD, _MOST_AMONG_WORDS = 4096, 600  # characters
_FEWEST = 3  # lines of a file; a new version keeps some of so many


class WithoutTalk:
    """Stage[str, str] that removes remarks before the code.

    As long as the answer may be words, it is held back; if it `streams`, only if it
    begins like a remark. `old` is the text that it replaces; the file `holds` code,
    data or words, and among words only what nobody would write there counts as a
    remark. `names` are the languages of fences that are not part of the text, None for
    all.
    """

    def __init__(
        self,
        old: str,
        holds: Holds,
        names: frozenset[str] | None = None,
        *,
        streams: bool = False,
    ) -> None:
        self._old = old
        self._known = significant_lines(old)
        self._holds = Holds.WORDS if is_talk(old) else holds
        self._names = names
        self._among_words = self._holds is Holds.WORDS
        self._streams = streams
        self._limit = _MOST_AMONG_WORDS if self._among_words else _MOST_HELD
        self._place = 0  # offset of the line that is examined
        self._held: str | None = ""  # None once it is decided

    def feed(self, text: str, /) -> Iterator[str]:
        """Return the code from where it is certain to be code."""
        if self._held is None:
            yield text
            return
        self._held += text
        begin = self._begin(self._held) if self._opens(self._held) else 0
        if begin is not None or len(self._held) > self._limit:
            held, self._held = self._held, None
            yield held[begin:]

    def flush(self) -> Iterator[str]:
        """Return what was held back.

        Raises:
            UpstreamGarbled: there are only words instead of code.
        """
        held, self._held = self._held or "", None
        code = self._holds is Holds.CODE
        refuses = is_refusal(held, among_words=not code) and not is_refusal(self._old)
        if refuses or (code and self._old.strip() and is_talk(held)):
            raise uncertain("is a remark instead of code")
        if rest := held[self._behind_lead(held) :]:
            yield rest

    def _opens(self, held: str) -> bool:
        """Tell whether the text may begin with a remark."""
        if not self._streams or may_open_remark(held):
            return True
        return not self._among_words and may_open_label(held)

    def _begin(self, held: str) -> int | None:
        """Return the offset at which the code begins, None while all may be words."""
        for line in LINE.findall(held, self._place):
            ended = line[-1] in "\r\n"
            if fence := _FENCE.match(line):
                if not ended:
                    return None
                before = held[: self._place]
                return self._place if self._is_remark(before, fence[1]) else 0
            if not ended:
                may = may_become_words(line) or bool(_MARKS.match(line))
            elif may := may_be_words(line):
                self._place += len(line)
            if not may:
                return self._behind_lead(held)
        return None

    def _is_remark(self, before: str, language: str) -> bool:
        """Tell a remark before a fence from lines of the text itself."""
        outer = self._names is None or language.strip().lower() in self._names
        lines = [line for line in before.splitlines() if line.strip()]
        if not lines or not outer or any(line.strip() in self._known for line in lines):
            return False
        announced = self._names is not None and is_talk(before, announcing=True)
        return not self._among_words or is_lead(lines[0]) or announced

    def _behind_lead(self, held: str) -> int:
        """Return the offset behind a first line that only announces the text."""
        place = len(held) - len(held.lstrip())
        line = held[place:].partition("\n")[0]
        if self._among_words or not is_lead(line) or line.strip() in self._known:
            return 0
        place += len(line)
        while blank := LINE.match(held, place):
            if blank[0].strip():
                break
            place = blank.end()
        return place


class OnlyBlock:
    """Stage[str, str] that reduces a whole answer to its code, if it has remarks.

    `old` shows which lines belong to the file: remarks share no line with it, and
    further blocks few lines that the first one lacks. With `file` the answer is a whole
    file, which must have some line in common with the old one.
    """

    def __init__(self, old: str, holds: Holds, *, file: bool = False) -> None:
        self._known = significant_lines(old)
        self._fenced = any(map(_FENCE.match, old.splitlines()))
        self._title = next(filter(None, map(str.strip, old.splitlines())), "")
        self._holds = holds
        self._file = file
        self._texts: list[str] = []

    def feed(self, text: str, /) -> tuple[()]:
        """Collect the text."""
        self._texts.append(text)
        return ()

    def flush(self) -> Iterator[str]:
        """Return the text.

        Raises:
            UpstreamGarbled: it is not a version of the file.
        """
        lines = LINE.findall("".join(self._texts))
        fences = [n for n, line in enumerate(lines) if _FENCE.match(line)]
        if not fences:
            gone = len(self._known) >= _FEWEST and not self._has_known(lines)
            if self._file and gone:
                raise uncertain("has nothing in common with the file")
        elif self._holds is not Holds.WORDS:
            lines = lines[self._begin(lines, *fences) :]
        elif self._is_wrapped(lines):
            lines = lines[fences[0] + 1 : fences[-1]]
        yield "".join(lines)

    def _begin(self, lines: list[str], start: int, *more: int) -> int:
        """Return the index of the answer's first line, if the remarks are certain."""
        before = lines[:start]
        if self._fenced or self._has_known(before):
            return 0
        if all(map(may_be_words, before)) and not self._is_spread(lines, start, *more):
            return 0
        if len(more) == 1:
            inside, outside = lines[start : more[0]], [*before, *lines[more[0] :]]
            if self._has_known(inside) and not self._has_known(outside):
                return start
        raise uncertain("mixes words and code that cannot be told apart")

    def _is_wrapped(self, lines: list[str]) -> bool:
        """Tell whether a fence surrounds the text, which begins as it did before."""
        said = [line.rstrip() for line in lines if line.strip()]
        opens, title, ends = said[0], (said[1:] or [""])[0], said[-1]
        bare = opens == ends and not opens.strip("`~")
        inside = next(filter(_FENCE.match, said[1:-1]), "x").strip(" `~")
        return bool(bare and inside and title.strip() == self._title != opens)

    def _is_spread(self, lines: list[str], start: int, *more: int) -> bool:
        """Tell whether further blocks contain lines that the first one lacks."""
        end = more[0] if more else len(lines)
        if more and (fence := _FENCE.match(lines[end])) and fence[1].strip():
            return False  # it opens a block inside the first one
        first, rest = (
            significant_lines("".join(part)) for part in (lines[start:end], lines[end:])
        )
        return len((rest - first) & self._known) >= _FEWEST

    def _has_known(self, lines: list[str]) -> bool:
        return any(line.strip() in self._known for line in lines)


def significant_lines(text: str) -> frozenset[str]:
    """Return the lines of a text that are not blank, without their indentation."""
    return frozenset(line.strip() for line in text.splitlines()) - {""}
