"""The key of one upstream while the daemon runs: looked up in a thread, of several."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Self, TypeAlias

from byok.core.bounded import BoundedMap
from byok.core.errors import KeyMissing
from byok.core.redact import Redactor
from byok.settings.keys.ladder import FoundKey, KeyLadder, KeyWanted


class UpstreamKey:
    """The key of one upstream, looked up once in a thread.

    A local server rarely needs a key. The keyring and the vault may prompt the user, so
    for a local server they are opened only after it rejected a request.
    """

    def __init__(
        self,
        ladder: KeyLadder,
        wanted: KeyWanted,
        redactor: Redactor,
        *,
        local: bool = False,
    ) -> None:
        self._ladder = ladder
        self.wanted = wanted
        self._redactor = redactor
        self._stores = not local
        self._found: FoundKey | None = None
        self._lock = asyncio.Lock()

    @property
    def source(self) -> str:
        """Where the key was found; "" before it is looked up."""
        return self._found.source if self._found else ""

    def begin(self, conversation: str = "") -> Self:
        """Return the key for one request: there is no other one."""
        return self

    def replace(self, seconds: float) -> bool:
        """Tell that no other key can take its place; see PooledKey."""
        return False

    async def get(self) -> str:
        """Return the key; "" if the upstream needs none.

        Raises:
            KeyMissing: the upstream needs one and none was found.
        """
        async with self._lock:
            if self._found is None:
                self._found = await asyncio.to_thread(self._find)
                self._redactor.add(self._found.value)
        return self._found.value

    def forget(self, *, everywhere: bool = True) -> None:
        """Look the key up again next time, `everywhere` or in the same places."""
        self._found = None
        self._stores = self._stores or everywhere

    def _find(self) -> FoundKey:
        try:
            return self._ladder.find(self.wanted, stores=self._stores)
        except KeyMissing:
            wanted = self.wanted
            if wanted.preset_env or wanted.named_env or wanted.label:
                raise
            return FoundKey("", "none needed")


# Several keys of one upstream: the first that is not at rest, one a conversation.
#
# A key rests after a refusal of its own, for as long as the refusal says. Vendors cache
# prompts for each account, so a conversation keeps its key as long as that one works.


_log = logging.getLogger(__name__)
_MAX_REMEMBERED = 1000
_MISSING_SECONDS = 900.0


class KeyPool:
    """The keys of one upstream, the preferred one first."""

    def __init__(
        self,
        keys: Sequence[UpstreamKey],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.keys = tuple(keys)
        self._clock = clock
        self._until = [0.0] * len(self.keys)  # the end of each key's rest
        self._used = BoundedMap[str, int](_MAX_REMEMBERED)  # by conversation

    def begin(self, conversation: str = "") -> "PooledKey":
        """Return the key for one request; "" is no conversation."""
        return PooledKey(self, conversation)

    async def get(self) -> str:
        """Return the key of a request without a conversation; see UpstreamKey.get."""
        return await self.begin().get()

    def forget(self, *, everywhere: bool = True) -> None:
        """Look every key up again, and let none rest."""
        self._until = [0.0] * len(self.keys)
        for key in self.keys:
            key.forget(everywhere=everywhere)

    def choose(self, conversation: str) -> int:
        """Return the place of a key; if all rest, of the one that rests shortest."""
        now = self._clock()
        places = range(len(self.keys))
        ready = [place for place in places if self._until[place] <= now]
        kept = self._used.get(conversation)
        if kept in ready:
            return kept
        return ready[0] if ready else min(places, key=self._until.__getitem__)

    def keep(self, conversation: str, place: int) -> None:
        """Use this key for the next requests of a conversation."""
        if conversation:
            self._used[conversation] = place

    def rest(self, place: int, seconds: float) -> list[int]:
        """Let a key rest; return the places of those that are ready."""
        now = self._clock()
        self._until[place] = now + seconds
        _log.info("%s rests for %.0f s", self.keys[place].wanted.title, seconds)
        return [n for n, until in enumerate(self._until) if until <= now]


class PooledKey:
    """The key of one request, which may be replaced by another one."""

    def __init__(self, pool: KeyPool, conversation: str) -> None:
        self._pool = pool
        self._conversation = conversation
        self._place = pool.choose(conversation)
        self._used: set[int] = set()

    async def get(self) -> str:
        """Return the key.

        Raises:
            KeyMissing: none of the keys was found.
        """
        while True:
            try:
                key = await self._pool.keys[self._place].get()
            except KeyMissing:
                if not self.replace(_MISSING_SECONDS):
                    raise
                continue
            self._pool.keep(self._conversation, self._place)
            return key

    def forget(self) -> None:
        """Look this key up again next time."""
        self._pool.keys[self._place].forget()

    def replace(self, seconds: float) -> bool:
        """Let the key rest and use another one, each once; False if none is ready."""
        self._used.add(self._place)
        ready = self._pool.rest(self._place, seconds)
        other = next((place for place in ready if place not in self._used), None)
        if other is None:
            return False
        self._place = other
        return True


AnyKey: TypeAlias = UpstreamKey | KeyPool
