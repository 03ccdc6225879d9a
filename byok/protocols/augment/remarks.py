"""Take the code, or the short text, out of what a model wrote around it.

Certain remarks are dropped: sentences before a fence, a first line that announces the
code. An uncertain answer fails, because the client would replace code with it.
"""

import re
from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from byok.core.errors import UpstreamGarbled
from byok.core.late import compile_late

# Tell a model's remarks from code, for answers that go into a file.
#
# No language is parsed here. Only what is certain for every kind of file counts: an
# answer of nothing but sentences, or a first line that announces the rest.


_CODE_SPAN = compile_late(r"`[^`\n]+`|\*\*|__")
_LIST = r"\s*(?:[-*>•#]+ |\d+[.)] )?[\"'“‘«(]?"
_START = compile_late(_LIST + r"[^\W\d_]")
_BEGUN = compile_late(rf"(?:{_LIST}(?:[^\W\d_]|\Z))|\s*(?:[-*>•#_]*|\d+[.)]?)\Z")
_SIGNS = compile_late(r"[={}\[\]<>\\|$^~@]")
_CODE_END = compile_late(r"\S;\s*\Z")
_CALL = compile_late(r"\w\(")
_END = compile_late(r"[.!?…。！？][\"'”’»)*]?\s*\Z")
_COLON = compile_late(r"[:：]\s*\Z")
_WORD = compile_late(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_FIRST = compile_late(r"[^\W\d_'’]+(?:['’][^\W\d_]*)?")
_WIDE = compile_late(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # written unspaced
_FEWEST = 3  # words of a sentence
_LONGEST_LABEL = 80  # characters
_FEW = 600  # characters that a refusal has at most

# What a model's remark begins with, when it speaks of what it did or will not do.
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


class Holds(Enum):
    """The kind of a file's content: among words any sentence is plausible."""

    CODE = "code"
    DATA = "data"
    WORDS = "words"


def uncertain(what: str) -> UpstreamGarbled:
    """Return the error for an answer that must not be written into the user's code."""
    return UpstreamGarbled(
        f"The model's answer {what}; nothing was changed.",
        code="upstream_remark",
        hint="Try again, or use another model.",
    )


def may_be_words(line: str) -> bool:
    """Tell whether a line may be part of a sentence."""
    bare = _CODE_SPAN.sub("x", line)
    if not bare.strip():
        return True
    if not _START.match(bare) or _SIGNS.search(bare) or _CODE_END.search(bare):
        return False
    return not _CALL.search(bare) or len(_WORD.findall(bare)) > _FEWEST


def may_become_words(beginning: str) -> bool:
    """Tell whether a line with this beginning may turn out to be words."""
    bare = _CODE_SPAN.sub("x", beginning).partition("`")[0]
    return bool(_BEGUN.match(bare)) and not _SIGNS.search(bare)


def may_open_remark(beginning: str) -> bool:
    """Tell whether a text with this beginning may start with a remark."""
    bare = beginning.lstrip(' \t\r\n-*>•#_"“‘«(0123456789.)')
    if not bare or _WIDE.match(bare):
        return True
    word = (_FIRST.match(bare) or [""])[0].replace("'", "").replace("’", "").lower()
    if word == bare.lower():  # the word may continue
        return any(opener.startswith(word) for opener in _OPENERS)
    return word in _OPENERS


def may_open_label(beginning: str) -> bool:
    """Tell whether a text may start with a line that names the code in a fence.

    That may be a path, a heading or a word; the line after it decides.
    """
    line, ended, rest = beginning.lstrip().partition("\n")
    if len(line) > _LONGEST_LABEL or not may_become_words(line):
        return False
    marks = rest.lstrip()[:3]
    behind = "```".startswith(marks) or "~~~".startswith(marks)
    return not ended or (may_be_words(line) and behind)


def is_talk(text: str, *, announcing: bool = False) -> bool:
    """Tell whether a text consists of sentences only.

    The last one may end in a colon only if it is `announcing` something, because code
    does so too.
    """
    words = len(_WORD.findall(text)) + len(_WIDE.findall(text))
    bare = text.strip()
    if words < _FEWEST or not bare[0].isalpha() or bare[0].islower():
        return False
    if not (_END.search(bare) or (announcing and _COLON.search(bare))):
        return False
    return all(map(may_be_words, bare.splitlines()))


def is_lead(line: str) -> bool:
    """Tell whether a line only announces what follows; `ok:` may be a key."""
    return bool(_LEAD.match(line)) and len(_WORD.findall(line)) >= _FEWEST


def may_become_lead(beginning: str) -> bool:
    """Tell whether a line with this beginning may turn out to be an announcement."""
    bare = beginning.strip().lower()
    return any(lead.startswith(bare) or bare.startswith(lead) for lead in _LEADS)


def is_refusal(text: str, *, among_words: bool = False) -> bool:
    """Tell whether a short answer refuses.

    With `among_words` it must say what it cannot do.
    """
    if len(text) > _FEW or not _REFUSAL.match(text):
        return False
    if among_words and not _UNABLE.search(text):
        return False
    return all(map(may_be_words, text.splitlines()))


# Remove the code fence that models put around code, while the text streams.


_OPENING = compile_late(r"\s*(`{3,}|~{3,})[ \t]*([^`\r\n]*)(\r\n|\r|\n)")
_FENCE_BEGUN = compile_late(r"\s*(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[^`\r\n]*\r?)\Z")
_BLANKS = compile_late(r"(?:[ \t]*(?:\r\n|\r|\n))*")  # lines in a row
LINE = compile_late(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_FENCE_LINE = compile_late(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`\r\n]*)\s*\Z")
_ANY_FENCE = compile_late(r"(?m)^[ \t]*(?:`{3,}|~{3,})")
_MAYBE_FENCE = compile_late(r"[ \t]*(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[^`\r\n]*)\Z")
_MOST_HELD_OF_FENCE = 4096
_DEEPEST = 3  # spaces before a fence that is not part of indented code
MARKDOWN = frozenset({"markdown", "md"})


def has_fence(text: str) -> bool:
    """Tell whether any line looks like a fence."""
    return bool(_ANY_FENCE.search(text))


class Unfenced(Struct, eq=False):
    """Stage[str, str] that returns the content of one outer fence, if there is one.

    The first line is held until it is known whether it opens a fence. Inside, a closing
    fence ends the text, and remarks behind it are dropped. But the text may contain
    fences itself: one with a language opens a block of the text, which the next closing
    fence ends. If another closing fence follows what looked like the end, that was part
    of the text; so everything is held back from there on.

    If the text is Markdown itself, only fences with one of the languages in `names` are
    outer ones. With `code`, there are no sentences between two fences of the text. If
    the file is not `fenced` yet, it has no fences of its own without a language: they
    belong to a remark with an example.
    """

    names: frozenset[str] | None = None
    code: bool = False
    fenced: bool = True
    _first: str = ""  # the first line, until it is decided
    _decided: bool = False
    _mark: str = ""  # the opening fence, "" for none
    _depth: float = _DEEPEST
    _line: str = ""  # the beginning of a line that may be a fence
    _inside_line: bool = False  # the beginning of this line was returned
    _inner: bool = False  # in a block of the text
    _behind: list[str] | None = None  # what follows a possible end of the text
    _over: bool = False

    def feed(self, text: str, /) -> Iterator[str]:
        """Return what certainly belongs to the text.

        Raises:
            UpstreamGarbled: the end of the text is ambiguous.
        """
        if not self._decided:
            text, self._first = self._first + text, ""
            if _FENCE_BEGUN.match(text) and len(text) <= _MOST_HELD_OF_FENCE:
                self._first = text
                return
            text = self._open(text)
        if self._mark:
            text = "".join(self._lines(text))
        if text:
            yield text

    def flush(self) -> Iterator[str]:
        """Return what was held back and is not a fence."""
        if not self._decided:
            held, self._first = self._first, ""
            if _OPENING.match(held + "\n") and self._is_outer(held):
                return
        else:
            line, self._line = self._line, ""
            held = "".join(self._whole_line(line)) if line else ""
        if held:
            yield held

    def _open(self, text: str) -> str:
        """Decide what the first line is, and remove an opening fence."""
        self._decided = True
        opening = _OPENING.match(text)
        if opening is None or not self._is_outer(text):
            return text
        self._mark = opening[1]
        indent = text[: opening.start(1)].rpartition("\n")[2]
        self._depth = max(_DEEPEST, len(indent))
        return text[opening.end() :]

    def _is_outer(self, text: str) -> bool:
        opening = _OPENING.match(text + "\n")
        named = opening[2].strip().lower() if opening else ""
        return self.names is None or named in self.names

    def _lines(self, text: str) -> Iterator[str]:
        """Process a text line by line; the last line may continue."""
        for piece in LINE.findall(text):
            ended = piece[-1] in "\r\n"
            if self._inside_line:
                self._inside_line = not ended
                yield from self._put(piece)
                continue
            line, self._line = self._line + piece, ""
            if ended:
                yield from self._whole_line(line)
            elif _MAYBE_FENCE.match(line) and len(line) <= _MOST_HELD_OF_FENCE:
                self._line = line
            else:
                self._inside_line = True
                yield from self._put(line)

    def _whole_line(self, line: str) -> Iterator[str]:
        fence = _FENCE_LINE.match(line)
        if fence is None or not self._counts(fence):
            yield from self._put(line)
        elif self._behind is not None:
            yield from self._another(line, opens=bool(fence[2].strip()))
        elif fence[2].strip():
            self._inner = True
            yield line
        elif self._inner:
            self._inner = False
            yield line
        else:
            self._behind = [line]

    def _counts(self, fence: re.Match[str]) -> bool:
        """Tell whether a fence could close the outer one if it had no language."""
        return fence[1].startswith(self._mark) and fence.start(1) <= self._depth

    def _put(self, text: str) -> Iterator[str]:
        """Return a piece of the text, or hold it while it is uncertain."""
        if self._behind is None:
            yield text
        elif not self._over:
            self._behind.append(text)

    def _another(self, line: str, *, opens: bool) -> Iterator[str]:
        """Handle a fence behind a possible end: that was the end if this one opens."""
        assert self._behind is not None  # noqa: S101 - see _whole_line
        if opens or self._over:
            self._over, self._behind = True, []
            return
        between = "".join(self._behind[1:])
        if self.code and (not self.fenced or is_talk(between, announcing=True)):
            raise uncertain("mixes words and code that cannot be told apart")
        behind, self._behind = self._behind, None
        yield "".join((*behind, line))


_FENCE = compile_late(r" {0,3}(?:`{3,}|~{3,})[ \t]*([^`\r\n]*)\s*\Z")
_MARKS = compile_late(r" {0,3}~{1,2}\Z")  # may become a fence
_MOST_HELD, _MOST_AMONG_WORDS = 4096, 600  # characters


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
        blanks = _BLANKS.match(held, place + len(line))
        return blanks.end() if blanks else 0


class OnlyBlock:
    """Stage[str, str] that reduces a whole answer to its code, if it has remarks.

    `old` shows which lines belong to the file: remarks share no line with it, and
    further blocks few lines that the first one lacks. With `file` the answer is a whole
    file, which must have some line in common with the old one.
    """

    def __init__(self, old: str, holds: Holds, *, file: bool) -> None:
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


# Remove announcements and quotation marks around a short text.


_MOST_LEAD = 200
_COLONS = (":", "：")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "«": "»", "「": "」"}


class Unannounced:
    """Stage[str, str] that removes a first line that only announces the text.

    With `strict`, this is any line that ends in a colon and is followed by more.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._held: str | None = ""  # None once it is decided
        self._lead = ""  # removed, as long as nothing follows it

    def feed(self, text: str, /) -> Iterator[str]:
        """Return the text once it is certain to be no announcement."""
        if self._held is None:
            yield text
            return
        self._held += text
        if not self._lead:
            start = len(self._held) - len(self._held.lstrip())
            line = (LINE.match(self._held, start) or [""])[0]
            is_whole = len(line) > _MOST_LEAD or line[-1:] in ("\n", "\r")
            if not is_whole and (self._strict or may_become_lead(line)):
                return
            if is_lead(line) or (self._strict and line.rstrip().endswith(_COLONS)):
                self._lead, self._held = line, self._held[start + len(line) :]
        if self._lead:
            if not self._held.strip():
                return
            self._held, self._lead = _BLANKS.sub("", self._held, count=1), ""
        held, self._held = self._held, None
        yield held

    def flush(self) -> Iterator[str]:
        """Return what was held; an announcement alone only if it may be the text."""
        held, self._held = self._held, None
        if self._lead and self._strict:
            yield self._lead
        elif held and not self._lead and (self._strict or not is_lead(held)):
            yield held


class Unquoted:
    """Stage[str, str] that removes quotation marks around the whole text."""

    def __init__(self) -> None:
        self._held: str | None = ""  # None once it is decided

    def feed(self, text: str, /) -> Iterator[str]:
        """Return text that does not begin with a quotation mark."""
        if self._held is None:
            yield text
            return
        self._held += text
        bare = self._held.lstrip()
        if bare and bare[0] not in _QUOTES:
            held, self._held = self._held, None
            yield held

    def flush(self) -> Iterator[str]:
        """Return text that began with a quotation mark."""
        held, self._held = self._held or "", None
        bare = held.strip()
        if bare:
            end = _QUOTES[bare[0]]
            inner = bare[1:-1]
            around = bare.endswith(end) and len(bare) > 1 and end not in inner
            yield inner if around else held
