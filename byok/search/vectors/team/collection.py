"""A team's collection on a server of either kind: what is asked, and checked.

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


# What things are called on the server: collections, points and repositories.
#
# Whoever reads the server, a backup of it or its traffic must not learn from names
# which texts and repositories a team has. A plain hash would tell: one can hash a text
# that is public, or a guess, and look whether the hash is there. So names are HMACs
# under a secret that only members have, the salt. (The vectors tell more;
# docs/reference/team-index.md.)


SHORTEST_SALT = 16
_ID_BYTES = 16
PROBE = bytes(_ID_BYTES - 1) + b"\x01"  # no HMAC comes out like this


def collection_name(team: str, space: SpaceName) -> str:
    """Return the collection of a team and a space.

    The same for all members, and without the salt: a member whose salt differs must
    find the collection, to be told so.
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
    """The names that members with one salt use."""

    def __init__(self, salt: str) -> None:
        """Take a salt.

        Raises:
            ConfigError: it is so short that it could be guessed.
        """
        if len(salt) < SHORTEST_SALT:
            raise ConfigError(
                f"The team's salt has fewer than {SHORTEST_SALT} characters.",
                hint="Make one for the whole team, such as with: openssl rand -hex 32",
            )
        self._salt = salt.encode()

    def point(self, key: Key) -> bytes:
        """Return the 16 bytes that name the point of a text."""
        return self._name(b"point", key)

    def points(self, keys: Iterable[Key]) -> dict[bytes, Key]:
        """Return the keys by the names of their points; about 4 µs each."""
        return {self.point(key): key for key in keys}

    def repository(self, name: str) -> str:
        """Return what stands for a repository in payloads: 32 hex digits."""
        return self._name(b"repository", name.encode("utf-8", "replace")).hex()

    @property
    def check(self) -> str:
        """What stands at the probe, to tell members whether their salt is the team's.

        32 hex digits; they help nobody to guess a salt that was drawn at random.
        """
        return self._name(b"check", b"").hex()

    def _name(self, kind: bytes, what: bytes) -> bytes:
        return hmac.digest(self._salt, kind + b"\0" + what, "sha256")[:_ID_BYTES]


def to_uuid(name: bytes) -> str:
    """Write 16 bytes as the server takes and returns the ids of points."""
    text = name.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def from_uuid(text: object) -> bytes:
    """Read what the server calls the id of a point; b"" if it is no UUID."""
    try:
        name = bytes.fromhex(str(text).replace("-", ""))
    except ValueError:
        return b""
    return name if len(name) == _ID_BYTES else b""


# Checks vectors that strangers sent, before they are kept or compared.
#
# The client library passes vectors on as they came, so that a vector may be any JSON.
# Whoever can write to the server chooses the direction of a vector, and with it the
# order of an answer. Checked vectors can do no more than that.


_SHORTEST, _LONGEST = 0.9, 1.1  # the server keeps vectors at length 1, rounded


def check_vector(received: Any, dimensions: int) -> "Vectors | None":
    """Return a received vector as a row of length 1, or None if it cannot be one."""
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
    if not _SHORTEST <= length <= _LONGEST:
        return None
    return (vector / length).astype(np.float32)


def check_score(received: Any) -> float | None:
    """Return a received cosine within -1 and 1, or None if it is no number."""
    if not isinstance(received, float | int) or received != received:
        return None
    return float(min(1.0, max(-1.0, received)))


def to_numbers(vectors: "Vectors") -> list[list[float]]:
    """Return rows as lists for JSON; the server keeps fewer digits than six."""
    rounded: Iterable[list[float]] = vectors.astype(np.float64).round(6).tolist()
    return [*rounded]


