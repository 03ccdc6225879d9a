"""The key of one upstream while the daemon runs: found once, in a thread."""

import asyncio

from byok.errors import KeyMissing
from byok.keys.ladder import FoundKey, KeyLadder, KeyWanted
from byok.redact import Redactor


class UpstreamKey:
    """The key of one upstream, looked up once, in a thread.

    A local server seldom wants one: the keyring and the vault, which may ask to be
    unlocked, are only opened for it after it refused a request.
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
        self._wanted = wanted
        self._redactor = redactor
        self._stores = not local
        self._found: FoundKey | None = None
        self._lock = asyncio.Lock()

    async def get(self) -> str:
        """Return the key; "" where the upstream works without one."""
        async with self._lock:
            if self._found is None:
                self._found = await asyncio.to_thread(self._find)
                self._redactor.add(self._found.value)
        return self._found.value

    def forget(self, *, everywhere: bool = True) -> None:
        """Look again next time: where it was looked before, or everywhere."""
        self._found = None
        self._stores = self._stores or everywhere

    def _find(self) -> FoundKey:
        try:
            return self._ladder.find(self._wanted, stores=self._stores)
        except KeyMissing:
            if self._wanted.preset_env or self._wanted.named_env:
                raise
            return FoundKey("", "none needed")
