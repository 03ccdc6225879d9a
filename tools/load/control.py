"""Somebody who asks for something small all the time, to see how long byok is deaf."""

import http.client
import threading
import time
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_PATIENCE = 30.0


class Control:
    """A thread that sends GET /health every `pause` seconds while the block lasts.

    A thread, so that what the test itself does meanwhile is not counted. With `fresh`
    each request comes on a connection of its own.
    """

    def __init__(self, url: str, pause: float = 0.02, *, fresh: bool = False) -> None:
        self._address = urlsplit(url).netloc
        self._pause = pause
        self._fresh = fresh
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._connection = self._connect()
        self.seconds: list[float] = []
        self.failed = 0

    def __enter__(self) -> Self:
        self._ask()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while not self._over.wait(self._pause):
            self._ask()

    def _ask(self) -> None:
        start = time.monotonic()
        try:
            self._connection.request("GET", "/health")
            answer = self._connection.getresponse()
            answer.read()
            good = answer.status == 200
        except (OSError, http.client.HTTPException):
            good = False
        self.seconds.append(time.monotonic() - start)
        self.failed += not good
        if self._fresh or not good:
            self._connection.close()
            self._connection = self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._address, timeout=_PATIENCE)
