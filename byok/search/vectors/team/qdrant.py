"""A team's vectors on a Qdrant server: one request at a time, by the official client.

The client is loaded with the first request; with its gRPC part that takes most of a
second.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
from msgspec import Struct, field

from byok import __version__
from byok.core.errors import (
    ConfigError,
    RefusalKind,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.core.platform.process import explain_import
from byok.search.outside.server import (
    SecretSource,
    read_bounded,
    refusal_by,
    translate_failure,
)
from byok.search.vectors.team.collection import (
    CHECK,
    MAX_REPOSITORIES,
    READ_SECONDS,
    REPOSITORIES,
    WRITE_SECONDS,
    Received,
    TeamCollection,
    from_uuid,
    to_numbers,
    to_uuid,
)

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

    from byok.search.vectors.types import Vectors

MAX_ANSWER_BYTES = 4 * 2**20  # three times the largest answer that is requested
_NOT_INSTALLED = (
    "A team's index needs the package qdrant-client, which is not installed.",
    "Run: byok upgrade --extra qdrant",
)
_T = TypeVar("_T")
_OVERSAMPLING = 2.0  # times `limit` candidates are compared again at full precision


class QdrantStore(Struct, eq=False):
    """A Qdrant server, by HTTP without the proxies of the environment.

    `transport` is called in the event loop, before the first request. `seconds` is the
    timeout of requests that set none.
    """

    url: str
    transport: Callable[[], httpx.AsyncBaseTransport]
    api_key: SecretSource
    seconds: float = READ_SECONDS
    _key: str = ""
    _client: "AsyncQdrantClient | None" = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        """Check for the client library.

        Raises:
            ConfigError: it is not installed.
        """
        if find_spec("qdrant_client") is None:
            raise ConfigError(_NOT_INSTALLED[0], hint=_NOT_INSTALLED[1])

    def collection(self, name: str, dimensions: int) -> "QdrantCollection":
        """Return a collection of the server; sends no request."""
        return QdrantCollection(self, name, dimensions)

    async def ask(
        self,
        request: "Callable[[AsyncQdrantClient], Awaitable[_T]]",
        *,
        seconds: float = 0,
    ) -> _T:
        """Send one request by the client and return its result.

        Raises:
            ConfigError: a needed key is missing, or cannot be used.
            UpstreamError: the server gave no usable answer in time.
        """
        async with self._lock:
            if self._client is None:
                self._client = await self._connect()
            self._key = await self.api_key.get()
        try:
            return await _send(request(self._client), seconds or self.seconds)
        except UpstreamRefused as refused:
            if refused.kind is RefusalKind.AUTH:
                self.api_key.forget()
            raise

    async def close(self) -> None:
        """Close the client; the next request makes another one."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connect(self) -> "AsyncQdrantClient":
        try:
            module = await asyncio.to_thread(import_module, "qdrant_client")
        except ImportError as error:  # also of a dependency, such as gRPC
            raise explain_import(error, *_NOT_INSTALLED) from error
        port = httpx.URL(self.url).port
        client: AsyncQdrantClient = module.AsyncQdrantClient(
            url=self.url,
            # Without it the library uses a port of its own.
            port=port or (443 if self.url.startswith("https:") else 80),
            prefer_grpc=False,
            check_compatibility=False,  # this would send a request from another thread
            timeout=int(WRITE_SECONDS),
            transport=BoundedTransport(self.transport(), lambda: self._key),
            trust_env=False,
            follow_redirects=False,
        )
        return client


