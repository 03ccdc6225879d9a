"""A port for a server that another process starts, or for nobody at all."""

import errno
import secrets
import socket

# Below those that systems give to who asks for any: no other test gets one meanwhile.
_PORTS = range(20_000, 32_000)
_HOSTS = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def free_port() -> int:
    """Return a port that nobody has, at either address of loopback."""
    port = secrets.choice(_PORTS)
    for family, host in _HOSTS.items():
        try:
            socket.create_server((host, port), family=family).close()
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return free_port()  # else the machine has no such address
    return port
