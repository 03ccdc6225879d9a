"""A team's collection on a server of either kind: requests, and checks of answers.

A point is one text: its id comes from the text's key (`to_uuid`), its payload lists
the hashed repositories that contain the text, and nothing else. Points are inserted,
never overwritten, so members who push the same text do not disturb each other.
"""

import hashlib
import hmac
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from byok.core.errors import ConfigError
from byok.search.vectors.numeric import np
from byok.search.vectors.types import Key, SpaceName

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors

MIN_SALT_CHARS = 16
_ID_BYTES = 16
PROBE = bytes(_ID_BYTES - 1) + b"\x01"  # the name of the probe; no HMAC equals it
_MIN_LENGTH, _MAX_LENGTH = 0.9, 1.1  # the server rounds vectors of length 1
REPOSITORIES = "repo"  # the field of payloads that filters searches
CHECK = "check"  # the field of the salt's check, only at the probe
MAX_LOOKUPS = 256  # points whose payloads are requested together
MAX_REPOSITORIES = 64  # of one point: the text of a licence is in very many
_MAX_NUMBERS = 24_576  # in the vectors of a request, whose JSON then takes 3 ms
READ_SECONDS = 2.0
WRITE_SECONDS = 10.0  # the server answers after writing; no user waits for it


class Received(NamedTuple):
    """An unchecked answer about a text; `name` is checked, b"" if it is invalid."""

    name: bytes
    vector: Any
    field: Any


