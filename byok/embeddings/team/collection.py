"""One collection of a team: what is asked of the server about it, in bounded pieces.

A point is one text: its id comes from the text's key (`names.py`), its payload lists
the hashed repositories that contain the text, and nothing else. Points are inserted,
never overwritten, so members who push the same text do not disturb each other.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from byok.embeddings.team.check import check_score, check_vector, to_numbers
from byok.embeddings.team.names import PROBE_ID, from_uuid, to_uuid
from byok.embeddings.team.server import WRITE_SECONDS, TeamServer
from byok.errors import UpstreamRefused

if TYPE_CHECKING:
    from byok.embeddings.types import Vectors

REPOSITORY = "repo"  # the field of payloads by which the nearest are searched
_CHECK = "check"  # at the probe only
LOOKS = 256  # points whose payload is asked for at once
_MOST_REPOSITORIES = 64  # of one point: a licence's text is everywhere
_NUMBERS = 24_576  # of all vectors in a request: JSON that takes 3 ms to read or write
_CANDIDATES = 2.0  # how many times `limit` are compared again at full precision


class TeamCollection:
    """A collection on a team's server. All methods raise what TeamServer.ask raises."""

    def __init__(self, server: TeamServer, name: str, dimensions: int) -> None:
        self._server = server
        self.name = name
        self.dimensions = dimensions
        self.size = max(1, min(LOOKS, _NUMBERS // dimensions))

    async def exists(self) -> bool:
        """Return whether the server has it."""
        return await self._server.ask(lambda c: c.collection_exists(self.name))

    async def create(self) -> None:
        """Create it and the index over repositories; harmless if another member did."""
        from qdrant_client import models

        try:
            if not await self.exists():
                await self._server.ask(
                    lambda c: c.create_collection(self.name, **_shape(self.dimensions)),
                    seconds=WRITE_SECONDS,
                )
        except UpstreamRefused:
            if not await self.exists():  # another member was faster
                raise
        tenants = models.KeywordIndexParams(
            type=models.KeywordIndexType.KEYWORD, is_tenant=True
        )
        await self._server.ask(
            lambda c: c.create_payload_index(
                self.name, REPOSITORY, field_schema=tenants, wait=True
            ),
            seconds=WRITE_SECONDS,
        )

    async def read_probe(self) -> "tuple[Vectors | None, str] | None":
        """Return the probe's vector, None if it is unusable, and the check of the salt.

        None if there is no probe yet.
        """
        records = await self._server.ask(
            lambda c: c.retrieve(
                self.name, [PROBE_ID], with_payload=[_CHECK], with_vectors=True
            )
        )
        if not records:
            return None
        check = (records[0].payload or {}).get(_CHECK)
        return check_vector(records[0].vector, self.dimensions), str(check)

    async def write_probe(self, vector: "Vectors", check: str) -> None:
        """Store the probe's vector and the check of the salt, if there is none yet."""
        await self._insert([PROBE_ID], vector.reshape(1, -1), [{_CHECK: check}])

    async def vectors(self, names: Sequence[bytes]) -> "dict[bytes, Vectors]":
        """Return the vectors of at most `size` points, without those unusable."""
        wanted = {*names}
        records = await self._server.ask(
            lambda c: c.retrieve(
                self.name,
                [*map(to_uuid, wanted)],
                with_payload=False,
                with_vectors=True,
            )
        )
        found: dict[bytes, Vectors] = {}
        for record in records[: len(wanted)]:
            name, vector = from_uuid(record.id), None
            if name in wanted:
                vector = check_vector(record.vector, self.dimensions)
            if name is not None and vector is not None:
                found[name] = vector
        return found

    async def repositories(self, names: Sequence[bytes]) -> dict[bytes, list[str]]:
        """Return which of at most LOOKS points are there, and their repositories."""
        wanted = {*names}
        records = await self._server.ask(
            lambda c: c.retrieve(
                self.name,
                [*map(to_uuid, wanted)],
                with_payload=[REPOSITORY],
                with_vectors=False,
            )
        )
        found = {from_uuid(r.id): _texts(r.payload) for r in records[: len(wanted)]}
        return {name: found[name] for name in wanted if name in found}

    async def insert(
        self, names: Sequence[bytes], rows: "Vectors", repositories: Sequence[str]
    ) -> None:
        """Add at most `size` points that belong to these repositories."""
        payload = {REPOSITORY: [*repositories[:_MOST_REPOSITORIES]]}
        ids = [*map(to_uuid, names)]
        await self._insert(ids, rows, [payload] * len(ids))

    async def _insert(
        self, ids: list[str], rows: "Vectors", payloads: list[dict[str, Any]]
    ) -> None:
        from qdrant_client import models

        points = models.Batch(ids=[*ids], vectors=to_numbers(rows), payloads=payloads)
        await self._server.ask(
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
        """Add repositories to at most LOOKS points, of which these are known.

        Members who do this at the same moment may lose each other's; the next push of
        the loser repeats it.
        """
        changes: dict[tuple[str, ...], list[str]] = {}
        for name, old in known.items():
            new = tuple(dict.fromkeys((*old, *repositories)))
            if len(old) < len(new) <= _MOST_REPOSITORIES:
                changes.setdefault(new, []).append(to_uuid(name))
        for new, ids in changes.items():
            await self._set_repositories(new, ids)

    async def _set_repositories(self, new: Sequence[str], ids: list[str]) -> None:
        await self._server.ask(
            lambda c: c.set_payload(
                self.name, {REPOSITORY: [*new]}, points=[*ids], wait=True
            ),
            seconds=WRITE_SECONDS,
        )

    async def nearest(
        self,
        question: "Vectors",
        repositories: Sequence[str],
        *,
        among: Sequence[bytes] = (),
        limit: int,
        seconds: float,
    ) -> dict[bytes, float]:
        """Return the points of these repositories nearest to a question, by cosine.

        With `among`, only these points are compared.
        """
        from qdrant_client import models

        [numbers] = to_numbers(question.reshape(1, -1))
        within = models.FieldCondition(
            key=REPOSITORY, match=models.MatchAny(any=[*repositories])
        )
        must: list[models.Condition] = [within]
        if among:
            must.append(models.HasIdCondition(has_id=[*map(to_uuid, among)]))
        precise = models.QuantizationSearchParams(
            rescore=True, oversampling=_CANDIDATES
        )
        answer = await self._server.ask(
            lambda c: c.query_points(
                self.name,
                query=numbers,
                query_filter=models.Filter(must=must),
                search_params=models.SearchParams(quantization=precise),
                limit=limit,
                with_payload=False,
                with_vectors=False,
            ),
            seconds=seconds,
        )
        scores = (
            (from_uuid(p.id), check_score(p.score)) for p in answer.points[:limit]
        )
        return {name: score for name, score in scores if name and score is not None}


def _texts(payload: Any) -> list[str]:
    """Return the repositories in a payload, whatever it is."""
    listed = payload.get(REPOSITORY) if isinstance(payload, dict) else None
    if not isinstance(listed, list):
        return []
    return [text for text in listed if isinstance(text, str)][:_MOST_REPOSITORIES]


def _shape(dimensions: int) -> dict[str, Any]:
    """Return the parameters of a new collection.

    All searches are within repositories, so graphs are built for each repository
    (`payload_m`) and none for the whole. Searches use 8-bit vectors in memory; the
    16-bit ones stay on disk, for `vectors` and for comparing the best ones again.
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
