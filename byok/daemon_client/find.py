"""Find the running daemon of this user and verify it by challenge."""

import time

from byok.daemon.challenge import verify_daemon
from byok.daemon.instance import Instance, find_instance, is_held
from byok.daemon.token import read_token
from byok.platform.paths import Paths

START_SECONDS = 3.0
_PAUSE = 0.2


def find_daemon(paths: Paths, seconds: float = START_SECONDS) -> Instance | None:
    """Return the daemon if it passes the challenge, else None; blocks.

    Waits up to `seconds` for one that is just starting. Nothing is sent before the
    challenge is passed.
    """
    deadline = time.monotonic() + seconds
    while is_held(paths):
        daemon = find_instance(paths)
        if daemon is not None and verify_daemon(daemon, read_token(paths.owner_secret)):
            return daemon
        if time.monotonic() >= deadline:
            break
        time.sleep(_PAUSE)
    return None
