"""What things are called on the server: collections, points and repositories.

Whoever reads the server, a backup of it or its traffic must not learn from names which
texts and repositories a team has. A plain hash would tell: one can hash a text that is
public, or a guess, and look whether the hash is there. So names are HMACs under a
secret that only members have, the salt. (The vectors tell more; docs/TEAM_INDEX.md.)
"""

import hashlib
import hmac
import re
from collections.abc import Iterable

from byok.embeddings.types import Key, SpaceName
from byok.errors import ConfigError

PROBE_ID = "00000000-0000-0000-0000-000000000001"  # no HMAC comes out like this
SHORTEST_SALT = 16
_ID_BYTES = 16
_TEAM = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


def is_team_name(name: str) -> bool:
    """Whether a team can be called so: it is a part of collections' names."""
    return _TEAM.fullmatch(name) is not None


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


def from_uuid(text: object) -> bytes | None:
    """Read what the server calls the id of a point; None if it is no UUID."""
    try:
        name = bytes.fromhex(str(text).replace("-", ""))
    except ValueError:
        return None
    return name if len(name) == _ID_BYTES else None
