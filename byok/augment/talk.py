"""Tell a model's remarks from code, for answers that go into a file.

No language is parsed here. Only what is certain for every kind of file counts: an
answer of nothing but sentences, or a first line that announces the rest.
"""

import re
from enum import Enum

from byok.errors import UpstreamGarbled

_CODE_SPAN = re.compile(r"`[^`\n]+`|\*\*|__")
_LIST = r"\s*(?:[-*>•#]+ |\d+[.)] )?[\"'“‘«(]?"
_START = re.compile(_LIST + r"[^\W\d_]")
_BEGUN = re.compile(rf"(?:{_LIST}(?:[^\W\d_]|\Z))|\s*(?:[-*>•#_]*|\d+[.)]?)\Z")
_SIGNS = re.compile(r"[={}\[\]<>\\|$^~@]")
_CODE_END = re.compile(r"\S;\s*\Z")
_CALL = re.compile(r"\w\(")
_END = re.compile(r"[.!?…。！？][\"'”’»)*]?\s*\Z")
_COLON = re.compile(r"[:：]\s*\Z")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_FIRST = re.compile(r"[^\W\d_'’]+(?:['’][^\W\d_]*)?")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # written unspaced
_FEWEST = 3  # words of a sentence
_LONGEST_LABEL = 80  # characters
_FEW = 600  # characters that a refusal has at most

# What a model's remark begins with, when it speaks of what it did or will not do.
_OPENERS = frozenset(
    (
        *(
            "i",
            "im",
            "ive",
            "ill",
            "id",
            "we",
            "weve",
            "you",
            "your",
            "it",
            "its",
            "my",
        ),
        *("sorry", "apologies", "unfortunately", "sure", "certainly", "of", "okay"),
        *("ok", "absolutely", "got", "great", "good", "yes", "no", "not", "nothing"),
        *("here", "heres", "below", "above", "the", "this", "that", "these", "there"),
        *("to", "in", "as", "based", "after", "since", "because", "now", "note"),
        *("please", "could", "can", "what", "which", "thanks", "thank", "hello", "hi"),
        *("let", "lets", "all", "done", "everything", "first", "finally", "just"),
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
_LEAD = re.compile(rf"(?i)\s*(?:{'|'.join(map(re.escape, _LEADS))})\b[^\n]*[:：]\s*\Z")
_REFUSAL = re.compile(
    r"(?i)\W*(?:"
    r"(?:i['’]?m|i am) (?:\w+ )?(?:sorry|afraid|unable|not able)\b"
    r"|sorry\b|i apologi[sz]e\b|(?:my )?apologies\b|as an? (?:ai|language model)\b"
    r"|unfortunately,? i\b|i (?:can['’]?t|cannot|can not|won['’]?t)\b"
    r"|es tut mir leid|tut mir leid|leider kann ich|ich kann \w+ (?:leider )?nicht"
    r"|(?:je suis )?désolée?\b|je ne peux pas|lo siento|no puedo\b|desculpe|não posso"
    r"|mi dispiace|non posso\b|извините|к сожалению|я не могу|抱歉|很抱歉|对不起"
    r"|對不起|我无法|我無法|我不能|申し訳|すみません|죄송)"
)
_UNABLE = re.compile(
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
