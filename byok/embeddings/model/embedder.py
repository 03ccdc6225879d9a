"""Makes vectors with one model: batches, waits, and questions before everything else.

A model may refuse a batch because it is too long, because it has too many texts, or
because of one text in it, and few say which. So the batch is halved, down to single
texts, and those are cut in half down to a floor; what is still refused has no vector.
Whether the model refuses everything, such as for a wrong name, is found out first, with
the probe text.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from byok.embeddings.model.batches import LONGEST_TEXT, BatchSize
from byok.embeddings.model.pacing import Priority, Rest
from byok.embeddings.model.prefixes import Prefixes
from byok.embeddings.numeric import np
from byok.embeddings.types import SpaceName
from byok.errors import (
    ByokError,
    RefusalKind,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
)

if TYPE_CHECKING:
    from byok.embeddings.types import Vectors

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
_ABOUT_ELSE = frozenset(
    {
        *(RefusalKind.AUTH, RefusalKind.LOADING, RefusalKind.NOT_FOUND),
        *(RefusalKind.NO_MEMORY, RefusalKind.OVERLOADED, RefusalKind.QUOTA),
        *(RefusalKind.RATE_LIMIT, RefusalKind.REDIRECT, RefusalKind.REGION),
        RefusalKind.WRONG_API,
    }
)


class ModelEmbedder:
    """The Embedder of `types.py`.

    `may_send` raises a ByokError where nothing may be sent; it is called before each
    request. `redact` removes the user's secrets from texts and from errors.
    """

    def __init__(
        self,
        ask: AskVectors,
        *,
        host: str,
        model: str,
        recipe: str,
        prefixes: Prefixes,
        may_send: Callable[[], None],
        redact: Callable[[str], str],
        rest: Rest | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._host = host
        self._model = model
        self._recipe = recipe
        self._prefixes = prefixes
        self._may_send = may_send
        self._redact = redact
        self._rest = rest or Rest()
        self._clock = clock
        self._priority = Priority()
        self._size = BatchSize()
        self._dimensions = 0  # unknown before the probe

    @property
    def host(self) -> str:
        """See Embedder.host."""
        return self._host

    @property
    def model(self) -> str:
        """See Embedder.model."""
        return self._model

    async def probe(self) -> tuple[SpaceName, "Vectors"]:
        """See Embedder.probe."""
        await self._rest.wait()
        async with self._priority.filling():
            [row] = await self._send([self._prefixes.document + PROBE])
        self._dimensions = len(row)
        name = SpaceName(
            self._model,
            len(row),
            self._recipe,
            self._prefixes.document,
            self._prefixes.query,
        )
        vector: Vectors = _as_rows([row], len(row))[0]
        return name, vector

    async def embed_question(self, text: str) -> "Vectors":
        """See Embedder.embed_question; refused at once while the model rests."""
        self._rest.check()
        longest = min(_LONGEST_QUESTION, self._size.longest)
        # Cut afterwards: no half of a secret is left over.
        text = self._prefixes.query + self._redact(text[: 4 * longest])[:longest]
        async with self._priority.question():
            [row] = await self._send([text])
        self._check_size([row])
        vector: Vectors = _as_rows([row], len(row))[0]
        return vector

    async def embed_documents(self, texts: Sequence[str]) -> "Vectors":
        """See Embedder.embed_documents."""
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
        prefix = self._prefixes.document
        return [prefix + self._redact(text[:LONGEST_TEXT]) for text in texts]

    async def _embed(self, texts: Sequence[str]) -> list[Sequence[float] | None]:
        """Return a vector for each text, None where one is refused for good."""
        await self._rest.wait()
        try:
            return [*await self._send_code(texts)]
        except UpstreamRefused as error:
            if not _is_about_texts(error):
                raise
            await self._check_answers(error)
            return await self._embed_parts(texts, error)

    async def _embed_parts(
        self, texts: Sequence[str], refusal: UpstreamRefused
    ) -> list[Sequence[float] | None]:
        """Embed texts that were refused together: in two halves, or shortened."""
        if len(texts) == 1:
            return [await self._embed_start(texts[0], refusal)]
        middle = (len(texts) + 1) // 2
        rows: list[Sequence[float] | None] = []
        refused = refusal.upstream_status not in _ABOUT_COUNT
        for part in (texts[:middle], texts[middle:]):
            try:
                rows += await self._send_code(part)
            except UpstreamRefused as error:
                if not _is_about_texts(error):
                    raise
                rows += await self._embed_parts(part, error)
                refused = True
        if not refused:
            self._size.note_refusal(len(texts))
        return rows

    async def _embed_start(
        self, text: str, refusal: UpstreamRefused
    ) -> Sequence[float] | None:
        """Return the vector of as much of a refused text as the model takes."""
        text = text[: self._size.longest]
        while len(text) > _FLOOR:
            length, text = len(text), text[: len(text) // 2]
            try:
                [row] = await self._send_code([text])
            except UpstreamRefused as error:
                if not _is_about_texts(error):
                    raise
                refusal = error
            else:
                if _is_too_long(refusal):
                    self._size.note_too_long(length)
                return row
        return None

    async def _check_answers(self, refusal: UpstreamRefused) -> None:
        """Check that the model takes anything at all; else this was no single text."""
        try:
            await self._send_code([self._prefixes.document + PROBE])
        except UpstreamRefused:
            self._rest.begin(refusal)
            raise refusal from None

    async def _send_code(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        longest = self._size.longest
        async with self._priority.filling():
            started = self._clock()
            rows = await self._send([text[:longest] for text in texts])
            self._size.note_answer(len(texts), self._clock() - started)
        self._check_size(rows)
        return rows

    async def _send(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self._may_send()
        try:
            rows = await self._ask(texts)
        except ByokError as error:
            said = error.redact(self._redact)
            if not _is_about_texts(error):
                self._rest.begin(said)
            raise said from None
        self._rest.end()
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
        self._rest.begin(error)
        raise error


def _is_about_texts(error: ByokError) -> bool:
    """Tell whether other texts, or fewer, may be taken."""
    if not isinstance(error, UpstreamRefused) or error.kind in _ABOUT_ELSE:
        return False
    return _is_too_long(error) or error.upstream_status in _ABOUT_TEXTS


def _is_too_long(error: UpstreamRefused) -> bool:
    return error.upstream_status == 413 or error.kind in (
        RefusalKind.CONTEXT_LENGTH,
        RefusalKind.TOO_LARGE,
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
