"""Access to the dashboard: one-time codes, and the sessions that they open.

`byok dashboard` shows a code in the terminal, and the user enters it on the page. So a
code stands in no address and in no argument of a program, where other users of the
machine could read it. It is for one use within five minutes.

A session ends when nobody uses the page for sixteen hours, and after seven days. It
outlives the daemon: a file holds the digest of its token and two times, with which
nobody can sign in. A change needs a code that was entered within the last quarter of an
hour, so that a page left open gives no access to the settings; this time is in memory
only.

While byok is not running, another program may take its port, and receives what pages
that are still open send there. So a page sends its token only after the program that
answers has proved that it knows the token's digest.

Tokens begin with a mark that byok/core/redact.py recognises, like the keys of vendors,
so that the redactor need not store each token.
"""

import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import orjson
from msgspec import Struct, field

from byok.core.chat import Json
from byok.core.errors import ConfigError, NotAllowed
from byok.core.platform.paths import check_private, write_private

_log = logging.getLogger(__name__)
CODE_SECONDS = 5 * 60.0
IDLE_SECONDS = 16 * 3600.0
MAX_SECONDS = 7 * 24 * 3600.0
CONFIRMED_SECONDS = 15 * 60.0
_MAX_CODES = 3
_MAX_SESSIONS = 16
_BEARER = "Bearer "
_MARK = "byok_ui_"
# Crockford's base 32: no letter looks like a digit. Ten of them are 50 bits.
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_LETTERS = 10
_MISREAD_LETTERS = str.maketrans("OIL", "011")
_NEVER = float("-inf")
_DIGEST = re.compile("[0-9a-f]{64}")
_STORE_SECONDS = 300.0  # by which the last use in the file may be out of date
_CLOCK_TOLERANCE = 300.0  # seconds by which a clock may be set back
_MAX_FILE_BYTES = 10_000  # bytes of the file


class _Session(Struct):
    """Times in seconds since 1970, except `confirmed`: when a code was last entered.

    That is a time of the monotonic clock.
    """

    started: float
    used: float
    confirmed: float = _NEVER
    stored_use: float = _NEVER  # the time of the last use in the file
    on_end: list[Callable[[], None]] = field(default_factory=list)


