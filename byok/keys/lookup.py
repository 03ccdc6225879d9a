"""The key of one upstream while the daemon runs, looked up once in a thread."""

import asyncio
from typing import Self

from byok.errors import KeyMissing
from byok.keys.ladder import FoundKey, KeyLadder, KeyWanted
from byok.redact import Redactor


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

    def begin(self, conversation: str = "") -> Self:
        """Return the key for one request: there is no other one."""
        del conversation
        return self

    def replace(self, seconds: float) -> bool:
        """Tell that no other key can take its place; see PooledKey."""
        del seconds
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