REPOSITORIES = "repo"  # the field of payloads by which the nearest are searched
CHECK = "check"  # at the probe only
LOOKS = 256  # points whose payload is asked for at once
MOST_REPOSITORIES = 64  # of one point: a licence's text is everywhere
_NUMBERS = 24_576  # of all vectors in a request: JSON that takes 3 ms to read or write
READ_SECONDS = 2.0
WRITE_SECONDS = 10.0  # the server answers when it has written; nobody waits for it


class Received(NamedTuple):
    """What a server says of a text: anything but the name, b"" if that is none."""

    name: bytes
    vector: Any
    field: Any


class TeamCollection(ABC):
    """One collection of a team on some server: texts by name, as vectors.

    All methods raise ConfigError where a key is missing, and UpstreamError where the
    server gives no usable answer in time. Private ones ask the server, and what they
    return is checked here. At most `size` vectors are asked for, or sent, at once.
    """

    def __init__(self, name: str, dimensions: int) -> None:
        self.name = name
        self.dimensions = dimensions
        self.size = max(1, min(LOOKS, _NUMBERS // dimensions))

    @abstractmethod
    async def exists(self) -> bool:
        """Return whether the server has it."""

    @abstractmethod
    async def create(self) -> None:
        """Create it; harmless if another member did."""

    async def read_probe(self) -> "tuple[Vectors | None, str] | None":
        """Return the probe's vector, None if it is unusable, and the check of the salt.

        None if there is no probe yet.
        """
        for _, vector, check in await self._read([PROBE], CHECK):
            return check_vector(vector, self.dimensions), str(check)
        return None

    async def write_probe(self, vector: "Vectors", check: str) -> None:
        """Store the probe's vector and the check of the salt, if there is none yet."""
        await self._insert([PROBE], vector.reshape(1, -1), (), check)

    async def vectors(self, names: Sequence[bytes]) -> "dict[bytes, Vectors]":
        """Return the vectors of at most `size` texts, without those unusable."""
        wanted = {*names}
        found: dict[bytes, Vectors] = {}
        for name, received, _ in (await self._read(wanted))[: len(wanted)]:
            if name in wanted:
                vector = check_vector(received, self.dimensions)
                if vector is not None:
                    found[name] = vector
        return found

    async def repositories(self, names: Sequence[bytes]) -> dict[bytes, list[str]]:
        """Return which of at most LOOKS texts are there, and their repositories."""
        wanted = {*names}
        received = await self._read(wanted, REPOSITORIES, vectors=False)
        return {
            name: _texts(listed)
            for name, _, listed in received[: len(wanted)]
            if name in wanted
        }

    async def insert(
        self, names: Sequence[bytes], rows: "Vectors", repositories: Sequence[str]
    ) -> None:
        """Add at most `size` texts that belong to these repositories."""
        await self._insert(names, rows, repositories[:MOST_REPOSITORIES], None)

    @abstractmethod
    async def add_repositories(
        self, known: Mapping[bytes, Sequence[str]], repositories: Sequence[str]
    ) -> None:
        """Add repositories to at most LOOKS texts, of which these are known."""

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
        found = await self._nearest(numbers, repositories, among, limit, seconds)
        scores = ((name, check_score(received)) for name, received in found[:limit])
        return {name: score for name, score in scores if name and score is not None}

    @abstractmethod
    async def _read(
        self, names: Collection[bytes], field: str = "", *, vectors: bool = True
    ) -> list[Received]:
        """Return texts with their vectors, or with a field of theirs, or both."""

    @abstractmethod
    async def _insert(
        self,
        names: Sequence[bytes],
        rows: "Vectors",
        repositories: Sequence[str],
        check: str | None,
    ) -> None:
        """Add texts that are not there; only the probe has a check."""

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
        """Return a collection of the server; asks nobody."""

    async def close(self) -> None:
        """Close the connections; the next request makes others."""


def _texts(listed: Any) -> list[str]:
    """Return the repositories in what a server lists, whatever it is."""
    if not isinstance(listed, list):
        return []
    return [text for text in listed if isinstance(text, str)][:MOST_REPOSITORIES]
