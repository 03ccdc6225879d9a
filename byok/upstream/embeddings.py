"""An embedding model of an upstream: turns texts into vectors, in one request."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from byok.core.errors import (
    RefusalKind,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.core.record import no_record
from byok.dialects.openai_embeddings import (
    Floats,
    longest_answer,
    read_embeddings,
    write_embeddings_request,
)
from byok.upstream.base import ForwardedResponse, Upstream
from byok.upstream.http_body import read_plain

_log = logging.getLogger(__name__)
_PATH = "embeddings"
_MAX_ATTEMPTS = 3
_FIRST_BACKOFF = 1.0  # seconds
# Refusals that may be caused by the requested encoding of the answer.
_ENCODING_STATUS = frozenset({400, 422})
_ENCODING_KIND = frozenset({RefusalKind.UNKNOWN, RefusalKind.BAD_PARAMETER})


class EmbeddingModel(Struct, eq=False):
    """Asks one model for vectors.

    `Upstream.forward` chooses the key, checks the circuit breaker, and retries requests
    that get no answer. A request whose answer breaks off or is not usable is repeated
    here, up to three attempts in all. `seconds` limits one request with its answer.
    """

    upstream: Upstream
    model: str
    dimensions: int = 0
    seconds: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _base64: bool = True
    _is_known: bool = False  # whether this server can encode in base64

    async def __call__(self, texts: Sequence[str]) -> list[Floats]:
        """Return a vector for each text, in their order and all of one size.

        Raises:
            UpstreamError: there is no usable answer.
            ByokError: the upstream serves no embeddings, or cannot be asked now.
        """
        with no_record():  # indexing may start in a request, and continues after it
            try:
                vectors = await self._ask_with_retries(texts)
            except UpstreamRefused as error:
                if self._is_known or not _may_refuse_encoding(error):
                    raise
                vectors = await self._ask_without_base64(texts, error)
        self._is_known = True
        return vectors

    async def _ask_without_base64(
        self, texts: Sequence[str], refusal: UpstreamRefused
    ) -> list[Floats]:
        """Ask for numbers; raise the earlier refusal if this fails as well."""
        self._base64 = False
        try:
            vectors = await self._ask_with_retries(texts)
        except UpstreamError:
            self._base64 = True
            raise refusal from None
        _log.info("%s gives no vectors in base64", self.upstream.name)
        return vectors

    async def _ask_with_retries(self, texts: Sequence[str]) -> list[Floats]:
        content = write_embeddings_request(
            self.model, texts, dimensions=self.dimensions, base64=self._base64
        )
        count, attempt = len(texts), 1
        while True:
            async with (
                self._time_limit(count),
                self.upstream.forward(_PATH, content) as response,
            ):
                try:
                    return await self._read(response, count)
                except UpstreamError as error:
                    error.upstream = self.upstream.name
                    if attempt == _MAX_ATTEMPTS or not _is_worth_retry(error):
                        raise
            luck = random.random()  # noqa: S311 - spreads requests, hides nothing
            await self.sleep(_FIRST_BACKOFF * 2 ** (attempt - 1) * (1 + luck) / 2)
            attempt += 1

    @asynccontextmanager
    async def _time_limit(self, count: int) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.seconds):
                yield
        except TimeoutError as error:
            raise UpstreamTimeout(
                f"it did not make {count} vectors in {self.seconds:.0f} s.",
                upstream=self.upstream.name,
                hint="A higher timeout for this upstream may help.",
            ) from error

    async def _read(self, response: ForwardedResponse, count: int) -> list[Floats]:
        coding = response.headers.get("content-encoding", "")
        raw, is_cut = await read_plain(response.reads, longest_answer(count), coding)
        if is_cut:
            raise UpstreamGarbled(
                f"its answer is larger than {count} vectors can be.",
                code="embedding_garbled",
            )
        return await asyncio.to_thread(
            read_embeddings, raw, count, dimensions=self.dimensions
        )


def _is_worth_retry(error: UpstreamError) -> bool:
    """Tell whether an unusable answer may be better after a retry."""
    is_broken = isinstance(error, UpstreamUnreachable | UpstreamGarbled)
    return is_broken and error.retryable and not isinstance(error, UpstreamTimeout)


def _may_refuse_encoding(error: UpstreamRefused) -> bool:
    return error.upstream_status in _ENCODING_STATUS and error.kind in _ENCODING_KIND
