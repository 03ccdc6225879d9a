"""Makes vectors with one model: batches, cooldowns, and questions before all else.

A model may refuse a batch because it is too long, because it has too many texts, or
because of one text in it, and few say which. So the batch is halved, down to single
texts, and those are halved down to a minimum; a text that is still refused has no
vector. The same is done where an answer cannot be used, such as a vector of NaNs. But
first the probe text shows whether the model refuses everything, such as for a wrong
name.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
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

MAX_TEXTS = 64
MAX_TOKENS = 100_000
MAX_TEXT_CHARS = 32_000  # no known model reads more than 32,768 tokens
_MIN_TEXT_CHARS = 200
# A batch should be quick: while a model on this machine works on one, questions wait.
_SLOW_SECONDS, _FAST_SECONDS = 2.0, 1.0
_SMALL_BATCH = 8  # texts; smaller batches are not quicker
_BYTES_PER_TOKEN = 3  # code has 2.9 characters in a token (docs/reference/retrieval.md)
_MAX_WAIT_SECONDS = 2.0  # of code for questions, so that they cannot stop it
_FIRST_COOLDOWN, _MAX_COOLDOWN = 1.0, 60.0  # seconds
# Seconds, after errors that do not pass by themselves, such as a wrong key or name.
_FIRST_LONG_COOLDOWN, _MAX_LONG_COOLDOWN = 10.0, 300.0
_MAX_RETRY_AFTER = 600.0  # seconds, of an upstream
# The probe: a text whose vector identifies a model, and shows that it answers at all. A
# change of this text makes every stored space look like that of another model.
PROBE = """src/settings/reader.py
class SettingsReader:
def read_port(text, default=8317):
    \"\"\"Return the port that a line of settings names.\"\"\"
    name, _, value = text.partition("=")
    return int(value) if name.strip() == "port" else default"""
_MAX_TRIES = 3  # of a batch that is not answered in time
_MAX_QUESTION_CHARS = 1000  # even small models read them
_MIN_PART_CHARS = 100  # shorter texts are not halved
# Statuses that may be caused by the texts; the server of llama.cpp answers 500.
_TEXT_STATUSES = frozenset({400, 413, 422, 500})
_COUNT_STATUSES = frozenset({400, 413, 422})  # by the number of texts
_GARBLED_CODE = "embedding_garbled"  # the code of an answer without usable vectors
_REFUSALS = (UpstreamRefused, UpstreamGarbled)
_OTHER_KINDS = frozenset(  # of refusals that the texts do not cause
    {
        *(RefusalKind.AUTH, RefusalKind.LOADING, RefusalKind.NOT_FOUND),
        *(RefusalKind.NO_MEMORY, RefusalKind.OVERLOADED, RefusalKind.QUOTA),
        *(RefusalKind.RATE_LIMIT, RefusalKind.REDIRECT, RefusalKind.REGION),
        RefusalKind.WRONG_API,
    }
)

# Sends one request, and returns the numbers of one vector for each text.
AskVectors: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
_Refusal: TypeAlias = UpstreamRefused | UpstreamGarbled


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text; at least one."""
    return len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN + 1


