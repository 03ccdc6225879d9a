"""Stages that remove a model's remarks around code or a short text.

Remarks are dropped if they are certain: sentences before a fence, a first line that
announces the code. An uncertain answer fails, because the client would replace code
with it. No language is parsed, so only rules that hold for every kind of file are used.
"""

import re
from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from byok.core.errors import UpstreamGarbled
from byok.core.late import compile_late

_CODE_SPAN = compile_late(r"`[^`\n]+`|\*\*|__")
_LIST = r"\s*(?:[-*>•#]+ |\d+[.)] )?[\"'“‘«(]?"
_SENTENCE_START = compile_late(_LIST + r"[^\W\d_]")
_PARTIAL_START = compile_late(
    rf"(?:{_LIST}(?:[^\W\d_]|\Z))|\s*(?:[-*>•#_]*|\d+[.)]?)\Z"
)
_CODE_CHARS = compile_late(r"[={}\[\]<>\\|$^~@]")
_CODE_END = compile_late(r"\S;\s*\Z")
_CALL = compile_late(r"\w\(")
_SENTENCE_END = compile_late(r"[.!?…。！？][\"'”’»)*]?\s*\Z")
_COLON = compile_late(r"[:：]\s*\Z")
_WORD = compile_late(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_FIRST_WORD = compile_late(r"[^\W\d_'’]+(?:['’][^\W\d_]*)?")
_WIDE = compile_late(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)  # scripts without spaces
_MIN_WORDS = 3  # of a sentence; also the lines that count as a sign of the file
_MAX_LABEL_CHARS = 80
_MAX_REFUSAL_CHARS = 600

# First words of remarks about what the model did or will not do.
_OPENERS = frozenset(
    (
        *("i", "im", "ive", "ill", "id", "we", "weve", "you", "your", "it", "its"),
        *("sorry", "apologies", "unfortunately", "sure", "certainly", "of", "okay"),
        *("ok", "absolutely", "got", "great", "good", "yes", "no", "not", "nothing"),
        *("here", "heres", "below", "above", "the", "this", "that", "these", "there"),
        *("to", "in", "as", "based", "after", "since", "because", "now", "note"),
        *("please", "could", "can", "what", "which", "thanks", "thank", "hello", "hi"),
        *("my", "let", "lets", "all", "done", "everything", "first", "finally", "just"),
        *("updated", "changed", "added", "removed", "fixed", "renamed", "replaced"),
        *("modified", "refactored", "moved", "made", "see", "looking", "however"),
        *("ich", "hier", "das", "die", "der", "es", "leider", "natürlich", "gerne"),
        *("voici", "je", "le", "la", "les", "désolé", "désolée", "bien", "el", "lo"),
        *("aquí", "aqui", "he", "claro", "eu", "ecco", "ho", "mi", "não", "desculpe"),
        *("вот", "я", "к", "извините", "конечно", "простите"),
    )
)
_LEADS = (
    *("sure", "certainly", "of course", "okay", "ok", "absolutely", "got it"),
    *("here's", "here’s", "here is", "here are", "below is", "below are"),
)
_LEAD = compile_late(
    rf"(?i)\s*(?:{'|'.join(map(re.escape, _LEADS))})\b[^\n]*[:：]\s*\Z"
)
_REFUSAL = compile_late(
    r"(?i)\W*(?:"
    r"(?:i['’]?m|i am) (?:\w+ )?(?:sorry|afraid|unable|not able)\b"
    r"|sorry\b|i apologi[sz]e\b|(?:my )?apologies\b|as an? (?:ai|language model)\b"
    r"|unfortunately,? i\b|i (?:can['’]?t|cannot|can not|won['’]?t)\b"
    r"|es tut mir leid|tut mir leid|leider kann ich|ich kann \w+ (?:leider )?nicht"
    r"|(?:je suis )?désolée?\b|je ne peux pas|lo siento|no puedo\b|desculpe|não posso"
    r"|mi dispiace|non posso\b|извините|к сожалению|я не могу|抱歉|很抱歉|对不起"
    r"|對不起|我无法|我無法|我不能|申し訳|すみません|죄송)"
)
_UNABLE = compile_late(
    r"(?i)(?:can['’]?t|cannot|can not|won['’]?t|unable to|not able to)"
    r"\W+(?:\w+\W+){0,3}(?:help|assist|comply|fulfil|provide|complete|perform|edit"
    r"|modify|change|process|do|see|access)\b|无法|無法|不能|できません|할 수 없"
    r"|kann\b.*\bnicht\b|ne peux pas|no puedo|não posso|non posso|не могу"
)


_OPENING = compile_late(r"\s*(`{3,}|~{3,})[ \t]*([^`\r\n]*)(\r\n|\r|\n)")
_PARTIAL_OPENING = compile_late(r"\s*(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[^`\r\n]*\r?)\Z")
_BLANKS = compile_late(r"(?:[ \t]*(?:\r\n|\r|\n))*")  # lines in a row
LINE = compile_late(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_FENCE_LINE = compile_late(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`\r\n]*)\s*\Z")
_ANY_FENCE = compile_late(r"(?m)^[ \t]*(?:`{3,}|~{3,})")
_PARTIAL_FENCE = compile_late(r"[ \t]*(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[^`\r\n]*)\Z")
_MAX_FENCE_CHARS = 4096
_MAX_INDENT = 3  # spaces before a fence that is not part of indented code
MARKDOWN = frozenset({"markdown", "md"})
_FENCE = compile_late(r" {0,3}(?:`{3,}|~{3,})[ \t]*([^`\r\n]*)\s*\Z")
_FENCE_START = compile_late(r" {0,3}~{1,2}\Z")  # may become a fence
_MAX_REMARK_CHARS, _MAX_REMARK_CHARS_IN_WORDS = 4096, 600
_MAX_LEAD_CHARS = 200
_COLONS = (":", "：")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "«": "»", "「": "」"}


class ContentKind(Enum):
    """The kind of a file's content; in words (prose), any sentence is plausible."""

    CODE = "code"
    DATA = "data"
    WORDS = "words"


def uncertain(problem: str) -> UpstreamGarbled:
    """Return the error for an answer that must not be written into the user's code."""
    return UpstreamGarbled(
        f"The model's answer {problem}; nothing was changed.",
        code="upstream_remark",
        hint="Try again, or use another model.",
    )


def may_be_words(line: str) -> bool:
    """Tell whether a line may be part of a sentence."""
    bare = _CODE_SPAN.sub("x", line)
    if not bare.strip():
        return True
    if (
        not _SENTENCE_START.match(bare)
        or _CODE_CHARS.search(bare)
        or _CODE_END.search(bare)
    ):
        return False
    return not _CALL.search(bare) or len(_WORD.findall(bare)) > _MIN_WORDS


def may_become_words(beginning: str) -> bool:
    """Tell whether a line with this beginning may turn out to be words."""
    bare = _CODE_SPAN.sub("x", beginning).partition("`")[0]
    return bool(_PARTIAL_START.match(bare)) and not _CODE_CHARS.search(bare)


def may_open_remark(beginning: str) -> bool:
    """Tell whether a text with this beginning may start with a remark."""
    bare = beginning.lstrip(' \t\r\n-*>•#_"“‘«(0123456789.)')
    if not bare or _WIDE.match(bare):
        return True
    word = (
        (_FIRST_WORD.match(bare) or [""])[0].replace("'", "").replace("’", "").lower()
    )
    if word == bare.lower():  # the word may continue
        return any(opener.startswith(word) for opener in _OPENERS)
    return word in _OPENERS


def may_open_label(beginning: str) -> bool:
    """Tell whether a text may start with a line that names the code in a fence.

    It may be a path, a heading or a word; the line after it decides.
    """
    line, line_break, tail = beginning.lstrip().partition("\n")
    if len(line) > _MAX_LABEL_CHARS or not may_become_words(line):
        return False
    marks = tail.lstrip()[:3]
    may_be_fence = "```".startswith(marks) or "~~~".startswith(marks)
    return not line_break or (may_be_words(line) and may_be_fence)


def is_talk(text: str, *, announcing: bool = False) -> bool:
    """Tell whether a text consists of sentences only.

    The last one may end in a colon only if it may be `announcing` something, because
    code ends so, too.
    """
    words = len(_WORD.findall(text)) + len(_WIDE.findall(text))
    bare = text.strip()
    if words < _MIN_WORDS or not bare[0].isalpha() or bare[0].islower():
        return False
    if not (_SENTENCE_END.search(bare) or (announcing and _COLON.search(bare))):
        return False
    return all(map(may_be_words, bare.splitlines()))


def is_lead(line: str) -> bool:
    """Tell whether a line only announces the next ones; `ok:` alone may be a key."""
    return bool(_LEAD.match(line)) and len(_WORD.findall(line)) >= _MIN_WORDS


def may_become_lead(beginning: str) -> bool:
    """Tell whether a line with this beginning may turn out to be an announcement."""
    bare = beginning.strip().lower()
    return any(lead.startswith(bare) or bare.startswith(lead) for lead in _LEADS)


def is_refusal(text: str, *, among_words: bool = False) -> bool:
    """Tell whether an answer is a short refusal.

    With `among_words`, in prose, it must say what the model cannot do.
    """
    if len(text) > _MAX_REFUSAL_CHARS or not _REFUSAL.match(text):
        return False
    if among_words and not _UNABLE.search(text):
        return False
    return all(map(may_be_words, text.splitlines()))


def has_fence(text: str) -> bool:
    """Tell whether any line looks like a fence."""
    return bool(_ANY_FENCE.search(text))


class FenceRemover(Struct, eq=False):
    """A Stage[str, str] that returns the content of one outer fence, if there is one.

    The first line is buffered until it is known whether it opens a fence. Inside, a
    closing fence ends the text, and remarks after it are dropped. But the text may
    contain fences: one with a language opens an inner block, which the next closing
    fence ends. If another closing fence follows a possible end, that end was part of
    the text. So everything after a possible end is buffered.

    If the text is Markdown itself, only fences with one of the languages in `names` are
    outer ones. With `code`, there are no sentences between two fences of the text. If
    the file has no fences so far (`fenced` is false), then fences without a language
    belong to a remark with an example.
    """

    names: frozenset[str] | None = None
    code: bool = False
    fenced: bool = True
    _first: str = ""  # the first line, until its meaning is known
    _decided: bool = False
    _mark: str = ""  # the opening fence, "" for none
    _depth: float = _MAX_INDENT
    _line: str = ""  # the beginning of a line that may be a fence
    _inside_line: bool = False  # the beginning of this line was returned
    _inner: bool = False  # in an inner block
    _after_end: list[str] | None = None  # the buffer since a possible end of the text
    _over: bool = False  # the possible end was the end

    def feed(self, text: str, /) -> Iterator[str]:
        """Return the parts that certainly belong to the text.

        Raises:
            UpstreamGarbled: the end of the text is ambiguous.
        """
        if not self._decided:
            text, self._first = self._first + text, ""
            if _PARTIAL_OPENING.match(text) and len(text) <= _MAX_FENCE_CHARS:
                self._first = text
                return
            text = self._remove_opening(text)
        if self._mark:
            text = "".join(self._read_lines(text))
        if text:
            yield text

    def flush(self) -> Iterator[str]:
        """Return a buffered line, unless it is a fence."""
        if not self._decided:
            text, self._first = self._first, ""
            if _OPENING.match(text + "\n") and self._is_outer(text):
                return
        else:
            line, self._line = self._line, ""
            text = "".join(self._read_line(line)) if line else ""
        if text:
            yield text

    def _remove_opening(self, text: str) -> str:
        """Return the text without an opening fence in its first line."""
        self._decided = True
        opening = _OPENING.match(text)
        if opening is None or not self._is_outer(text):
            return text
        self._mark = opening[1]
        indent = text[: opening.start(1)].rpartition("\n")[2]
        self._depth = max(_MAX_INDENT, len(indent))
        return text[opening.end() :]

    def _is_outer(self, text: str) -> bool:
        opening = _OPENING.match(text + "\n")
        named = opening[2].strip().lower() if opening else ""
        return self.names is None or named in self.names

    def _read_lines(self, text: str) -> Iterator[str]:
        """Process a text line by line; the last line may continue."""
        for piece in LINE.findall(text):
            ended = piece[-1] in "\r\n"
            if self._inside_line:
                self._inside_line = not ended
                yield from self._put(piece)
                continue
            line, self._line = self._line + piece, ""
            if ended:
                yield from self._read_line(line)
            elif _PARTIAL_FENCE.match(line) and len(line) <= _MAX_FENCE_CHARS:
                self._line = line
            else:
                self._inside_line = True
                yield from self._put(line)

    def _read_line(self, line: str) -> Iterator[str]:
        fence = _FENCE_LINE.match(line)
        if fence is None or not (
            fence[1].startswith(self._mark) and fence.start(1) <= self._depth
        ):  # it cannot close the outer one
            yield from self._put(line)
        elif self._after_end is not None:
            yield from self._read_later_fence(line, opens=bool(fence[2].strip()))
        elif fence[2].strip():
            self._inner = True
            yield line
        elif self._inner:
            self._inner = False
            yield line
        else:
            self._after_end = [line]

    def _put(self, text: str) -> Iterator[str]:
        """Return a piece of the text, or buffer it after a possible end."""
        if self._after_end is None:
            yield text
        elif not self._over:
            self._after_end.append(text)

    def _read_later_fence(self, line: str, *, opens: bool) -> Iterator[str]:
        """Read a fence after a possible end, which was the end if this one opens."""
        assert self._after_end is not None  # noqa: S101 - see _read_line
        if opens or self._over:
            self._over, self._after_end = True, []
            return
        between = "".join(self._after_end[1:])
        if self.code and (not self.fenced or is_talk(between, announcing=True)):
            raise uncertain("mixes words and code that cannot be told apart")
        buffered, self._after_end = self._after_end, None
        yield "".join((*buffered, line))


class RemarkRemover:
    """A Stage[str, str] that removes remarks before the code.

    As long as the answer may be a remark, it is buffered; if it `streams`, only if it
    begins like one. `old` is the text that it replaces. The file `holds` code, data or
    words; in words, only sentences that nobody would write there count as remarks.
    `names` are the languages of fences that are not part of the text, None for all.
    """

    def __init__(
        self,
        old: str,
        holds: ContentKind,
        names: frozenset[str] | None = None,
        *,
        streams: bool = False,
    ) -> None:
        self._old = old
        self._known = significant_lines(old)
        self._holds = ContentKind.WORDS if is_talk(old) else holds
        self._names = names
        self._among_words = self._holds is ContentKind.WORDS
        self._streams = streams
        self._limit = (
            _MAX_REMARK_CHARS_IN_WORDS if self._among_words else _MAX_REMARK_CHARS
        )
        self._offset = 0  # of the line that is examined
        self._buffer: str | None = ""  # None once the beginning of the code is known

    def feed(self, text: str, /) -> Iterator[str]:
        """Return the code from its beginning, once that is certain."""
        if self._buffer is None:
            yield text
            return
        self._buffer += text
        may_open = not self._streams or may_open_remark(self._buffer)
        if not may_open and not self._among_words:
            may_open = may_open_label(self._buffer)
        begin = self._find_code(self._buffer) if may_open else 0
        if begin is not None or len(self._buffer) > self._limit:
            buffered, self._buffer = self._buffer, None
            yield buffered[begin:]

    def flush(self) -> Iterator[str]:
        """Return the buffered text.

        Raises:
            UpstreamGarbled: it is a remark instead of code.
        """
        text, self._buffer = self._buffer or "", None
        is_code = self._holds is ContentKind.CODE
        refuses = is_refusal(text, among_words=not is_code)
        refuses = refuses and not is_refusal(self._old)
        if refuses or (is_code and self._old.strip() and is_talk(text)):
            raise uncertain("is a remark instead of code")
        if code := text[self._lead_end(text) :]:
            yield code

    def _find_code(self, text: str) -> int | None:
        """Return the offset of the code, None while all of the text may be words."""
        for line in LINE.findall(text, self._offset):
            is_complete = line[-1] in "\r\n"
            if fence := _FENCE.match(line):
                if not is_complete:
                    return None
                before = text[: self._offset]
                return self._offset if self._is_remark(before, fence[1]) else 0
            if not is_complete:
                may = may_become_words(line) or bool(_FENCE_START.match(line))
            elif may := may_be_words(line):
                self._offset += len(line)
            if not may:
                return self._lead_end(text)
        return None

    def _is_remark(self, before: str, language: str) -> bool:
        """Tell whether the text before a fence is certainly a remark."""
        is_outer = self._names is None or language.strip().lower() in self._names
        lines = [line for line in before.splitlines() if line.strip()]
        has_known = any(line.strip() in self._known for line in lines)
        if not lines or not is_outer or has_known:
            return False
        is_announced = self._names is not None and is_talk(before, announcing=True)
        return not self._among_words or is_lead(lines[0]) or is_announced

    def _lead_end(self, text: str) -> int:
        """Return the offset after a first line that only announces the text."""
        start = len(text) - len(text.lstrip())
        line = text[start:].partition("\n")[0]
        if self._among_words or not is_lead(line) or line.strip() in self._known:
            return 0
        blanks = _BLANKS.match(text, start + len(line))
        return blanks.end() if blanks else 0


class RemarkFilter:
    """A Stage[str, str] that removes the remarks from a complete answer.

    `old` shows which lines belong to the file: a remark shares no line with it, and a
    further block shares few lines that the first block lacks. With `file` the answer is
    a whole file, which must have a line in common with the old one.
    """

    def __init__(self, old: str, holds: ContentKind, *, file: bool) -> None:
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
            is_other = len(self._known) >= _MIN_WORDS and not self._has_known(lines)
            if self._file and is_other:
                raise uncertain("has nothing in common with the file")
        elif self._holds is not ContentKind.WORDS:
            lines = lines[self._find_first_line(lines, *fences) :]
        elif self._is_wrapped(lines):
            lines = lines[fences[0] + 1 : fences[-1]]
        yield "".join(lines)

    def _find_first_line(self, lines: list[str], start: int, *more: int) -> int:
        """Return the index of the first line after the remarks.

        `start` and `more` are the indices of fences.

        Raises:
            UpstreamGarbled: it is uncertain what is a remark.
        """
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
        """Tell whether a fence surrounds the text, which begins like the old one."""
        filled = [line.rstrip() for line in lines if line.strip()]
        first, title, last = filled[0], (filled[1:] or [""])[0], filled[-1]
        is_bare = first == last and not first.strip("`~")
        inner = next(filter(_FENCE.match, filled[1:-1]), "x").strip(" `~")
        return bool(is_bare and inner and title.strip() == self._title != first)

    def _is_spread(self, lines: list[str], start: int, *more: int) -> bool:
        """Tell whether further blocks contain lines that the first one lacks."""
        end = more[0] if more else len(lines)
        if more and (fence := _FENCE.match(lines[end])) and fence[1].strip():
            return False  # it opens a block inside the first one
        first, others = (
            significant_lines("".join(part)) for part in (lines[start:end], lines[end:])
        )
        return len((others - first) & self._known) >= _MIN_WORDS

    def _has_known(self, lines: list[str]) -> bool:
        return any(line.strip() in self._known for line in lines)


def significant_lines(text: str) -> frozenset[str]:
    """Return the lines of a text that are not blank, without their indentation."""
    return frozenset(line.strip() for line in text.splitlines()) - {""}


class LeadRemover:
    """A Stage[str, str] that removes a first line that only announces the text.

    With `strict`, this is any line that ends in a colon and is followed by more.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._buffer: str | None = ""  # None once the beginning of the text is known
        self._lead = ""  # a removed line, until text follows it

    def feed(self, text: str, /) -> Iterator[str]:
        """Return the text, once it is certain that it is not an announcement."""
        if self._buffer is None:
            yield text
            return
        self._buffer += text
        if not self._lead:
            start = len(self._buffer) - len(self._buffer.lstrip())
            line = (LINE.match(self._buffer, start) or [""])[0]
            is_complete = len(line) > _MAX_LEAD_CHARS or line[-1:] in ("\n", "\r")
            if not is_complete and (self._strict or may_become_lead(line)):
                return
            if is_lead(line) or (self._strict and line.rstrip().endswith(_COLONS)):
                self._lead, self._buffer = line, self._buffer[start + len(line) :]
        if self._lead:
            if not self._buffer.strip():
                return
            self._buffer, self._lead = _BLANKS.sub("", self._buffer, count=1), ""
        text, self._buffer = self._buffer, None
        yield text

    def flush(self) -> Iterator[str]:
        """Return the buffered text; with `strict`, an announcement may be all of it."""
        text, self._buffer = self._buffer, None
        if self._lead and self._strict:
            yield self._lead
        elif text and not self._lead and (self._strict or not is_lead(text)):
            yield text


class QuoteRemover:
    """A Stage[str, str] that removes quotation marks around the whole text."""

    def __init__(self) -> None:
        self._buffer: str | None = ""  # None: the text does not begin with a mark

    def feed(self, text: str, /) -> Iterator[str]:
        """Return text that does not begin with a quotation mark."""
        if self._buffer is None:
            yield text
            return
        self._buffer += text
        bare = self._buffer.lstrip()
        if bare and bare[0] not in _QUOTES:
            text, self._buffer = self._buffer, None
            yield text

    def flush(self) -> Iterator[str]:
        """Return text that began with a quotation mark."""
        text, self._buffer = self._buffer or "", None
        bare = text.strip()
        if bare:
            end = _QUOTES[bare[0]]
            inner = bare[1:-1]
            is_quoted = bare.endswith(end) and len(bare) > 1 and end not in inner
            yield inner if is_quoted else text
