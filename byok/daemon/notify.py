"""Tell systemd what the daemon does: it is ready, reads its settings, or ends.

One datagram per message to the socket that `NOTIFY_SOCKET` names. Without it, or when
nobody reads there, nothing happens: a daemon must not fail because of its supervisor.
"""

import logging
import socket
import sys
import time

_log = logging.getLogger(__name__)
_LONGEST_ADDRESS = 108  # of a UNIX socket


class Notifier:
    """Sends the state of this process to a service manager; "" is none."""

    def __init__(self, address: str = "") -> None:
        """Take the value of `NOTIFY_SOCKET`: an absolute path, or `@` and a name."""
        is_address = address[:1] in ("/", "@") and len(address) < _LONGEST_ADDRESS
        self._address = address if is_address and sys.platform == "linux" else ""

    def ready(self, status: str = "") -> None:
        """Requests are answered; `status` is one line for people."""
        self._send("READY=1", *([f"STATUS={status}"] if status.isprintable() else []))

    def reloading(self) -> None:
        """Settings are read again, or the program starts again; `ready` follows."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def handing_over(self, pid: int) -> None:
        """Another process is the service from now on; it tells when it is ready."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        self._send(f"MAINPID={pid}")

    def stopping(self) -> None:
        """The end has begun."""
        self._send("STOPPING=1")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        name = self._address
        place = f"\0{name[1:]}" if name.startswith("@") else name
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.connect(place)
                sender.send("\n".join(lines).encode())
        except OSError as error:
            _log.warning("the service manager was not told: %s", error.strerror)
