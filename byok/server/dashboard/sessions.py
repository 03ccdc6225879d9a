"""Access to the dashboard: one-time codes, and the sessions that they open.

`byok dashboard` shows a code in the terminal, and the user enters it on the page. So a
code stands in no address and in no argument of a program, where other users of the
machine could read it. It is for one use within five minutes.

A session ends when nobody uses the page for sixteen hours, and after seven days. It
outlives the daemon: a file has the digest of its token and two times, which open
nothing. What changes something needs a code that was entered within the last quarter of
an hour, so that a page left open is no way to the settings; that outlives nothing.

While byok is not running, another program may take its port, and hears what pages that
are still open send there. So a page sends its token only after whoever answers has
proved that it knows the token's digest.

Tokens begin with a mark by which byok/core/redact.py knows them, as it knows other
vendors' keys: it need not be told each one, and keep them all.
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
LONGEST_SECONDS = 7 * 24 * 3600.0
CONFIRMED_SECONDS = 15 * 60.0
_MOST_CODES = 3
_MOST_SESSIONS = 16
_BEARER = "Bearer "
_MARK = "byok_ui_"
# Crockford's base 32: no letter looks like a digit. Ten of them are 50 bits.
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_LETTERS = 10
_READ_AS = str.maketrans("OIL", "011")
_NEVER = float("-inf")
_DIGEST = re.compile("[0-9a-f]{64}")
_KEEP_SECONDS = 300.0  # for which a use may be missing in the file
_SET_BACK = 300.0  # seconds by which a clock may go back
_LARGEST = 10_000  # bytes of the file


class _Session(Struct):
    """Times in seconds since 1970; a code was `confirmed` by a clock that only runs."""

    begun: float
    used: float
    confirmed: float = _NEVER
    kept: float = _NEVER  # the time of use that the file has
    on_end: list[Callable[[], None]] = field(default_factory=list)


class SessionFile:
    """Keeps digests and times of sessions in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told = False

    def read(self) -> dict[str, tuple[float, float]]:
        """Return when each session began and was last used; none if that is damaged."""
        try:
            check_private(self._path)
            with self._path.open("rb") as file:
                rows = orjson.loads(file.read(_LARGEST))
            return {
                name: (float(begun), float(used))
                for name, (begun, used) in rows.items()
                if _DIGEST.fullmatch(name)
            }
        except FileNotFoundError:
            return {}
        except (OSError, ConfigError, ValueError, TypeError, AttributeError) as error:
            _log.warning("sessions of the dashboard are not read: %s", error)
            return {}

    def write(self, rows: Mapping[str, tuple[float, float]]) -> None:
        """Replace what is kept; without it sessions end with the daemon."""
        try:
            write_private(self._path, orjson.dumps(rows))
        except OSError as error:
            if not self._told:
                _log.warning("sessions of the dashboard are not kept: %s", error)
            self._told = True


