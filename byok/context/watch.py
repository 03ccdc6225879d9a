"""Noticing that files change: events where the system has them, else a clock."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

import watchfiles

_log = logging.getLogger(__name__)
_DEBOUNCE_MS, _STEP_MS, _TIMEOUT_MS = 400, 50, 100
_LOOKS_FOR_FOLDER = 2.0  # seconds
_DENIED = "ermission denied"

Found = set[tuple[watchfiles.Change, str]]
Watch = Callable[..., Iterator[Found]]


class Changes(NamedTuple):
    """Relative paths that changed; None: anything may have, look at everything."""

    paths: frozenset[str] | None


class Watcher:
    """Changes below one folder, for as long as it is iterated."""

    def __init__(
        self,
        root: Path,
        wanted: Callable[[str], bool],
        *,
        poll_seconds: float = 60.0,
        debounce_ms: int = _DEBOUNCE_MS,
        watch: Watch = watchfiles.watch,
    ) -> None:
        self._root = root
        self._wanted = wanted
        self._poll_seconds = poll_seconds
        self._debounce_ms = debounce_ms
        self._watch = watch
        # Who asks `watchfiles` to ignore this is not told of the limit of watches.
        self._past_denied = False
        self.note = ""

    async def changes(self) -> AsyncGenerator[Changes, None]:
        """Yield changes for ever, "anything" first; where events fail, every so often.

        Watching begins before the first is yielded, so that no change falls between.
        """
        while True:
            pause = self._poll_seconds
            try:
                async with aclosing(self._watched()) as watched:
                    async for changes in watched:
                        yield changes
            except (OSError, RuntimeError) as error:
                if _DENIED in str(error) and not self._past_denied:
                    self._past_denied = True
                    continue
                # The system's limit of watches, or the folder is gone for a while.
                self._tell(error)
                if isinstance(error, FileNotFoundError):  # it may soon be back
                    pause = min(pause, _LOOKS_FOR_FOLDER)
            yield Changes(None)
            await asyncio.sleep(pause)

    def _tell(self, error: Exception) -> None:
        note = f"changes are looked for every {self._poll_seconds:.0f} s"
        if note != self.note:
            self.note = note
            _log.warning("%s cannot be watched, so %s: %s", self._root, note, error)

    async def _watched(self) -> AsyncGenerator[Changes, None]:
        """Yield changes until watching fails; "anything" when it has begun."""
        root = str(self._root)
        async with aclosing(self._events()) as events:
            first = True
            async for found in events:
                if first:
                    self.note, first = "", False
                    yield Changes(None)
                if (watchfiles.Change.deleted, root) in found:
                    raise FileNotFoundError("the folder is gone")  # and its watches
                paths = frozenset(_relative(path, root) for _, path in found)
                if paths := paths - {root}:
                    yield Changes(paths)

    async def _events(self) -> AsyncGenerator[Found, None]:
        """Yield what happened, an empty set first, from a thread of its own.

        Setting the watches of a large tree takes seconds, which is not for the loop.
        """
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Found | Exception] = asyncio.Queue()
        stop = threading.Event()

        def put(found: Found | Exception) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(queue.put_nowait, found)

        thread = threading.Thread(
            target=self._follow, args=(stop, put), name="watch", daemon=True
        )
        thread.start()
        try:
            while True:
                found = await queue.get()
                if isinstance(found, Exception):
                    raise found
                yield found
        finally:
            stop.set()
            await asyncio.to_thread(thread.join)

    def _follow(
        self, stop: threading.Event, put: Callable[[Found | Exception], None]
    ) -> None:
        root = str(self._root)
        begun = False
        try:
            for found in self._watch(
                self._root,
                watch_filter=lambda _, path: (
                    path == root or self._wanted(_relative(path, root))
                ),
                debounce=self._debounce_ms,
                step=_STEP_MS,
                stop_event=stop,
                rust_timeout=_TIMEOUT_MS,
                yield_on_timeout=True,
                raise_interrupt=False,
                recursive=True,
                ignore_permission_denied=self._past_denied,
            ):
                if found or not begun:
                    put(found)
                begun = True
            put(RuntimeError("watching has ended"))
        except Exception as error:
            put(error)


def _relative(path: str, root: str) -> str:
    return path.removeprefix(f"{root}/").replace("\\", "/")
