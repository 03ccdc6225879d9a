"""A team's vectors on a PostgreSQL server with the extension pgvector.

One table is one collection (`TeamCollection`): a row is one text, with the same id,
vector and repositories as a point on Qdrant. Rows are inserted, never overwritten, and
the list of a row's repositories is changed by one statement, so members lose none of
each other's. Vectors have 16 bits a number. Searches are within repositories and
compare all rows of these: exact, without a graph.

Nothing that a server says is repeated: it could be the password.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from ssl import SSLContext
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

from msgspec import Struct, field

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
from byok.search.outside.server import SecretSource
from byok.search.vectors.team.collection import (
    CHECK,
    MOST_REPOSITORIES,
    READ_SECONDS,
    REPOSITORIES,
    WRITE_SECONDS,
    Received,
    TeamCollection,
    to_numbers,
)

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
_COLUMNS = {"": "NULL", CHECK: "salt_check", REPOSITORIES: "repo"}


class PostgresStore(Struct, eq=False):
    """The server; its connections are made when they are needed.

    An address is like postgresql://user@host:5432/database. Without `tls` nothing is
    encrypted. The session of a member that does not write is read-only.
    """

    url: str
    password: SecretSource
    tls: Callable[[], SSLContext] | None
    writes: bool
    seconds: float = READ_SECONDS
    _pool: Any = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        """Look for the driver.

        Raises:
            ConfigError: it is not installed.
        """
        if find_spec("asyncpg") is None:
            raise ConfigError(_NOT_INSTALLED[0], hint=_NOT_INSTALLED[1])

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
        seconds = seconds or self.seconds
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
        address = urlsplit(self.url)
        if not self.writes:
            settings["default_transaction_read_only"] = "on"
        return await asyncpg.create_pool(
            host=address.hostname,
            port=address.port or _PORT,
            user=unquote(address.username or "byok"),
            database=unquote(address.path.lstrip("/")) or "byok",
            password=await self.password.get() or "none",  # else a file is read
            ssl=self.tls() if self.tls else False,
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
                self.password.forget()
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


class PostgresCollection(TeamCollection):
    """A table of a team."""

    def __init__(self, store: PostgresStore, name: str, dimensions: int) -> None:
        super().__init__(name, dimensions)
        self._store = store

    async def exists(self) -> bool:
        """Return whether the server has it."""
        rows = await self._fetch("SELECT to_regclass('TEAM_TABLE') IS NOT NULL")
        return bool(rows[0][0])

    async def create(self) -> None:
        """Create it, and the index over repositories."""
        try:
            for statement in (
                "CREATE EXTENSION IF NOT EXISTS vector",
                "CREATE TABLE IF NOT EXISTS TEAM_TABLE (id uuid PRIMARY KEY, "
                f"vector halfvec({self.dimensions}) NOT NULL, "
                "repo text[] NOT NULL DEFAULT '{}', salt_check text)",
                "CREATE INDEX IF NOT EXISTS TEAM_INDEX ON TEAM_TABLE USING gin (repo)",
            ):
                await self._fetch(statement, seconds=WRITE_SECONDS)
        except UpstreamRefused:
            if not await self.exists():  # another member was faster
                raise

    async def _read(
        self, names: Collection[bytes], field: str = "", *, vectors: bool = True
    ) -> list[Received]:
        vector = "vector::real[]" if vectors else "NULL"
        rows = await self._fetch(
            f"SELECT id, {vector}, {_COLUMNS[field]} FROM TEAM_TABLE "  # noqa: S608
            "WHERE id = ANY($1)",
            [UUID(bytes=name) for name in names],
        )
        return [Received(_name_of(row), row[1], row[2]) for row in rows]

    async def _insert(
        self,
        names: Sequence[bytes],
        rows: "Vectors",
        repositories: Sequence[str],
        check: str | None,
    ) -> None:
        await self._fetch(
            "INSERT INTO TEAM_TABLE (id, vector, repo, salt_check) "
            "SELECT unnest($1::uuid[]), unnest($2::text[])::halfvec, $3::text[], $4 "
            "ON CONFLICT (id) DO NOTHING",
            [UUID(bytes=name) for name in names],
            [str(numbers) for numbers in to_numbers(rows)],
            [*repositories],
            check,
            seconds=WRITE_SECONDS,
        )

    async def add_repositories(
        self, known: Mapping[bytes, Sequence[str]], repositories: Sequence[str]
    ) -> None:
        """Add repositories to texts, in one statement: members lose none."""
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

    async def _nearest(
        self,
        numbers: Sequence[float],
        repositories: Sequence[str],
        among: Sequence[bytes],
        limit: int,
        seconds: float,
    ) -> Sequence[tuple[bytes, Any]]:
        ids = [UUID(bytes=name) for name in among] or None
        rows = await self._fetch(
            # A vector of length 0 has no distance, and comes last.
            "SELECT id, 1 - far FROM (SELECT id, vector <=> $1::text::halfvec AS far "
            "FROM TEAM_TABLE WHERE repo && $2::text[] "
            "AND ($3::uuid[] IS NULL OR id = ANY($3)) ORDER BY far LIMIT $4) nearest",
            *(str([*numbers]), [*repositories], ids, limit),
            seconds=seconds,
        )
        return [(_name_of(row), row[1]) for row in rows]

    async def _fetch(
        self, statement: str, *values: object, seconds: float = 0
    ) -> list[Any]:
        """Return the rows of a statement, in which two names stand for the table's."""
        statement = statement.replace("TEAM_TABLE", f'"{self.name}"')
        statement = statement.replace("TEAM_INDEX", f'"{self.name}_repo"')
        return await self._store.fetch(statement, values, seconds=seconds)


def _name_of(row: Any) -> bytes:
    """Return the name of the text of a row, b"" if it has none."""
    return row[0].bytes if isinstance(row[0], UUID) else b""
