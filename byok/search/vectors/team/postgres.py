"""A team's vectors on a PostgreSQL server with the extension pgvector.

One table is one collection (`TeamCollection`): a row is one text, with the same id,
vector and repositories as a point on Qdrant. Rows are inserted, never overwritten, and
the list of a row's repositories is changed by one statement, so no member's change is
lost. Vectors have 16 bits per number. Searches are within repositories and compare all
of their rows: exact, without a graph.

No text of a server is repeated to the user, because it could contain the password.
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
    MAX_REPOSITORIES,
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
_CONNECTIONS = 3  # so that questions need not wait for filling
_IDLE_SECONDS = 60.0
_UNDEFINED_TABLE = "42P01"
_AUTH_CODES = ("28", "42501")  # prefixes: wrong password, missing privilege
_COLUMNS = {"": "NULL", CHECK: "salt_check", REPOSITORIES: "repo"}


class PostgresStore(Struct, eq=False):
    """A PostgreSQL server, with connections opened when they are needed.

    `url` is like postgresql://user@host:5432/database. Without `tls` nothing is
    encrypted. The sessions of a member that does not write are read-only.
    """

    url: str
    password: SecretSource
    tls: Callable[[], SSLContext] | None
    writes: bool
    seconds: float = READ_SECONDS
    _pool: Any = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        """Check for the driver.

        Raises:
            ConfigError: it is not installed.
        """
        if find_spec("asyncpg") is None:
            raise ConfigError(_NOT_INSTALLED[0], hint=_NOT_INSTALLED[1])

    def collection(self, name: str, dimensions: int) -> "PostgresCollection":
        """Return a table of the server; sends no request."""
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
        """Close the connections; the next request opens others."""
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
            # Without a password the driver would read one from a file.
            password=await self.password.get() or "none",
            ssl=self.tls() if self.tls else False,
            min_size=0,
            max_size=_CONNECTIONS,
            max_inactive_connection_lifetime=_IDLE_SECONDS,
            statement_cache_size=0,  # a connection pooler may mix sessions
            server_settings=settings,
        )

    async def _translate(self, error: Exception) -> ByokError:
        """Return byok's error for one of the driver."""
        from asyncpg import InterfaceError, PostgresError

        if isinstance(error, PostgresError):
            code = str(getattr(error, "sqlstate", "") or "")
            if code.startswith(_AUTH_CODES):
                self.password.forget()
                await self.close()  # the pool keeps the password
                return UpstreamRefused(
                    "It refuses the password, or what this user may do.",
                    kind=RefusalKind.AUTH,
                )
            if code == _UNDEFINED_TABLE:
                return UpstreamRefused("It has no table.", kind=RefusalKind.NOT_FOUND)
            if not code.startswith("08"):  # connection errors
                return UpstreamRefused(f"It answers with an error ({code}).")
        if isinstance(error, PostgresError | InterfaceError):
            return UpstreamUnreachable("The connection was lost.")
        return UpstreamGarbled("Its answer is not what it should be.")


def _driver_errors() -> tuple[type[Exception], ...]:
    """Return the errors that the driver raises, even for a server of another kind."""
    from asyncpg import InterfaceError, InternalClientError, PostgresError

    own = (PostgresError, InterfaceError, InternalClientError, BufferError)
    return (*own, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class PostgresCollection(TeamCollection):
    """A table of a team."""

    def __init__(self, store: PostgresStore, name: str, dimensions: int) -> None:
        super().__init__(name, dimensions)
        self._store = store

    async def exists(self) -> bool:
        """Tell whether the server has the table."""
        rows = await self._fetch("SELECT to_regclass('TEAM_TABLE') IS NOT NULL")
        return bool(rows[0][0])

    async def create(self) -> None:
        """Create the table, and the index over repositories."""
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
        """Add repositories to texts, in one statement, so that no change is lost."""
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
                *(lacking, [*repositories], len(repositories), MAX_REPOSITORIES),
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
        """Return the rows of a statement with placeholders for table and index."""
        statement = statement.replace("TEAM_TABLE", f'"{self.name}"')
        statement = statement.replace("TEAM_INDEX", f'"{self.name}_repo"')
        return await self._store.fetch(statement, values, seconds=seconds)


def _name_of(row: Any) -> bytes:
    """Return the name of the text of a row, b"" if it is invalid."""
    return row[0].bytes if isinstance(row[0], UUID) else b""