class TeamCollection(ABC):
    """One collection of a team on some server: vectors of texts by name.

    All methods raise ConfigError if a key is missing, and UpstreamError if the server
    gives no usable answer in time. The private ones send requests, and their results
    are checked here. At most `size` vectors are requested or sent together.
    """

    def __init__(self, name: str, dimensions: int) -> None:
        self.name = name
        self.dimensions = dimensions
        self.size = max(1, min(MAX_LOOKUPS, _MAX_NUMBERS // dimensions))

    @abstractmethod
    async def exists(self) -> bool:
        """Tell whether the server has the collection."""

    @abstractmethod
    async def create(self) -> None:
        """Create the collection; harmless if another member did."""

    async def read_probe(self) -> "tuple[Vectors | None, str] | None":
        """Return the probe's vector, None if it is unusable, and the check of the salt.

        Without a probe, return None.
        """
        for _, vector, check in await self._read([PROBE], CHECK):
            return check_vector(vector, self.dimensions), str(check)
        return None

    async def write_probe(self, vector: "Vectors", check: str) -> None:
        """Store the probe's vector and the check of the salt, if there is none yet."""
        await self._insert([PROBE], vector.reshape(1, -1), (), check)

    async def vectors(self, names: Sequence[bytes]) -> "dict[bytes, Vectors]":
        """Return the usable vectors of at most `size` texts."""
        requested = {*names}
        vectors_by_name: dict[bytes, Vectors] = {}
        for name, received, _ in (await self._read(requested))[: len(requested)]:
            if name in requested:
                vector = check_vector(received, self.dimensions)
                if vector is not None:
                    vectors_by_name[name] = vector
        return vectors_by_name

    async def repositories(self, names: Sequence[bytes]) -> dict[bytes, list[str]]:
        """Return the repositories of the texts that exist, for at most MAX_LOOKUPS."""
        requested = {*names}
        received = await self._read(requested, REPOSITORIES, vectors=False)
        return {
            name: _checked_repositories(listed)
            for name, _, listed in received[: len(requested)]
            if name in requested
        }

    async def insert(
        self, names: Sequence[bytes], rows: "Vectors", repositories: Sequence[str]
    ) -> None:
        """Add at most `size` texts that belong to these repositories."""
        await self._insert(names, rows, repositories[:MAX_REPOSITORIES], None)

    @abstractmethod
    async def add_repositories(
        self, known: Mapping[bytes, Sequence[str]], repositories: Sequence[str]
    ) -> None:
        """Add repositories to at most MAX_LOOKUPS texts, given their `known` ones."""

    async def nearest(
        self,
        question: "Vectors",
        repositories: Sequence[str],
        *,
        among: Sequence[bytes] = (),
        limit: int,
        seconds: float,
    ) -> dict[bytes, float]:
        """Return the texts of these repositories nearest to a question, by cosine.

        With `among`, only these texts are compared.
        """
        [numbers] = to_numbers(question.reshape(1, -1))
        answer = await self._nearest(numbers, repositories, among, limit, seconds)
        scores = ((name, check_score(received)) for name, received in answer[:limit])
        return {name: score for name, score in scores if name and score is not None}

    @abstractmethod
    async def _read(
        self, names: Collection[bytes], field: str = "", *, vectors: bool = True
    ) -> list[Received]:
        """Return texts with their vectors, a field of their payload, or both."""

    @abstractmethod
    async def _insert(
        self,
        names: Sequence[bytes],
        rows: "Vectors",
        repositories: Sequence[str],
        check: str | None,
    ) -> None:
        """Add texts that do not exist; only the probe has a check."""

    @abstractmethod
    async def _nearest(
        self,
        numbers: Sequence[float],
        repositories: Sequence[str],
        among: Sequence[bytes],
        limit: int,
        seconds: float,
    ) -> Sequence[tuple[bytes, Any]]:
        """Return names and cosines, the nearest first."""


class TeamStore(Protocol):
    """A server of a team's collections."""

    def collection(self, name: str, dimensions: int) -> TeamCollection:
        """Return a collection of the server; sends no request."""

    async def close(self) -> None:
        """Close the connections; the next request makes others."""


def collection_name(team: str, space: SpaceName) -> str:
    """Return the name of the collection of a team and a space.

    It is the same for all members, and independent of the salt: a member with another
    salt must find the collection to notice that.
    """
    digest = hashlib.sha256()
    for field in (
        space.model,
        str(space.dimensions),
        space.recipe,
        space.document_prefix,
        space.query_prefix,
    ):
        raw = field.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return f"byok_{team}_{digest.hexdigest()[:16]}"


class TeamNames:
    """The names of points and repositories for members with one salt.

    Names must not show which texts and repositories a team has to those who read the
    server, a backup of it or its traffic. A plain hash would: anybody can hash a public
    or guessed text, and look for that hash. So names are HMACs under a secret that only
    members have, the salt. (The vectors show more; docs/reference/team-index.md.)
    """

    def __init__(self, salt: str) -> None:
        """Use a salt.

        Raises:
            ConfigError: it is so short that it could be guessed.
        """
        if len(salt) < MIN_SALT_CHARS:
            raise ConfigError(
                f"The team's salt has fewer than {MIN_SALT_CHARS} characters.",
                hint="Make one for the whole team, such as with: openssl rand -hex 32",
            )
        self._salt = salt.encode()

    def point(self, key: Key) -> bytes:
        """Return the name of a text's point (16 bytes)."""
        return self._name(b"point", key)

    def points(self, keys: Iterable[Key]) -> dict[bytes, Key]:
        """Return the keys by the names of their points; about 4 µs each."""
        return {self.point(key): key for key in keys}

    def repository(self, name: str) -> str:
        """Return the name of a repository in payloads (32 hex digits)."""
        return self._name(b"repository", name.encode("utf-8", "replace")).hex()

    @property
    def check(self) -> str:
        """The check of the salt (32 hex digits), by which members compare their salts.

        It is stored with the probe. It does not help to guess a random salt.
        """
        return self._name(b"check", b"").hex()

    def _name(self, kind: bytes, value: bytes) -> bytes:
        return hmac.digest(self._salt, kind + b"\0" + value, "sha256")[:_ID_BYTES]


def to_uuid(name: bytes) -> str:
    """Return 16 bytes as a UUID, the server's format of ids."""
    text = name.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def from_uuid(text: object) -> bytes:
    """Return the 16 bytes of an id from the server; b"" if it is no UUID."""
    try:
        name = bytes.fromhex(str(text).replace("-", ""))
    except ValueError:
        return b""
    return name if len(name) == _ID_BYTES else b""


def check_vector(received: Any, dimensions: int) -> "Vectors | None":
    """Return a received vector as a row of length 1, or None if it is unusable.

    The client library passes on any JSON as a vector. Those who can write to the server
    choose the direction of a vector, and so the order of results. A checked vector can
    do no more than that.
    """
    if not isinstance(received, list) or len(received) != dimensions:
        return None
    if not {*map(type, received)} <= {float, int}:
        return None
    try:
        vector = np.array(received, dtype=np.float64)
    except OverflowError:  # an integer with hundreds of digits
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        length = float(np.linalg.norm(vector))
    if not _MIN_LENGTH <= length <= _MAX_LENGTH:
        return None
    return (vector / length).astype(np.float32)


def check_score(received: Any) -> float | None:
    """Return a received cosine within -1 and 1, or None if it is no number."""
    if not isinstance(received, float | int) or received != received:
        return None
    return float(min(1.0, max(-1.0, received)))


def to_numbers(vectors: "Vectors") -> list[list[float]]:
    """Return rows as lists for JSON, with six digits; the server stores fewer."""
    rounded: Iterable[list[float]] = vectors.astype(np.float64).round(6).tolist()
    return [*rounded]


def _checked_repositories(listed: Any) -> list[str]:
    """Return the strings in a received list of repositories, which may be any JSON."""
    if not isinstance(listed, list):
        return []
    return [text for text in listed if isinstance(text, str)][:MAX_REPOSITORIES]
