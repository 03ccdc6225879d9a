"""Let a model help to put the best files in order, between ranking and packing.

The model is shown a short list and names a few of it by number; how they change the
order is decided here. It has two seconds. Whatever goes wrong, the order stays, and the
model is left alone for a while, and longer each time it fails again, so that searches
do not wait in vain. A question that is one identifier is left to the ranking, which
puts the definition first.

`pack` reads from the scores how much of each file to show. So files that move get the
score of their new place, and `RankedFile.place` tells where they were.
"""

import asyncio
import hashlib
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.errors import ByokError, UpstreamGarbled
from byok.core.escapes import escape
from byok.core.prompts.prompt_set import PromptSet
from byok.search.index.parse.tokens import terms
from byok.search.retrieval.masking import mask, mask_lines
from byok.search.retrieval.model_aids import AskModel, ModelCooldown, ReadChunks
from byok.search.retrieval.query import Query
from byok.search.retrieval.rank import RankedFile

# What a model is shown to order files by, and how its answer is read.
#
#     Question: where are cookies written to disk
#
#     1 src/settings/defaults.py | | COOKIES_DEBUG = False
#     2 src/http/cookies.py | CookieJar set_cookie | def extract_cookies(self, response
#
# The order of the list says nothing, so that the answer is the model's own judgement:
# models that cannot judge tend to name what comes first. It depends on the question and
# the paths alone, so equal lists are equal texts.
#
# Everything in the list was written by strangers: the names of files, their code, and
# in part the question. Nothing of it spans lines or hides characters, secrets are
# masked, and the answer is only searched for numbers of the list. So text in a file
# that speaks to the model can do no more than change the order.


MOST = 20  # files
MAX_NUMBERS = 5
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
    return [*known][:MAX_NUMBERS]


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


# How a model's choice changes the order of files, and when it may.
#
# A choice is merged with the ranking instead of replacing it: a file at place n is
# worth 1/(n+1), counted from 1, and the model's choices gain 0.7/(n+1) each by their
# places among themselves. So the first choice comes to the top from the fifth place or
# above, and from further below to the second. By this a good judge keeps nine tenths of
# what it could gain, and a poor one does little harm (docs/reference/retrieval.md).
#
# A model without any judgement would still do harm, and it cannot be asked whether it
# has some. But the ranking is often right, and a model that judges agrees with it more
# often than chance does. So choices count only once the last ones have shown that.


_WEIGHT = 0.7
_LEVEL = 2.0  # differences between the first places are smaller the higher it is
_COMPARED, _TOP = 3, 5  # the first choices, and the places where they should be
_FEWEST, _MOST = 4, 32
_SURE = 3.0  # standard deviations above chance
_HOPELESS = 16


class _Trial(NamedTuple):
    """How many of the first choices were high, above what chance gives."""

    surplus: float
    variance: float


class Agreement:
    """Tells from a model's last choices whether it judges at all."""

    def __init__(self) -> None:
        self._trials: deque[_Trial] = deque(maxlen=_MOST)

    def add(self, places: Sequence[int], count: int) -> None:
        """Note the places, from 0, that a model chose among `count` ranked files.

        They agree with the ranking if the first three are among its first five. By
        chance that is a draw without returning (hypergeometric).
        """
        chosen = places[:_COMPARED]
        if count < 2 or not chosen:
            return
        drawn, share = len(chosen), min(_TOP, count) / count
        high = sum(place < _TOP for place in chosen)
        spread = drawn * share * (1 - share) * (count - drawn) / (count - 1)
        self._trials.append(_Trial(high - drawn * share, spread))

    @property
    def is_significant(self) -> bool:
        """Whether the choices agree with the ranking more than by chance."""
        variance = sum(trial.variance for trial in self._trials)
        if len(self._trials) < _FEWEST or not variance:
            return False
        surplus = sum(trial.surplus for trial in self._trials)
        return surplus >= _SURE * math.sqrt(variance)

    @property
    def has_no_judgement(self) -> bool:
        """Whether many choices were made, and no judgement was seen in them."""
        return len(self._trials) >= _HOPELESS and not self.is_significant

    def forget(self) -> None:
        """Begin anew."""
        self._trials.clear()


def merge(files: Sequence[RankedFile], places: Sequence[int]) -> list[RankedFile]:
    """Return the files in an order that the model's choices have changed.

    `places` are those of its choices among the files, from 0, the best one first. The
    others keep their order. The scores stay where they are: the first file gets the
    highest one, and so on.
    """
    worth = [1 / (_LEVEL + place) for place in range(len(files))]
    for turn, place in enumerate(places):
        worth[place] += _WEIGHT / (_LEVEL + turn)
    order = sorted(range(len(files)), key=lambda place: (-worth[place], place))
    return [
        files[old]
        if old == new
        else replace(files[old], score=files[new].score, place=old + 1)
        for new, old in enumerate(order)
    ]


_SECONDS = 2.0
_MOST_KEPT = 256


class ModelRerank:
    """Lets a model change the order of files; keeps what it said of the same list."""

    def __init__(
        self,
        ask: AskModel,
        prompts: PromptSet,
        *,
        seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        values = {"most": str(MAX_NUMBERS)}
        self._ask = ask
        self._instruction = prompts.render("rerank", values=values).text
        self._seconds = seconds
        self._rest = ModelCooldown("files keep their order", clock)
        self._agreement = Agreement()
        self._kept = BoundedMap[bytes, list[int]](_MOST_KEPT)

    async def __call__(
        self,
        question: str,
        query: Query,
        files: Sequence[RankedFile],
        read: ReadChunks,
    ) -> list[RankedFile]:
        """Return the files in another order, or as they are."""
        listed = files[:MOST]
        is_clear = len(listed) < 2 or query.identifier
        if is_clear or not self._rest.is_over:
            return [*files]
        order = shuffle(question, listed)
        shown = [listed[place] for place in order]
        try:
            text = await asyncio.to_thread(write_list, question, query, shown, read)
            chosen = [order[n] for n in await self._choose(text, order)]
        except ByokError as error:
            self._rest.record_failure(error)
            return [*files]
        return merge(files, chosen) if self._agreement.is_significant else [*files]

    async def _choose(self, text: str, order: Sequence[int]) -> list[int]:
        """Return the places in the list that the model names."""
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest()
        if (kept := self._kept.get(key)) is not None:
            return kept
        answer = await self._ask(
            self._instruction,
            text,
            seconds=self._seconds,
            longest=LONGEST_ANSWER,
        )
        if not (found := read_numbers(answer, len(order))):
            raise UpstreamGarbled("the model named no file of the list.")
        self._rest.record_success()
        self._kept[key] = found
        self._agreement.add([order[n] for n in found], len(order))
        if self._agreement.has_no_judgement:
            self._agreement.forget()
            self._rest.begin("its choices are no better than chance.")
        return found
