"""Makes vectors with one model: batches, waits, and questions before everything else.

A model may refuse a batch because it is too long, because it has too many texts, or
because of one text in it, and few say which. So the batch is halved, down to single
texts, and those are cut in half down to a floor; what is still refused has no vector.
So it is where an answer cannot be used, such as for a text of which a model makes NaN.
Whether the model refuses everything, such as for a wrong name, is found out first, with
the probe text.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from byok.core.errors import (
    ByokError,
    NotReady,
    RefusalKind,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.search.vectors.numeric import np
from byok.search.vectors.recipe import Prefixes
from byok.search.vectors.types import SpaceName

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors


# How many texts go into one request, which changes with what a model takes.


MOST_TEXTS = 64
MOST_TOKENS = 100_000
LONGEST_TEXT = 32_000  # characters; no known model reads more than 32,768 tokens
_LEAST_LONGEST = 200  # characters
# A question that comes while a model on this machine is busy with code waits for it.
_SLOW, _FAST = 2.0, 1.0  # seconds for a batch
_FEW = 8  # texts; smaller batches do not help
_BYTES_PER_TOKEN = 3  # code has 2.9 characters in a token (docs/reference/retrieval.md)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has; at least one."""
    return len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN + 1


class BatchSize:
    """The size of the next batch: at most 64 texts and 100,000 tokens.

    What a model refuses by its size is never sent again. After a timeout or a slow
    answer batches are half as large, and grow by a text with each fast answer.
    `longest` is how many characters of a text are sent.
    """

    def __init__(self) -> None:
        self.longest = LONGEST_TEXT
        self._most = MOST_TEXTS  # that the model takes
        self._now = MOST_TEXTS

    def first_of(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the first of these texts that make one request, one at least."""
        count = max(1, sum(1 for _ in self._fitting(texts)))
        return texts[:count]

    def _fitting(self, texts: Sequence[str]) -> Iterator[str]:
        tokens = 0
        for text in texts[: self._now]:
            tokens += estimate_tokens(text)
            if tokens > MOST_TOKENS:
                return
            yield text

    def note_answer(self, count: int, seconds: float) -> None:
        """Note that a batch of this many texts was answered, and how fast."""
        if seconds < _FAST:
            self._now = min(self._now + 1, self._most)
        elif seconds > _SLOW and count > _FEW:
            self._now = max(_FEW, min(self._now, count // 2))

    def note_timeout(self, count: int) -> None:
        """Note that a batch of this many texts was not answered in time."""
        self._now = max(1, min(self._now, count // 2))

    def note_refusal(self, count: int) -> None:
        """Note that a batch of this many texts was refused, and both halves taken."""
        self._most = max(1, min(self._most, (count + 1) // 2))
        self._now = min(self._now, self._most)

    def note_too_long(self, length: int) -> None:
        """Note that a text of this many characters was too long, and its half was not.

        Texts have more or fewer tokens, so the next ones keep three quarters of that.
        """
        self.longest = max(_LEAST_LONGEST, min(self.longest, length * 3 // 4))


# Whose request is next: questions come before code, and nobody's after a failure.


_PATIENCE = 2.0  # seconds that code waits for questions, so that they cannot stop it
_FIRST_REST, _LONGEST_REST = 1.0, 60.0
# A wrong key or name is not put right by itself.
_FIRST_LONG_REST, _LONGEST_LONG_REST = 10.0, 300.0
_LONGEST_WISH = 600.0  # of an upstream


class Priority:
    """One request for code at a time, and only while no question is open."""

    def __init__(self, *, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._filling = asyncio.Lock()
        self._questions = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    @asynccontextmanager
    async def question(self) -> AsyncIterator[None]:
        """Ask inside; code waits meanwhile."""
        self._questions += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._quiet.set()

    @asynccontextmanager
    async def filling(self) -> AsyncIterator[None]:
        """Send code inside, once questions are answered; they are waited for 2 s."""
        async with self._filling:
            with suppress(TimeoutError):  # there may always be one more question
                async with asyncio.timeout(self._patience):
                    await self._quiet.wait()
            yield


class Rest(Struct, eq=False):
    """How long a model is left alone after failures in a row; longer each time."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random
    _failures: int = 0
    _until: float = float("-inf")
    _cause: ByokError | None = None

    @property
    def seconds(self) -> float:
        """How long the rest lasts from now on; 0 where there is none."""
        return max(0.0, self._until - self.clock())

    def begin(self, cause: ByokError) -> None:
        """Rest after a failure, at least as long as the upstream asks for."""
        first, longest = _FIRST_REST, _LONGEST_REST
        if not cause.retryable:
            first, longest = _FIRST_LONG_REST, _LONGEST_LONG_REST
        doubled = first * 2.0 ** min(self._failures, 16)
        seconds = min(longest, doubled) * (1 + self.draw()) / 2
        wish = cause.retry_after if isinstance(cause, UpstreamRefused) else None
        self._until = self.clock() + max(seconds, min(wish or 0.0, _LONGEST_WISH))
        self._failures += 1
        self._cause = cause

    def end(self) -> None:
        """Forget the failures: the model answered."""
        self._failures, self._until, self._cause = 0, float("-inf"), None

    async def wait(self) -> None:
        """Wait until the rest is over."""
        while (seconds := self.seconds) > 0:
            await self.sleep(seconds)

    def check(self) -> None:
        """Check that the model may be asked now.

        Raises:
            NotReady: it rests; the message is that of its last failure.
        """
        if self._cause is not None and self.seconds > 0:
            raise NotReady(
                self._cause.message,
                upstream=self._cause.upstream,
                hint=self._cause.hint,
                code="embedder_rests",
            )


# Sends one request; gives the numbers of one vector for each text.
AskVectors: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]