class QdrantCollection(TeamCollection):
    """A collection on a Qdrant server."""

    def __init__(self, store: QdrantStore, name: str, dimensions: int) -> None:
        super().__init__(name, dimensions)
        self._store = store

    async def exists(self) -> bool:
        """Tell whether the server has the collection."""
        return await self._store.ask(lambda c: c.collection_exists(self.name))

    async def create(self) -> None:
        """Create the collection, and the index over repositories."""
        from qdrant_client import models

        try:
            if not await self.exists():
                await self._store.ask(
                    lambda c: c.create_collection(
                        self.name, **_collection_settings(self.dimensions)
                    ),
                    seconds=WRITE_SECONDS,
                )
        except UpstreamRefused:
            if not await self.exists():  # another member was faster
                raise
        tenants = models.KeywordIndexParams(
            type=models.KeywordIndexType.KEYWORD, is_tenant=True
        )
        await self._store.ask(
            lambda c: c.create_payload_index(
                self.name, REPOSITORIES, field_schema=tenants, wait=True
            ),
            seconds=WRITE_SECONDS,
        )

    async def _read(
        self, names: Collection[bytes], field: str = "", *, vectors: bool = True
    ) -> list[Received]:
        records = await self._store.ask(
            lambda c: c.retrieve(
                self.name,
                [*map(to_uuid, names)],
                with_payload=[field] if field else False,
                with_vectors=vectors,
            )
        )
        return [
            Received(
                from_uuid(record.id), record.vector, _field_of(record.payload, field)
            )
            for record in records
        ]

    async def _insert(
        self,
        names: Sequence[bytes],
        rows: "Vectors",
        repositories: Sequence[str],
        check: str | None,
    ) -> None:
        from qdrant_client import models

        payload = {CHECK: check} if check else {REPOSITORIES: [*repositories]}
        points = models.Batch(
            ids=[*map(to_uuid, names)],
            vectors=to_numbers(rows),
            payloads=[payload] * len(names),
        )
        await self._store.ask(
            lambda c: c.upsert(
                self.name,
                points,
                wait=True,
                update_mode=models.UpdateMode.INSERT_ONLY,
            ),
            seconds=WRITE_SECONDS,
        )

    async def add_repositories(
        self, known: Mapping[bytes, Sequence[str]], repositories: Sequence[str]
    ) -> None:
        """Add repositories to texts, in one request for those with equal lists.

        If two members do this at the same time, one of their changes may be lost; the
        next push of that member repeats it.
        """
        changes: dict[tuple[str, ...], list[str]] = {}
        for name, old in known.items():
            new = tuple(dict.fromkeys((*old, *repositories)))
            if len(old) < len(new) <= MAX_REPOSITORIES:
                changes.setdefault(new, []).append(to_uuid(name))
        for new, ids in changes.items():
            await self._set_repositories(new, ids)

    async def _set_repositories(self, new: Sequence[str], ids: list[str]) -> None:
        await self._store.ask(
            lambda c: c.set_payload(
                self.name, {REPOSITORIES: [*new]}, points=[*ids], wait=True
            ),
            seconds=WRITE_SECONDS,
        )

    async def _nearest(
        self,
        numbers: Sequence[float],
        repositories: Sequence[str],
        among: Sequence[bytes],
        limit: int,
        seconds: float,
    ) -> Sequence[tuple[bytes, Any]]:
        from qdrant_client import models

        within = models.FieldCondition(
            key=REPOSITORIES, match=models.MatchAny(any=[*repositories])
        )
        must: list[models.Condition] = [within]
        if among:
            must.append(models.HasIdCondition(has_id=[*map(to_uuid, among)]))
        precise = models.QuantizationSearchParams(
            rescore=True, oversampling=_OVERSAMPLING
        )
        answer = await self._store.ask(
            lambda c: c.query_points(
                self.name,
                query=[*numbers],
                query_filter=models.Filter(must=must),
                search_params=models.SearchParams(quantization=precise),
                limit=limit,
                with_payload=False,
                with_vectors=False,
            ),
            seconds=seconds,
        )
        return [(from_uuid(point.id), point.score) for point in answer.points]


class BoundedTransport(httpx.AsyncBaseTransport):
    """Adds the key to requests of the client library, and bounds their answers.

    The library would fix the key when it is created, read answers of any size, accept
    compressed ones and send its own version. With this transport below it, requests are
    sent as those to other upstreams: the key is looked up for each, and no redirect is
    followed, because its location is not passed on. The owner of the `inner` transport
    closes it.
    """

    def __init__(
        self, inner: httpx.AsyncBaseTransport, api_key: Callable[[], str]
    ) -> None:
        self._inner = inner
        self._api_key = api_key

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer, read to the end.

        Raises:
            UpstreamGarbled: the answer is too large or compressed.
        """
        request.headers["accept-encoding"] = "identity"
        request.headers["user-agent"] = f"byok/{__version__}"
        if key := self._api_key():
            request.headers["api-key"] = key
        response = await self._inner.handle_async_request(request)
        try:
            content = await read_bounded(response, MAX_ANSWER_BYTES)
        finally:
            await response.aclose()
        kind = response.headers.get("content-type", "")
        return httpx.Response(
            response.status_code, headers={"content-type": kind}, content=content
        )


async def _send(request: Awaitable[_T], seconds: float) -> _T:
    from qdrant_client.http.exceptions import (
        ResponseHandlingException,
        UnexpectedResponse,
    )

    try:
        async with asyncio.timeout(seconds):
            return await request
    except TimeoutError:
        raise UpstreamTimeout(
            f"It did not answer within {seconds:g} seconds."
        ) from None
    except UnexpectedResponse as error:
        raise refusal_by(error.status_code or 0) from None
    except ResponseHandlingException as error:
        raise translate_failure(error.source) from None
    except (ValueError, AssertionError, RecursionError):
        raise UpstreamGarbled("Its answer is not what it should be.") from None


def _field_of(payload: Any, field: str) -> Any:
    return payload.get(field) if isinstance(payload, dict) else None


def _collection_settings(dimensions: int) -> dict[str, Any]:
    """Return the parameters of a new collection.

    All searches are within repositories, so there is a graph for each repository
    (`payload_m`) and none for the whole. Searches use 8-bit vectors in memory; those of
    16 bits stay on disk, for `vectors` and for comparing the best candidates again.
    """
    from qdrant_client import models

    small = models.ScalarQuantizationConfig(
        type=models.ScalarType.INT8, quantile=0.99, always_ram=True
    )
    return {
        "vectors_config": models.VectorParams(
            size=dimensions,
            distance=models.Distance.COSINE,
            on_disk=True,
            datatype=models.Datatype.FLOAT16,
        ),
        "quantization_config": models.ScalarQuantization(scalar=small),
        "hnsw_config": models.HnswConfigDiff(m=0, payload_m=16),
        "on_disk_payload": True,
    }