class SessionFile:
    """Keeps digests and times of sessions in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._has_warned = False

    def read(self) -> dict[str, tuple[float, float]]:
        """Return the start and last use of each session; {} if the file is damaged."""
        try:
            check_private(self._path)
            with self._path.open("rb") as file:
                rows = orjson.loads(file.read(_MAX_FILE_BYTES))
            return {
                name: (float(started), float(used))
                for name, (started, used) in rows.items()
                if _DIGEST.fullmatch(name)
            }
        except FileNotFoundError:
            return {}
        except (OSError, ConfigError, ValueError, TypeError, AttributeError) as error:
            _log.warning("sessions of the dashboard are not read: %s", error)
            return {}

    def write(self, rows: Mapping[str, tuple[float, float]]) -> None:
        """Replace the stored sessions; if that fails, they end with the daemon."""
        try:
            write_private(self._path, orjson.dumps(rows))
        except OSError as error:
            if not self._has_warned:
                _log.warning("sessions of the dashboard are not kept: %s", error)
            self._has_warned = True


class Sessions:
    """Makes codes, exchanges each for a session, and checks the tokens of sessions.

    `clock` is monotonic, `wall` gives seconds since 1970. The key of a session is the
    digest of its token.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        file: SessionFile | None = None,
    ) -> None:
        self._clock = clock
        self._wall = wall
        self._file = file
        self._codes: dict[str, float] = {}  # until when each is valid
        stored = file.read() if file else {}
        newest = sorted(stored.items(), key=lambda item: item[1])[-_MAX_SESSIONS:]
        self._sessions = {
            name: _Session(started, used, stored_use=used)
            for name, (started, used) in newest
        }

    def make_code(self) -> str:
        """Return a new code such as `4HK2M-0XW9P`; only the last three are valid."""
        self._remove_expired()
        while len(self._codes) >= _MAX_CODES:
            del self._codes[next(iter(self._codes))]
        code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LETTERS))
        self._codes[code] = self._clock() + CODE_SECONDS
        return f"{code[:5]}-{code[5:]}"

    def admit(self, body: Json) -> Json:
        """Answer `byok dashboard` with a code, or with `sign_out` end all sessions."""
        if body.get("sign_out") is True:
            ended = len(self._sessions)
            self.end_all()
            return {"ended": ended}
        return {"code": self.make_code()}

    def sign_in(self, code: str) -> str:
        """Open a session, and return its token.

        Raises:
            NotAllowed: 401, the code is unknown, too old, or was used before.
        """
        self._use_code(code)
        token = _MARK + secrets.token_urlsafe(32)
        now = self._wall()
        while len(self._sessions) >= _MAX_SESSIONS:
            self._end(next(iter(self._sessions)))
        self._sessions[_digest(token)] = _Session(now, now, self._clock())
        self._store()
        return token

    def confirm(self, token: str, code: str) -> None:
        """Let a session change things for a quarter of an hour.

        Raises:
            NotAllowed: 401, as in `sign_in`.
        """
        self._use_code(code)
        if session := self._sessions.get(_digest(token)):
            session.confirmed = self._clock()

    def require_confirmation(self, token: str) -> None:
        """Refuse a change by a session whose last code is too old.

        Raises:
            NotAllowed: 403.
        """
        session = self._sessions.get(_digest(token))
        if session is None or self._clock() >= session.confirmed + CONFIRMED_SECONDS:
            raise NotAllowed(
                "This change needs a new code.",
                code="dashboard_confirm",
                hint="byok dashboard shows one.",
            )

    def check(self, authorization: str, *, by_user: bool = True) -> str:
        """Return the token in an Authorization header.

        A request that was not made `by_user` does not prolong the session.

        Raises:
            NotAllowed: 401, there is no session with such a token.
        """
        self._remove_expired()
        if authorization.startswith(_BEARER):
            token = authorization.removeprefix(_BEARER)
            name = _find_secret(_digest(token), self._sessions)
            if name is not None:
                session = self._sessions[name]
                if by_user:
                    session.used = self._wall()
                if session.used >= session.stored_use + _STORE_SECONDS:
                    self._store()
                return token
        raise _no_session_error()

    def prove(self, session: str, challenge: str) -> str:
        """Return the HMAC of a challenge, as a proof that byok knows the session.

        The key is the digest of the token, which the page can compute, too. `session`
        is the digest of that key, so it does not reveal the key.

        Raises:
            NotAllowed: 401, there is no such session.
        """
        self._remove_expired()
        for name in self._sessions:
            if _digest(name) == session:
                key = bytes.fromhex(name)
                return hmac.digest(key, challenge.encode(), "sha256").hex()
        raise _no_session_error()

    def export(self) -> dict[str, list[float]]:
        """Return the sessions for the successor of this process."""
        self._remove_expired()
        return {
            name: [s.started, s.used, max(s.confirmed, -CONFIRMED_SECONDS)]
            for name, s in self._sessions.items()
        }

    def adopt(self, exported: Mapping[str, Sequence[float]]) -> None:
        """Replace the sessions by those of the predecessor, which has the same clock.

        So a session that it ended while this process started has ended here, too.
        """
        self._sessions = {
            name: _Session(started, used, confirmed)
            for name, (started, used, confirmed) in exported.items()
            if _DIGEST.fullmatch(name)  # an older byok exports other names and times
        }
        self._store()

    def is_open(self, token: str) -> bool:
        """Tell whether a session is still open."""
        self._remove_expired()
        return _digest(token) in self._sessions

    def sign_out(self, token: str) -> None:
        """End a session, in all tabs that have it."""
        self._end(_digest(token))
        self._store()

    def end_all(self) -> None:
        """End every session, and make the unused codes invalid."""
        self._codes.clear()
        for name in [*self._sessions]:
            self._end(name)
        self._store()

    def on_end(self, token: str, act: Callable[[], None]) -> Callable[[], None]:
        """Call `act` when a session is ended; return a function that cancels this.

        It is called at once if there is no such session. There is no timer: a session
        that nobody uses may expire without a call.
        """
        session = self._sessions.get(_digest(token))
        if session is None:
            act()
            return lambda: None
        session.on_end.append(act)
        return lambda: session.on_end.remove(act)

    def _end(self, name: str) -> None:
        session = self._sessions.pop(name, None)
        for act in session.on_end if session else ():
            act()

    def _store(self) -> None:
        if self._file is None:
            return
        for session in self._sessions.values():
            session.stored_use = session.used
        self._file.write(
            {name: (one.started, one.used) for name, one in self._sessions.items()}
        )

    def _use_code(self, code: str) -> None:
        """Check a code, and make it invalid.

        Raises:
            NotAllowed: 401, the code is unknown, too old, or was used before.
        """
        self._remove_expired()
        typed = "".join(letter for letter in code[:99] if letter.isalnum())
        known = _find_secret(typed.upper().translate(_MISREAD_LETTERS), self._codes)
        if known is None:
            raise NotAllowed(
                "This code is wrong, too old, or was used before.",
                code="dashboard_code",
                hint="byok dashboard makes a new one; it is for one use.",
                status=401,
            )
        del self._codes[known]

    def _remove_expired(self) -> None:
        clock, now = self._clock(), self._wall()
        self._codes = {
            code: until for code, until in self._codes.items() if clock < until
        }
        expired = [name for name, s in self._sessions.items() if _is_expired(s, now)]
        for name in expired:
            self._end(name)
        if expired:
            self._store()


def _is_expired(session: _Session, now: float) -> bool:
    """Tell whether a session is too old, or its last use lies in the future.

    Otherwise a clock that was set back would prolong it.
    """
    return (
        now >= session.used + IDLE_SECONDS
        or now >= session.started + MAX_SECONDS
        or now < session.used - _CLOCK_TOLERANCE
    )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _no_session_error() -> NotAllowed:
    return NotAllowed(
        "The session has ended.",
        code="dashboard_session",
        hint="byok dashboard opens a new one.",
        status=401,
    )


def _find_secret(sent: str, secrets_: Iterable[str]) -> str | None:
    """Return the secret that was sent; all are compared, each in constant time.

    The text that was sent may hold surrogates.
    """
    raw = sent.encode("utf-8", "surrogatepass")
    match = None
    for secret in secrets_:
        if hmac.compare_digest(raw, secret.encode()):
            match = secret
    return match