# What is asked to know a model again, and whether it answers at all. A change of this
# text makes every stored space look like that of another model.
PROBE = """src/settings/reader.py
class SettingsReader:
def read_port(text, default=8317):
    \"\"\"Return the port that a line of settings names.\"\"\"
    name, _, value = text.partition("=")
    return int(value) if name.strip() == "port" else default"""

_TRIES = 3  # of a batch that is not answered in time
_LONGEST_QUESTION = 1000  # characters, which even small models take
_FLOOR = 100  # characters; a text is not cut below
# Statuses that may be about the texts; the server of llama.cpp answers 500.
_ABOUT_TEXTS = frozenset({400, 413, 422, 500})
_ABOUT_COUNT = frozenset({400, 413, 422})
_UNUSABLE = "embedding_garbled"  # the code of an answer that has no usable vectors
_REFUSALS = (UpstreamRefused, UpstreamGarbled)
_Refusal: TypeAlias = UpstreamRefused | UpstreamGarbled
_ABOUT_ELSE = frozenset(
    {
        *(RefusalKind.AUTH, RefusalKind.LOADING, RefusalKind.NOT_FOUND),
        *(RefusalKind.NO_MEMORY, RefusalKind.OVERLOADED, RefusalKind.QUOTA),
        *(RefusalKind.RATE_LIMIT, RefusalKind.REDIRECT, RefusalKind.REGION),
        RefusalKind.WRONG_API,
    }
)


