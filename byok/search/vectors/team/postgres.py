"""A team's vectors on a PostgreSQL server with the extension pgvector.

One table is one collection (`TeamVectors`): a row is one text, with the same id, vector
and repositories as a point on Qdrant. Rows are inserted, never overwritten, and the
list of a row's repositories is changed by one statement, so members lose none of each
other's. Vectors have 16 bits a number. Searches are within repositories and compare all
rows of these: exact, without a graph.

Nothing that a server says is repeated: it could be the password.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from ssl import SSLContext
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

from byok.core.errors import (
    ByokError,
    ConfigError,
    ConnectFailed,
    RefusalKind,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.search.vectors.team.collection import (
    MOST_REPOSITORIES,
    PROBE_ID,
    check_score,
    check_vector,
    collection_size,
    read_repositories,
    to_numbers,
)
from byok.search.vectors.team.server import READ_SECONDS, WRITE_SECONDS, SecretSource

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors

_NOT_INSTALLED = (
    "A team's index on PostgreSQL needs the package asyncpg, which is not installed.",
    "Run: byok upgrade --extra postgres",
)
_PORT = 5432
_CONNECTIONS = 3  # a question need not wait for what fills
_IDLE_SECONDS = 60.0
_UNDEFINED_TABLE = "42P01"
_REFUSED = ("28", "42501")  # of a password; of a right that is missing


class PostgresServer:
    """The server; its connections are made when they are needed."""

    def __init__(
        self,
        url: str,
        password: SecretSource,
        tls: Callable[[], SSLContext] | None,
        *,
        writes: bool,
        seconds: float = READ_SECONDS,
    ) -> None:
        """Take an address like postgresql://user@host:5432/database.

        Without `tls` nothing is encrypted. The session of a member that does not write
        is read-only.

        Raises:
            ConfigError: the driver is not installed.
        """
        if find_spec("asyncpg") is None:
            raise ConfigError(_NOT_INSTALLED[0], hint=_NOT_INSTALLED[1])
        self._url = urlsplit(url)
        self._password = password
        self._tls = tls
        self._writes = writes
        self._seconds = seconds
        self._pool: Any = None
        self._lock = asyncio.Lock()

    def collection(self, name: str, dimensions: int) -> "PostgresCollection":
        """Return a table of the server; asks nobody."""
        return PostgresCollection(self, name, dimensions)

    async def fetch(
        self, statement: str, values: Sequence[object], *, seconds: float = 0
    ) -> list[Any]:
        """Return the rows of one statement.

        Raises:
            ConfigError: the password is missing.
            UpstreamError: the server gave no usable answer in time.
        """
        seconds = seconds or self._seconds
        async with self._lock:
            if self._pool is None:
                self._pool = await self._make_pool()
            pool = self._pool
        try:
            async with asyncio.timeout(seconds), pool.acquire() as connection:
                return list(await connection.fetch(statement, *values))
        except TimeoutError:
            raise UpstreamTimeout(
                f"It did not answer within {seconds:g} seconds."
            ) from None
        except OSError:
            raise ConnectFailed("It cannot be reached.") from None
        except _driver_errors() as error:
            raise await self._translate(error) from None

    async def close(self) -> None:
        """Close the connections; the next request makes others."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.terminate()

    async def _make_pool(self) -> Any:
        asyncpg = await asyncio.to_thread(import_module, "asyncpg")
        settings = {"application_name": "byok", "search_path": "public"}
        if not self._writes:
            settings["default_transaction_read_only"] = "on"
        return await asyncpg.create_pool(
            host=self._url.hostname,
            port=self._url.port or _PORT,
            user=unquote(self._url.username or "byok"),
            database=unquote(self._url.path.lstrip("/")) or "byok",
            password=await self._password.get() or "none",  # else a file is read
            ssl=self._tls() if self._tls else False,
            min_size=0,
            max_size=_CONNECTIONS,
            max_inactive_connection_lifetime=_IDLE_SECONDS,
            statement_cache_size=0,  # poolers of organisations mix sessions
            server_settings=settings,
        )

    async def _translate(self, error: Exception) -> ByokError:
        """Return what an error of the driver means."""
        from asyncpg import InterfaceError, PostgresError

        if isinstance(error, PostgresError):
            code = str(getattr(error, "sqlstate", "") or "")
            if code.startswith(_REFUSED):
                self._password.forget()
                await self.close()  # the pool keeps the password
                return UpstreamRefused(
                    "It refuses the password, or what this user may do.",
                    kind=RefusalKind.AUTH,
                )
            if code == _UNDEFINED_TABLE:
                return UpstreamRefused("It has no table.", kind=RefusalKind.NOT_FOUND)
            if not code.startswith("08"):  # of a connection
                return UpstreamRefused(f"It answers with an error ({code}).")
        if isinstance(error, PostgresError | InterfaceError):
            return UpstreamUnreachable("The connection was lost.")
        return UpstreamGarbled("Its answer is not what it should be.")


