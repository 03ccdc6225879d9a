"""Let a model rerank the best files, between ranking and packing.

The model gets a short list and names a few files of it by number; how these choices
change the order is decided here. It has two seconds. After a failure the order stays,
and a cooldown begins that is longer after each further failure, so that searches do not
wait in vain. A question that is one identifier is left to the ranking, which puts the
definition first.

`pack` decides by the scores how much of each file to show. So files that move get the
score of their new rank, and `RankedFile.place` has the old one.
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

MAX_FILES = 20
MAX_NUMBERS = 5
MAX_ANSWER_CHARS = 80  # all numbers with some words
_MAX_QUESTION_CHARS = 600
_MAX_PATH_CHARS = 80
_MAX_NAMES_CHARS = 50
_MAX_LINE_CHARS = 80
_MAX_READ_CHARS = 400  # of a line, compared with the question
_NUMBER = re.compile(r"(?<![\w.-])[0-9]{1,2}(?![\w-]|\.\d)")
_DEFINITION = re.compile(
    # only at the start of a line: prose has the words "class" and "type" too
    r"(?:(?:(?:export|default|async|public|private|protected|internal|static|final"
    r"|abstract|sealed|partial|override|virtual|inline|declare|data|open|suspend|unsafe"
    r"|pub(?:\([a-z]{1,10}\))?)\s+){0,4}"
    r"(?:def|class|function|func|fn|fun|interface|struct|enum|trait|type|impl|module"
    r"|namespace|object|record|protocol|macro_rules!)"
    r"|(?P<variable>(?:export\s+)?(?:const|let|var)))\s+"
    r"(?:\([^()]{0,80}\)\s*)?(?P<name>[A-Za-z_$][\w$]{2,40})"
)
_CHOICE_WEIGHT = 0.7
_RANK_OFFSET = 2.0  # the higher, the smaller the differences between the first ranks
_COMPARED_CHOICES, _TOP_RANKS = 3, 5  # the first choices should be at the top ranks
_MIN_TRIALS, _MAX_TRIALS = 4, 32
_MIN_DEVIATIONS = 3.0  # standard deviations above chance
_ENOUGH_TRIALS = 16
_SECONDS = 2.0
_MAX_CACHED_ANSWERS = 256


class ModelRerank:
    """Lets a model change the order of files; caches its answer for each list."""

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
        self._cooldown = ModelCooldown("files keep their order", clock)
        self._agreement = Agreement()
        self._answer_cache = BoundedMap[bytes, list[int]](_MAX_CACHED_ANSWERS)

    async def __call__(
        self,
        question: str,
        query: Query,
        files: Sequence[RankedFile],
        read_chunks: ReadChunks,
    ) -> list[RankedFile]:
        """Return the files in the model's order, or as they are without its answer."""
        listed = files[:MAX_FILES]
        is_clear = len(listed) < 2 or query.identifier
        if is_clear or not self._cooldown.is_over:
            return [*files]
        order = shuffle(question, listed)
        shuffled = [listed[position] for position in order]
        try:
            text = await asyncio.to_thread(
                write_list, question, query, shuffled, read_chunks
            )
            choices = [order[n] for n in await self._choose(text, order)]
        except ByokError as error:
            self._cooldown.record_failure(error)
            return [*files]
        return merge(files, choices) if self._agreement.is_significant else [*files]

    async def _choose(self, text: str, order: Sequence[int]) -> list[int]:
        """Return the positions in the list that the model names."""
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest()
        if (cached := self._answer_cache.get(key)) is not None:
            return cached
        answer = await self._ask(
            self._instruction,
            text,
            seconds=self._seconds,
            longest=MAX_ANSWER_CHARS,
        )
        if not (positions := read_numbers(answer, len(order))):
            raise UpstreamGarbled("the model named no file of the list.")
        self._cooldown.record_success()
        self._answer_cache[key] = positions
        self._agreement.add([order[n] for n in positions], len(order))
        if self._agreement.has_no_judgement:
            self._agreement.reset()
            self._cooldown.begin("its choices are no better than chance.")
        return positions


class _Trial(NamedTuple):
    """How many more of the first choices were at the top ranks than by chance."""

    surplus: float
    variance: float


class Agreement:
    """Tells from a model's last choices whether it judges at all.

    A model without any judgement would do harm, and it cannot be asked whether it has
    some. But the ranking is often right, and a model that judges agrees with it more
    often than chance does. So choices count only once the last ones have shown that.
    """

    def __init__(self) -> None:
        self._trials: deque[_Trial] = deque(maxlen=_MAX_TRIALS)

    def add(self, positions: Sequence[int], count: int) -> None:
        """Record the positions, from 0, that a model chose among `count` ranked files.

        Choices agree with the ranking if the first three are among its first five. By
        chance they are a draw without replacement (hypergeometric distribution).
        """
        compared = positions[:_COMPARED_CHOICES]
        if count < 2 or not compared:
            return
        choices, share = len(compared), min(_TOP_RANKS, count) / count
        agreeing = sum(position < _TOP_RANKS for position in compared)
        variance = choices * share * (1 - share) * (count - choices) / (count - 1)
        self._trials.append(_Trial(agreeing - choices * share, variance))

    @property
    def is_significant(self) -> bool:
        """Whether the choices agree with the ranking more than by chance."""
        variance = sum(trial.variance for trial in self._trials)
        if len(self._trials) < _MIN_TRIALS or not variance:
            return False
        surplus = sum(trial.surplus for trial in self._trials)
        return surplus >= _MIN_DEVIATIONS * math.sqrt(variance)

    @property
    def has_no_judgement(self) -> bool:
        """Whether there were enough choices, and they agreed no more than by chance."""
        return len(self._trials) >= _ENOUGH_TRIALS and not self.is_significant

    def reset(self) -> None:
        """Forget all choices."""
        self._trials.clear()