class BatchSize:
    """The size of the next batch: at most 64 texts and 100,000 tokens.

    A size that the model refused is never sent again. After a timeout or a slow answer
    batches are half as large, and they grow by a text with each fast answer. Of a text
    `max_chars` characters are sent.
    """

    def __init__(self) -> None:
        self.max_chars = MAX_TEXT_CHARS
        self._max_texts = MAX_TEXTS  # that the model accepts
        self._current = MAX_TEXTS

    def first_batch(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the first of these texts, as many as make one request."""
        tokens = 0
        for count, text in enumerate(texts[: self._current]):
            tokens += estimate_tokens(text)
            if tokens > MAX_TOKENS:
                return texts[: max(1, count)]
        return texts[: self._current]

    def record_answer(self, count: int, seconds: float) -> None:
        """Record that a batch of `count` texts was answered, and how fast."""
        if seconds < _FAST_SECONDS:
            self._current = min(self._current + 1, self._max_texts)
        elif seconds > _SLOW_SECONDS and count > _SMALL_BATCH:
            self._current = max(_SMALL_BATCH, min(self._current, count // 2))

    def record_timeout(self, count: int) -> None:
        """Record that a batch of `count` texts was not answered in time."""
        self._current = max(1, min(self._current, count // 2))

    def record_refusal(self, count: int) -> None:
        """Record that `count` texts were refused together, and both halves passed."""
        self._max_texts = max(1, min(self._max_texts, (count + 1) // 2))
        self._current = min(self._current, self._max_texts)

    def record_too_long(self, length: int) -> None:
        """Record that a text of `length` characters was too long, and its half was not.

        As the tokens of such texts vary, later ones keep three quarters of that length.
        """
        self.max_chars = max(_MIN_TEXT_CHARS, min(self.max_chars, length * 3 // 4))


class Priority:
    """Allows one request for code at a time, and only while no question is open."""

    def __init__(self, *, patience: float = _MAX_WAIT_SECONDS) -> None:
        self._patience = patience
        self._filling = asyncio.Lock()
        self._questions = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    @asynccontextmanager
    async def question(self) -> AsyncIterator[None]:
        """Send a question inside; code waits meanwhile."""
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
        """Send code inside, after open questions; waits 2 seconds for them at most."""
        async with self._filling:
            with suppress(TimeoutError):  # questions may come without end
                async with asyncio.timeout(self._patience):
                    await self._quiet.wait()
            yield


class Cooldown(Struct, eq=False):
    """A pause of requests to a model, longer after each failure in a row."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random
    _failures: int = 0
    _until: float = float("-inf")
    _cause: ByokError | None = None

    @property
    def seconds(self) -> float:
        """The remaining seconds; 0 if there is no cooldown."""
        return max(0.0, self._until - self.clock())

    def begin(self, cause: ByokError) -> None:
        """Start a cooldown after a failure, at least as long as the upstream asks."""
        first_seconds, max_seconds = _FIRST_COOLDOWN, _MAX_COOLDOWN
        if not cause.retryable:
            first_seconds, max_seconds = _FIRST_LONG_COOLDOWN, _MAX_LONG_COOLDOWN
        doubled = first_seconds * 2.0 ** min(self._failures, 16)
        seconds = min(max_seconds, doubled) * (1 + self.draw()) / 2
        requested = cause.retry_after if isinstance(cause, UpstreamRefused) else None
        requested = min(requested or 0.0, _MAX_RETRY_AFTER)
        self._until = self.clock() + max(seconds, requested)
        self._failures += 1
        self._cause = cause

    def end(self) -> None:
        """Forget the failures, as the model answered."""
        self._failures, self._until, self._cause = 0, float("-inf"), None

    async def wait(self) -> None:
        """Wait until the cooldown is over."""
        while (seconds := self.seconds) > 0:
            await self.sleep(seconds)

    def check(self) -> None:
        """Check that a request may be sent now.

        Raises:
            NotReady: not yet; the message is that of the last failure.
        """
        if self._cause is not None and self.seconds > 0:
            raise NotReady(
                self._cause.message,
                upstream=self._cause.upstream,
                hint=self._cause.hint,
                code="embedder_rests",
            )


class ModelEmbedder(Struct, eq=False):
    """The Embedder of `types.py`, by requests to an upstream.

    `may_send` is called before each request, and raises a ByokError if nothing may be
    sent. `redact` removes the user's secrets from texts and errors.
    """

    ask: AskVectors
    model: str
    recipe: str
    prefixes: Prefixes
    may_send: Callable[[], None]
    redact: Callable[[str], str]
    cooldown: Cooldown = field(default_factory=Cooldown)
    clock: Callable[[], float] = time.monotonic
    _priority: Priority = field(default_factory=Priority)
    _size: BatchSize = field(default_factory=BatchSize)
    _dimensions: int = 0  # unknown before the probe

    async def probe(self) -> tuple[SpaceName, "Vectors"]:
        """Return the space that this model makes now, and the probe text's vector."""
        await self.cooldown.wait()
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
        """Return the vector of a question; refused at once during a cooldown."""
        self.cooldown.check()
        max_chars = min(_MAX_QUESTION_CHARS, self._size.max_chars)
        # Cut after redaction, so that no part of a secret remains.
        text = self.prefixes.query + self.redact(text[: 4 * max_chars])[:max_chars]
        async with self._priority.question():
            [row] = await self._send([text])
        self._check_dimensions([row])
        vector: Vectors = _as_rows([row], len(row))[0]
        return vector

    async def embed_documents(self, texts: Sequence[str]) -> "Vectors":
        """Return a row for each text, with zeros for one that is finally refused."""
        if not self._dimensions:
            await self.probe()
        remaining = await asyncio.to_thread(self._prepare, texts)
        rows: list[Sequence[float] | None] = []
        attempt = 1
        while remaining:
            batch = self._size.first_batch(remaining)
            try:
                rows += await self._embed(batch)
            except UpstreamTimeout:
                self._size.record_timeout(len(batch))
                if attempt == _MAX_TRIES:
                    raise
                attempt += 1
                continue
            remaining, attempt = remaining[len(batch) :], 1
        return _as_rows(rows, self._dimensions)

    def _prepare(self, texts: Sequence[str]) -> list[str]:
        prefix = self.prefixes.document
        return [prefix + self.redact(text[:MAX_TEXT_CHARS]) for text in texts]

    async def _embed(self, texts: Sequence[str]) -> list[Sequence[float] | None]:
        """Return a vector for each text, None for one that is finally refused."""
        await self.cooldown.wait()
        try:
            return [*await self._send_documents(texts)]
        except _REFUSALS as error:
            if not _is_about_texts(error):
                raise
            await self._check_model_answers(error)
            return await self._embed_parts(texts, error)

    async def _embed_parts(
        self, texts: Sequence[str], refusal: _Refusal
    ) -> list[Sequence[float] | None]:
        """Embed texts that were refused together: in two halves, or shortened."""
        if len(texts) == 1:
            return [await self._embed_shortened(texts[0], refusal)]
        middle = (len(texts) + 1) // 2
        rows: list[Sequence[float] | None] = []
        refused = (
            isinstance(refusal, UpstreamRefused)
            and refusal.upstream_status not in _COUNT_STATUSES
        )
        for part in (texts[:middle], texts[middle:]):
            try:
                rows += await self._send_documents(part)
            except _REFUSALS as error:
                if not _is_about_texts(error):
                    raise
                rows += await self._embed_parts(part, error)
                refused = True
        if not refused:
            self._size.record_refusal(len(texts))
        return rows

    async def _embed_shortened(
        self, text: str, refusal: _Refusal
    ) -> Sequence[float] | None:
        """Return the vector of a refused text's start, as long as the model accepts."""
        text = text[: self._size.max_chars]
        while len(text) > _MIN_PART_CHARS:
            length, text = len(text), text[: len(text) // 2]
            try:
                [row] = await self._send_documents([text])
            except _REFUSALS as error:
                if not _is_about_texts(error):
                    raise
                refusal = error
            else:
                if _is_too_long(refusal):
                    self._size.record_too_long(length)
                return row
        return None

    async def _check_model_answers(self, refusal: _Refusal) -> None:
        """Check that the model accepts the probe; otherwise no text was the cause."""
        try:
            await self._send_documents([self.prefixes.document + PROBE])
        except UpstreamRefused:
            self.cooldown.begin(refusal)
            raise refusal from None
        except UpstreamGarbled:  # which began a cooldown
            raise refusal from None

    async def _send_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        max_chars = self._size.max_chars
        async with self._priority.filling():
            start = self.clock()
            rows = await self._send([text[:max_chars] for text in texts])
            self._size.record_answer(len(texts), self.clock() - start)
        self._check_dimensions(rows)
        return rows

    async def _send(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.may_send()
        try:
            rows = await self.ask(texts)
        except ByokError as error:
            redacted = error.rewrite(self.redact)
            if isinstance(error, UpstreamGarbled) or not _is_about_texts(error):
                self.cooldown.begin(redacted)
            raise redacted from None
        self.cooldown.end()
        return rows

    def _check_dimensions(self, rows: Sequence[Sequence[float]]) -> None:
        if not self._dimensions or {len(row) for row in rows} == {self._dimensions}:
            return
        error = UpstreamGarbled(
            f"its vectors had {self._dimensions} dimensions before, and have "
            f"{len(rows[0])} now.",
            code="embedding_dimensions",
            hint="Was the model replaced?",
            retryable=True,
        )
        self.cooldown.begin(error)
        raise error


def _is_about_texts(error: ByokError) -> bool:
    """Tell whether the model may accept other texts, or fewer."""
    if isinstance(error, UpstreamGarbled):
        return error.code == _GARBLED_CODE
    if not isinstance(error, UpstreamRefused) or error.kind in _OTHER_KINDS:
        return False
    return _is_too_long(error) or error.upstream_status in _TEXT_STATUSES


def _is_too_long(error: _Refusal) -> bool:
    return isinstance(error, UpstreamRefused) and (
        error.upstream_status == 413
        or error.kind in (RefusalKind.CONTEXT_LENGTH, RefusalKind.TOO_LARGE)
    )


def _as_rows(rows: Sequence[Sequence[float] | None], dimensions: int) -> "Vectors":
    """Return a matrix of vectors of length 1, and zeros where there is none."""
    vectors = np.zeros((len(rows), dimensions), np.float64)
    for index, row in enumerate(rows):
        if row is not None:
            vectors[index] = row
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: Vectors = (vectors / lengths).astype(np.float32)
    return unit