def _driver_errors() -> tuple[type[Exception], ...]:
    """Return what the driver raises, also where a server speaks no protocol of it."""
    from asyncpg import InterfaceError, InternalClientError, PostgresError

    known = (PostgresError, InterfaceError, InternalClientError, BufferError)
    return (*known, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class PostgresCollection:
    """A table of a team; a `TeamVectors`."""

    def __init__(self, server: PostgresServer, name: str, dimensions: int) -> None:
        self._server = server
        self.name = name
        self.dimensions = dimensions
        self.size = collection_size(dimensions)

    async def exists(self) -> bool:
        """See TeamVectors.exists."""
        rows = await self._fetch("SELECT to_regclass('TEAM_TABLE') IS NOT NULL")
        return bool(rows[0][0])

    async def create(self) -> None:
        """See TeamVectors.create."""
        try:
            await self._fetch(
                "CREATE EXTENSION IF NOT EXISTS vector", seconds=WRITE_SECONDS
            )
            await self._fetch(
                "CREATE TABLE IF NOT EXISTS TEAM_TABLE (id uuid PRIMARY KEY, "
                f"vector halfvec({self.dimensions}) NOT NULL, "
                "repo text[] NOT NULL DEFAULT '{}', salt_check text)",
                seconds=WRITE_SECONDS,
            )
            await self._fetch(
                "CREATE INDEX IF NOT EXISTS TEAM_INDEX ON TEAM_TABLE USING gin (repo)",
                seconds=WRITE_SECONDS,
            )
        except UpstreamRefused:
            if not await self.exists():  # another member was faster
                raise

    async def read_probe(self) -> "tuple[Vectors | None, str] | None":
        """See TeamVectors.read_probe."""
        rows = await self._fetch(
            "SELECT vector::real[], salt_check FROM TEAM_TABLE WHERE id = $1",
            UUID(PROBE_ID),
        )
        if not rows:
            return None
        return check_vector(rows[0][0], self.dimensions), str(rows[0][1])

    async def write_probe(self, vector: "Vectors", check: str) -> None:
        """See TeamVectors.write_probe."""
        await self._insert([UUID(PROBE_ID)], vector.reshape(1, -1), (), check)

    async def vectors(self, names: Sequence[bytes]) -> "dict[bytes, Vectors]":
        """See TeamVectors.vectors."""
        wanted = {*names}
        rows = await self._fetch(
            "SELECT id, vector::real[] FROM TEAM_TABLE WHERE id = ANY($1)",
            [UUID(bytes=name) for name in wanted],
        )
        found: dict[bytes, Vectors] = {}
        for row in rows[: len(wanted)]:
            name, vector = _name_of(row), check_vector(row[1], self.dimensions)
            if name in wanted and vector is not None:
                found[name] = vector
        return found

    async def repositories(self, names: Sequence[bytes]) -> dict[bytes, list[str]]:
        """See TeamVectors.repositories."""
        rows = await self._fetch(
            "SELECT id, repo FROM TEAM_TABLE WHERE id = ANY($1)",
            [UUID(bytes=name) for name in names],
        )
        found = {_name_of(row): read_repositories(row[1]) for row in rows}
        return {name: found[name] for name in names if name in found}

    async def insert(
        self, names: Sequence[bytes], rows: "Vectors", repositories: Sequence[str]
    ) -> None:
        """See TeamVectors.insert."""
        ids = [UUID(bytes=name) for name in names]
        await self._insert(ids, rows, repositories[:MOST_REPOSITORIES], None)

    async def _insert(
        self,
        ids: Sequence[UUID],
        rows: "Vectors",
        repositories: Sequence[str],
        check: str | None,
    ) -> None:
        await self._fetch(
            "INSERT INTO TEAM_TABLE (id, vector, repo, salt_check) "
            "SELECT unnest($1::uuid[]), unnest($2::text[])::halfvec, $3::text[], $4 "
            "ON CONFLICT (id) DO NOTHING",
            [*ids],
            [str(numbers) for numbers in to_numbers(rows)],
            [*repositories],
            check,
            seconds=WRITE_SECONDS,
        )

    async def add_repositories(
        self, known: Mapping[bytes, Sequence[str]], repositories: Sequence[str]
    ) -> None:
        """See TeamVectors.add_repositories."""
        lacking = [
            UUID(bytes=name)
            for name, old in known.items()
            if not {*repositories} <= {*old}
        ]
        if lacking:
            await self._fetch(
                "UPDATE TEAM_TABLE SET repo = repo || "
                "ARRAY(SELECT unnest($2::text[]) EXCEPT SELECT unnest(repo)) "
                "WHERE id = ANY($1) AND cardinality(repo) + $3 <= $4",
                *(lacking, [*repositories], len(repositories), MOST_REPOSITORIES),
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
        """See TeamVectors.nearest."""
        [numbers] = to_numbers(question.reshape(1, -1))
        ids = [UUID(bytes=name) for name in among] or None
        rows = await self._fetch(
            # A vector of length 0 has no distance, and comes last.
            "SELECT id, 1 - far FROM (SELECT id, vector <=> $1::text::halfvec AS far "
            "FROM TEAM_TABLE WHERE repo && $2::text[] "
            "AND ($3::uuid[] IS NULL OR id = ANY($3)) ORDER BY far LIMIT $4) nearest",
            *(str(numbers), [*repositories], ids, limit),
            seconds=seconds,
        )
        scores = ((_name_of(row), check_score(row[1])) for row in rows[:limit])
        return {name: score for name, score in scores if name and score is not None}

    async def _fetch(
        self, statement: str, *values: object, seconds: float = 0
    ) -> list[Any]:
        """Return the rows of a statement, in which two names stand for the table's."""
        statement = statement.replace("TEAM_TABLE", f'"{self.name}"')
        statement = statement.replace("TEAM_INDEX", f'"{self.name}_repo"')
        return await self._server.fetch(statement, values, seconds=seconds)


def _name_of(row: Any) -> bytes:
    """Return the name of the text of a row, b"" if it has none."""
    return row[0].bytes if isinstance(row[0], UUID) else b""
