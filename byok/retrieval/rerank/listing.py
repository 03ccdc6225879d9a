"""What a model is shown to order files by, and how its answer is read.

    Question: where are cookies written to disk

    1 src/settings/defaults.py | | COOKIES_DEBUG = False
    2 src/http/cookies.py | CookieJar set_cookie | def extract_cookies(self, response

The order of the list says nothing, so that the answer is the model's own judgement:
models that cannot judge tend to name what comes first. It depends on the question and
the paths alone, so equal lists are equal texts.

Everything in the list was written by strangers: the names of files, their code, and in
part the question. Nothing of it spans lines or hides characters, secrets are masked,
and the answer is only searched for numbers of the list. So text in a file that speaks
to the model can do no more than change the order.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from byok.escapes import escape
from byok.index.parse.tokens import terms
from byok.retrieval.masking import mask, mask_lines
from byok.retrieval.model_aids import ReadChunks
from byok.retrieval.query import Query
from byok.retrieval.rank import RankedFile

MOST = 20  # files
MOST_NUMBERS = 5
LONGEST_ANSWER = 80  # characters: all numbers and some words around
_LONGEST_QUESTION = 600
_LONGEST_PATH = 80
_LONGEST_NAMES = 50
_LONGEST_LINE = 80
_LONGEST_READ = 400  # characters of a line that are compared with the question
_NUMBER = re.compile(r"(?<![\w.-])[0-9]{1,2}(?![\w-]|\.\d)")
_DEFINED = re.compile(
    # from the start of a line: prose says "class" and "type", too
    r"(?:(?:(?:export|default|async|public|private|protected|internal|static|final"
    r"|abstract|sealed|partial|override|virtual|inline|declare|data|open|suspend|unsafe"
    r"|pub(?:\([a-z]{1,10}\))?)\s+){0,4}"
    r"(?:def|class|function|func|fn|fun|interface|struct|enum|trait|type|impl|module"
    r"|namespace|object|record|protocol|macro_rules!)"
    r"|(?P<variable>(?:export\s+)?(?:const|let|var)))\s+"
    r"(?:\([^()]{0,80}\)\s*)?(?P<name>[A-Za-z_$][\w$]{2,40})"
)


class _Shown(NamedTuple):
    """A file as the model sees it."""

    path: str
    names: str
    line: str


def shuffle(question: str, files: Sequence[RankedFile]) -> list[int]:
    """Return the places of the files, from 0, in the order of the list."""
    start = hashlib.blake2b(question.encode("utf-8", "surrogatepass"))

    def digest(place: int) -> bytes:
        own = start.copy()
        own.update(files[place].path.encode("utf-8", "surrogatepass"))
        return own.digest()

    return sorted(range(len(files)), key=digest)


def write_list(
    question: str, query: Query, files: Iterable[RankedFile], read: ReadChunks
) -> str:
    """Return the question and the numbered files as text for a model. Blocks."""
    asked = " ".join(" ".join(mask_lines(question.splitlines())).split())
    rows = [_describe(file, query, read(file)) for file in files]
    listed = "\n".join(f"{n} {' | '.join(row)}" for n, row in enumerate(rows, 1))
    return f"Question: {_one_line(asked, _LONGEST_QUESTION)}\n\n{listed}\n"


def read_numbers(answer: str, count: int) -> list[int]:
    """Return the places in the list, from 0, that an answer names: at most five.

    Each counts once; numbers beyond `count` are ignored, and so is what stands around.
    """
    said = (int(number) for number in _NUMBER.findall(answer))
    known = dict.fromkeys(n - 1 for n in said if 1 <= n <= count)
    return [*known][:MOST_NUMBERS]


def _describe(
    file: RankedFile, query: Query, chunks: Sequence[Sequence[str]]
) -> _Shown:
    path = _one_line(mask(file.path)[-_LONGEST_PATH:], _LONGEST_PATH)
    names = " ".join(dict.fromkeys(_names_in(chunks)))
    best = _best_line(chunks[0] if chunks else (), query)
    return _Shown(path, _cut_names(names), _one_line(best, _LONGEST_LINE))


def _names_in(chunks: Sequence[Sequence[str]]) -> Iterator[str]:
    for lines in chunks:
        for line in lines:
            text = line[:_LONGEST_READ].lstrip()
            found = _DEFINED.match(text)
            # indented variables are local
            if found and not (found["variable"] and line[:1].isspace()):
                yield found["name"]


def _cut_names(names: str) -> str:
    if len(names) <= _LONGEST_NAMES:
        return names
    return names[:_LONGEST_NAMES].rpartition(" ")[0]


def _best_line(lines: Sequence[str], query: Query) -> str:
    """Return the line with the most of the question in it, the first of equal ones."""

    def worth(line: str) -> float:
        return sum(query.terms.get(t, 0.0) for t in {*terms(line[:_LONGEST_READ])})

    stripped = [text for line in lines if (text := line.strip())]
    return max(stripped, key=worth, default="")


def _one_line(text: str, longest: int) -> str:
    """Return a text of a stranger in which all can be seen; `|` only separates."""
    return escape(text[:longest]).replace("|", "¦")[:longest]