class ModelEmbedder(Struct, eq=False):
    """The Embedder of `types.py`.

    `may_send` raises a ByokError where nothing may be sent; it is called before each
    request. `redact` removes the user's secrets from texts and from errors.
    """

    ask: AskVectors
    model: str
    recipe: str
    prefixes: Prefixes
    may_send: Callable[[], None]
    redact: Callable[[str], str]
    rest: Rest = field(default_factory=Rest)
    clock: Callable[[], float] = time.monotonic
    _priority: Priority = field(default_factory=Priority)
    _size: BatchSize = field(default_factory=BatchSize)
    _dimensions: int = 0  # unknown before the probe

    async def probe(self) -> tuple[SpaceName, "Vectors"]:
        """Return the space that this model makes now, and the probe text's vector."""
        await self.rest.wait()
        async with self._priority.filling():
            [row] = await self._send([self.prefixes.document + PROBE])
        self._dimensions = len(row)
        name = SpaceName(
            self.model,
            len(row),
            self.recipe,
            self.prefixes.document,
            self.prefixes.query,
        )
        vector: Vectors = _as_rows([row], len(row))[0]
        return name, vector

    async def embed_question(self, text: str) -> "Vectors":
        """Return the vector of a question; refused at once while the model rests."""
        self.rest.check()
        longest = min(_LONGEST_QUESTION, self._size.longest)
        # Cut afterwards: no half of a secret is left over.
        text = self.prefixes.query + self.redact(text[: 4 * longest])[:longest]
        async with self._priority.question():
            [row] = await self._send([text])
        self._check_size([row])
        vector: Vectors = _as_rows([row], len(row))[0]
        return vector

    async def embed_documents(self, texts: Sequence[str]) -> "Vectors":
        """Return a row for each text, of zeros for one that is refused for good."""
        if not self._dimensions:
            await self.probe()
        left = await asyncio.to_thread(self._prepare, texts)
        rows: list[Sequence[float] | None] = []
        attempt = 1
        while left:
            batch = self._size.first_of(left)
            try:
                rows += await self._embed(batch)
            except UpstreamTimeout:
                self._size.note_timeout(len(batch))
                if attempt == _TRIES:
                    raise
                attempt += 1
                continue
            left, attempt = left[len(batch) :], 1
        return _as_rows(rows, self._dimensions)

    def _prepare(self, texts: Sequence[str]) -> list[str]:
        prefix = self.prefixes.document
        return [prefix + self.redact(text[:LONGEST_TEXT]) for text in texts]

    async def _embed(self, texts: Sequence[str]) -> list[Sequence[float] | None]:
        """Return a vector for each text, None where one is refused for good."""
        await self.rest.wait()
        try:
            return [*await self._send_code(texts)]
        except _REFUSALS as error:
            if not _is_about_texts(error):
                raise
            await self._check_answers(error)
            return await self._embed_parts(texts, error)

    async def _embed_parts(
        self, texts: Sequence[str], refusal: _Refusal
    ) -> list[Sequence[float] | None]:
        """Embed texts that were refused together: in two halves, or shortened."""
        if len(texts) == 1:
            return [await self._embed_start(texts[0], refusal)]
        middle = (len(texts) + 1) // 2
        rows: list[Sequence[float] | None] = []
        refused = (
            isinstance(refusal, UpstreamRefused)
            and refusal.upstream_status not in _ABOUT_COUNT
        )
        for part in (texts[:middle], texts[middle:]):
            try:
                rows += await self._send_code(part)
            except _REFUSALS as error:
                if not _is_about_texts(error):
                    raise
                rows += await self._embed_parts(part, error)
                refused = True
        if not refused:
            self._size.note_refusal(len(texts))
        return rows

    async def _embed_start(
        self, text: str, refusal: _Refusal
    ) -> Sequence[float] | None:
        """Return the vector of as much of a refused text as the model takes."""
        text = text[: self._size.longest]
        while len(text) > _FLOOR:
            length, text = len(text), text[: len(text) // 2]
            try:
                [row] = await self._send_code([text])
            except _REFUSALS as error:
                if not _is_about_texts(error):
                    raise
                refusal = error
            else:
                if _is_too_long(refusal):
                    self._size.note_too_long(length)
                return row
        return None

    async def _check_answers(self, refusal: _Refusal) -> None:
        """Check that the model takes anything at all; else this was no single text."""
        try:
            await self._send_code([self.prefixes.document + PROBE])
        except UpstreamRefused:
            self.rest.begin(refusal)
            raise refusal from None
        except UpstreamGarbled:  # the rest has begun
            raise refusal from None

    async def _send_code(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        longest = self._size.longest
        async with self._priority.filling():
            started = self.clock()
            rows = await self._send([text[:longest] for text in texts])
            self._size.note_answer(len(texts), self.clock() - started)
        self._check_size(rows)
        return rows

    async def _send(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.may_send()
        try:
            rows = await self.ask(texts)
        except ByokError as error:
            said = error.rewrite(self.redact)
            if isinstance(error, UpstreamGarbled) or not _is_about_texts(error):
                self.rest.begin(said)
            raise said from None
        self.rest.end()
        return rows

    def _check_size(self, rows: Sequence[Sequence[float]]) -> None:
        if not self._dimensions or {len(row) for row in rows} == {self._dimensions}:
            return
        error = UpstreamGarbled(
            f"its vectors had {self._dimensions} dimensions before, and have "
            f"{len(rows[0])} now.",
            code="embedding_dimensions",
            hint="Was the model replaced?",
            retryable=True,
        )
        self.rest.begin(error)
        raise error


def _is_about_texts(error: ByokError) -> bool:
    """Tell whether other texts, or fewer, may be taken."""
    if isinstance(error, UpstreamGarbled):
        return error.code == _UNUSABLE
    if not isinstance(error, UpstreamRefused) or error.kind in _ABOUT_ELSE:
        return False
    return _is_too_long(error) or error.upstream_status in _ABOUT_TEXTS


def _is_too_long(error: _Refusal) -> bool:
    return isinstance(error, UpstreamRefused) and (
        error.upstream_status == 413
        or error.kind in (RefusalKind.CONTEXT_LENGTH, RefusalKind.TOO_LARGE)
    )


def _as_rows(rows: Sequence[Sequence[float] | None], dimensions: int) -> "Vectors":
    """Return rows of length 1, or of zeros where there is no vector."""
    vectors = np.zeros((len(rows), dimensions), np.float64)
    for place, row in enumerate(rows):
        if row is not None:
            vectors[place] = row
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: Vectors = (vectors / lengths).astype(np.float32)
    return unit