def merge(files: Sequence[RankedFile], positions: Sequence[int]) -> list[RankedFile]:
    """Return the files in an order that the model's choices have changed.

    `positions` are the positions of its choices among the files, from 0, the best
    choice first. Other files keep their order. The scores stay at their ranks: the
    first file gets the highest one, and so on.

    Choices do not replace the ranking: a file at rank n, from 1, has the value 1/(n+1),
    and the model's n-th choice gains 0.7/(n+1). So the first choice comes to the top
    from the fifth rank or above, and from further below to the second. By this a good
    judge keeps nine tenths of its gain, and a poor one does little harm
    (docs/reference/retrieval.md).
    """
    values = [1 / (_RANK_OFFSET + position) for position in range(len(files))]
    for choice, position in enumerate(positions):
        values[position] += _CHOICE_WEIGHT / (_RANK_OFFSET + choice)
    order = sorted(
        range(len(files)), key=lambda position: (-values[position], position)
    )
    return [
        files[old]
        if old == new
        else replace(files[old], score=files[new].score, place=old + 1)
        for new, old in enumerate(order)
    ]


def shuffle(question: str, files: Sequence[RankedFile]) -> list[int]:
    """Return the positions of the files, from 0, in the order of the model's list."""
    start = hashlib.blake2b(question.encode("utf-8", "surrogatepass"))

    def digest(position: int) -> bytes:
        path_digest = start.copy()
        path_digest.update(files[position].path.encode("utf-8", "surrogatepass"))
        return path_digest.digest()

    return sorted(range(len(files)), key=digest)


def write_list(
    question: str, query: Query, files: Iterable[RankedFile], read_chunks: ReadChunks
) -> str:
    """Return the question and the numbered files as text for a model; blocks.

        Question: where are cookies written to disk

        1 src/settings/defaults.py | | COOKIES_DEBUG = False
        2 src/http/cookies.py | CookieJar set_cookie | def extract_cookies(self, resp

    The files are in the order of `shuffle`, which says nothing: models that cannot
    judge tend to name what comes first. The order depends on the question and the paths
    alone, so equal lists are equal texts.

    Strangers wrote everything in the list: the names of files, their code, and in part
    the question. None of it spans lines or hides characters, secrets are masked, and
    the answer is only searched for numbers of the list. So text in a file that speaks
    to the model can do no more than change the order.
    """
    masked = " ".join(" ".join(mask_lines(question.splitlines())).split())
    rows = [_describe(file, query, read_chunks(file)) for file in files]
    list_text = "\n".join(f"{n} {row}" for n, row in enumerate(rows, 1))
    return f"Question: {_one_line(masked, _MAX_QUESTION_CHARS)}\n\n{list_text}\n"


def read_numbers(answer: str, count: int) -> list[int]:
    """Return the positions in the list, from 0, that an answer names: at most five.

    Each counts once; numbers above `count` and any other text are ignored.
    """
    numbers = (int(number) for number in _NUMBER.findall(answer))
    positions = dict.fromkeys(n - 1 for n in numbers if 1 <= n <= count)
    return [*positions][:MAX_NUMBERS]


def _describe(file: RankedFile, query: Query, chunks: Sequence[Sequence[str]]) -> str:
    """Return the path of a file, names that it defines, and its best line."""
    path = _one_line(mask(file.path)[-_MAX_PATH_CHARS:], _MAX_PATH_CHARS)
    names = " ".join(dict.fromkeys(_defined_names(chunks)))
    if len(names) > _MAX_NAMES_CHARS:
        names = names[:_MAX_NAMES_CHARS].rpartition(" ")[0]
    best = _best_line(chunks[0] if chunks else (), query)
    return f"{path} | {names} | {_one_line(best, _MAX_LINE_CHARS)}"


def _defined_names(chunks: Sequence[Sequence[str]]) -> Iterator[str]:
    for lines in chunks:
        for line in lines:
            text = line[:_MAX_READ_CHARS].lstrip()
            definition = _DEFINITION.match(text)
            # An indented variable is a local one.
            if definition and not (definition["variable"] and line[:1].isspace()):
                yield definition["name"]


def _best_line(lines: Sequence[str], query: Query) -> str:
    """Return the line that matches the question best; of equals, the first."""

    def matching_weight(line: str) -> float:
        return sum(query.terms.get(t, 0.0) for t in {*terms(line[:_MAX_READ_CHARS])})

    stripped = [text for line in lines if (text := line.strip())]
    return max(stripped, key=matching_weight, default="")


def _one_line(text: str, longest: int) -> str:
    """Return a stranger's text without hidden characters and without `|`."""
    return escape(text[:longest]).replace("|", "¦")[:longest]
