"""Members of a team that share vectors on a server, and what they embed."""

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import httpx
import numpy as np

from byok.search.vectors.team.server import Pause, TeamServer, connect_to
from byok.search.vectors.team.team_index import TeamIndex, TeamPlace
from byok.search.vectors.types import SpaceName
from byok.upstream.transport import Route, Transports
from tests.fakes.asker import Key
from tests.fakes.clock import Clock
from tests.fakes.patience import PATIENCE

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors

SALT = "a salt that the whole team has"
SPACE = SpaceName("fake-embed", 8, "1")


def key(text: str) -> bytes:
    """Return the key of a text."""
    return hashlib.sha256(f"1\0{text}".encode()).digest()


def embed(*texts: str, model: str = "", dimensions: int = 8) -> "Vectors":
    """Return a vector for each text, the same for everybody."""
    rows = []
    for text in texts:
        seed = hashlib.sha256(f"{model}{text}".encode()).digest()
        random = np.random.default_rng(int.from_bytes(seed[:8], "big"))
        rows.append(random.standard_normal(dimensions))
    made = np.array(rows, dtype=np.float32).reshape(len(texts), dimensions)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


class Team:
    """Makes members; close it when done."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = "platform"
        self.clock = Clock()
        self._transports = Transports()
        self._members: list[TeamIndex] = []

    def member(
        self,
        *,
        writes: bool = False,
        searches: bool = True,
        api_key: "Key | str" = "",
        salt: "Key | str" = SALT,
        space: SpaceName = SPACE,
        model: str = "",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> TeamIndex:
        """Return a member whose model has made its probe."""
        usual = partial(self._transports.by, Route())
        connect = connect_to(self.url, lambda: transport or usual())
        source = api_key if isinstance(api_key, Key) else Key(api_key)
        server = TeamServer(connect, source, seconds=PATIENCE)
        pause = Pause(clock=self.clock, draw=lambda: 1.0)
        place = TeamPlace(self.url, self.name, writes, searches)
        salts = salt if isinstance(salt, Key) else Key(salt)
        made = TeamIndex(place, server, salts, pause=pause, question_seconds=PATIENCE)
        made.use(space, embed("probe", model=model, dimensions=space.dimensions))
        self._members.append(made)
        return made

    async def close(self) -> None:
        """Close all members."""
        for member in self._members:
            await member.close()
        await self._transports.close()