class Sessions:
    """Makes codes, exchanges each for a session, and checks the tokens of sessions.

    `clock` only runs, `wall` gives seconds since 1970. Sessions are known by the
    digests of their tokens.
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
        kept = file.read() if file else {}
        newest = sorted(kept.items(), key=lambda one: one[1])[-_MOST_SESSIONS:]
        self._sessions = {
            name: _Session(begun, used, kept=used) for name, (begun, used) in newest
        }

    def make_code(self) -> str:
        """Return a code such as `4HK2M-0XW9P`; of more than three the oldest goes."""
        self._remove_expired()
        while len(self._codes) >= _MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LETTERS))
        self._codes[code] = self._clock() + CODE_SECONDS
        return f"{code[:5]}-{code[5:]}"

    def admit(self, body: Json) -> Json:
        """Answer `byok dashboard`: with a code, or end all sessions with `sign_out`."""
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
        while len(self._sessions) >= _MOST_SESSIONS:
            self._end(next(iter(self._sessions)))
        self._sessions[_digest(token)] = _Session(now, now, self._clock())
        self._keep()
        return token

    def confirm(self, token: str, code: str) -> None:
        """Let a session change things for a quarter of an hour.

        Raises:
            NotAllowed: 401, as `sign_in`.
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
        """Return the token that an Authorization header carries.

        What the page asks for by itself, not `by_user`, does not prolong the session.

        Raises:
            NotAllowed: 401, it is none of a session.
        """
        self._remove_expired()
        if authorization.startswith(_BEARER):
            token = authorization.removeprefix(_BEARER)
            name = _find(_digest(token), self._sessions)
            if name is not None:
                session = self._sessions[name]
                if by_user:
                    session.used = self._wall()
                if session.used >= session.kept + _KEEP_SECONDS:
                    self._keep()
                return token
        raise _session_ended()

    def prove(self, session: str, challenge: str) -> str:
        """Return what only who knows a session can tell.

        The page knows it by the token: `session` is the digest of the token's digest,
        which is the key of the proof.

        Raises:
            NotAllowed: 401, there is no such session.
        """
        self._remove_expired()
        for name in self._sessions:
            if _digest(name) == session:
                key = bytes.fromhex(name)
                return hmac.digest(key, challenge.encode(), "sha256").hex()
        raise _session_ended()

    def export(self) -> dict[str, list[float]]:
        """Return the sessions for a process that takes the daemon's place."""
        self._remove_expired()
        return {
            name: [one.begun, one.used, max(one.confirmed, -CONFIRMED_SECONDS)]
            for name, one in self._sessions.items()
        }

    def adopt(self, exported: Mapping[str, Sequence[float]]) -> None:
        """Go on with the sessions of the process before; its clock is this one's.

        What it ended while this one started, ends here too.
        """
        self._sessions = {
            name: _Session(begun, used, confirmed)
            for name, (begun, used, confirmed) in exported.items()
            if _DIGEST.fullmatch(name)  # an older byok has other names, and times
        }
        self._keep()

    def is_open(self, token: str) -> bool:
        """Tell whether a session is still open."""
        self._remove_expired()
        return _digest(token) in self._sessions

    def sign_out(self, token: str) -> None:
        """End a session, in all tabs that have it."""
        self._end(_digest(token))
        self._keep()

    def end_all(self) -> None:
        """End every session; codes that nobody has used are worth nothing then."""
        self._codes.clear()
        for name in [*self._sessions]:
            self._end(name)
        self._keep()

    def on_end(self, token: str, act: Callable[[], None]) -> Callable[[], None]:
        """Call `act` once a session is ended; return what takes that back.

        A session that is no longer used expires without a call.
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

    def _keep(self) -> None:
        if self._file is None:
            return
        for session in self._sessions.values():
            session.kept = session.used
        self._file.write(
            {name: (one.begun, one.used) for name, one in self._sessions.items()}
        )

    def _use_code(self, code: str) -> None:
        """Make a code invalid, whatever is done with it.

        Raises:
            NotAllowed: 401, it is unknown, too old, or was used before.
        """
        self._remove_expired()
        typed = "".join(letter for letter in code[:99] if letter.isalnum())
        found = _find(typed.upper().translate(_READ_AS), self._codes)
        if found is None:
            raise NotAllowed(
                "This code is wrong, too old, or was used before.",
                code="dashboard_code",
                hint="byok dashboard makes a new one; it is for one use.",
                status=401,
            )
        del self._codes[found]

    def _remove_expired(self) -> None:
        clock, now = self._clock(), self._wall()
        self._codes = {
            code: until for code, until in self._codes.items() if clock < until
        }
        over = [
            name for name, session in self._sessions.items() if _is_over(session, now)
        ]
        for name in over:
            self._end(name)
        if over:
            self._keep()


def _is_over(session: _Session, now: float) -> bool:
    """Tell whether a session is too old, or from a time that has not come yet.

    Otherwise a clock that was set back would let it live longer.
    """
    return (
        now >= session.used + IDLE_SECONDS
        or now >= session.begun + LONGEST_SECONDS
        or now < session.used - _SET_BACK
    )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _session_ended() -> NotAllowed:
    return NotAllowed(
        "The session has ended.",
        code="dashboard_session",
        hint="byok dashboard opens a new one.",
        status=401,
    )


def _find(sent: str, known: Iterable[str]) -> str | None:
    """Return the known secret that was sent; all are compared, in constant time.

    What was sent may hold what is no text.
    """
    raw = sent.encode("utf-8", "surrogatepass")
    found = None
    for secret in known:
        if hmac.compare_digest(raw, secret.encode()):
            found = secret
    return found
