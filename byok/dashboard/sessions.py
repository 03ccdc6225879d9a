"""Access to the dashboard: one-time codes, and the sessions that they open.

A code is for one sign-in within a minute. A session ends when nobody uses the page for
half an hour, after eight hours, and with the daemon: nothing is stored. A browser gets
its code as an argument, where other users of the machine may read it. So a code that
comes a second time ends the session it opened: a thief does not keep one unnoticed.

Codes and tokens begin with a mark by which byok/redact.py knows them, as it knows other
vendors' keys: it need not be told each one, and keep them all.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from byok.errors import NotAllowed

CODE_SECONDS = 60.0
IDLE_SECONDS = 30 * 60.0
LONGEST_SECONDS = 8 * 3600.0
_MOST_CODES = 3
_MOST_SESSIONS = 16
_BEARER = "Bearer "
_MARK = "byok_ui_"


class SignIn(NamedTuple):
    """A new session; the durations are in seconds."""

    token: str
    idle: float
    longest: float


@dataclass(slots=True)
class _Code:
    value: str
    until: float
    opened: str = ""  # the session's token, once the code was used


@dataclass(slots=True)
class _Session:
    begun: float
    used: float
    on_end: list[Callable[[], None]] = field(default_factory=list)


class Sessions:
    """Makes codes, exchanges each for a session, and checks the tokens of sessions."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._codes: list[_Code] = []
        self._sessions: dict[str, _Session] = {}

    def make_code(self) -> str:
        """Return a code of 128 bits; of more than three, the oldest becomes invalid."""
        self._tidy()
        waiting = [code for code in self._codes if not code.opened]
        for code in waiting[: len(waiting) - _MOST_CODES + 1]:
            self._codes.remove(code)
        made = _Code(_MARK + secrets.token_urlsafe(16), self._clock() + CODE_SECONDS)
        self._codes.append(made)
        return made.value

    def sign_in(self, code: str) -> SignIn:
        """Open a session.

        Raises:
            NotAllowed: 401, the code is unknown, too old, or was used before.
        """
        self._tidy()
        sent = _bytes(code)
        found = None
        for known in self._codes:  # all are compared: the time must tell nothing
            if hmac.compare_digest(sent, known.value.encode()):
                found = known
        if found is None:
            raise _code_error("This code is wrong or too old.")
        if found.opened:
            self.sign_out(found.opened)
            raise _code_error("This code was used before; that session has ended.")
        found.opened = token = _MARK + secrets.token_urlsafe(32)
        now = self._clock()
        while len(self._sessions) >= _MOST_SESSIONS:
            self.sign_out(next(iter(self._sessions)))
        self._sessions[token] = _Session(now, now)
        return SignIn(token, IDLE_SECONDS, LONGEST_SECONDS)

    def check(self, authorization: str, *, by_user: bool = True) -> str:
        """Return the token that an Authorization header carries.

        What the page asks for by itself, not `by_user`, does not prolong the session.

        Raises:
            NotAllowed: 401, it is none of a session.
        """
        self._tidy()
        if authorization.startswith(_BEARER):
            sent = _bytes(authorization.removeprefix(_BEARER))
            found = ""
            for token in self._sessions:
                if hmac.compare_digest(sent, token.encode()):
                    found = token
            if found:
                if by_user:
                    self._sessions[found].used = self._clock()
                return found
        raise NotAllowed(
            "The session has ended.",
            code="dashboard_session",
            hint="byok dashboard opens a new one.",
            status=401,
        )

    def is_open(self, token: str) -> bool:
        """Tell whether a session is still open."""
        self._tidy()
        return token in self._sessions

    def sign_out(self, token: str) -> None:
        """End a session."""
        session = self._sessions.pop(token, None)
        for act in session.on_end if session else ():
            act()

    def on_end(self, token: str, act: Callable[[], None]) -> Callable[[], None]:
        """Call `act` once a session is ended; return what takes that back.

        A session that is no longer used expires without a call.
        """
        session = self._sessions.get(token)
        if session is None:
            act()
            return lambda: None
        session.on_end.append(act)
        return lambda: session.on_end.remove(act)

    def _tidy(self) -> None:
        """Forget what is over."""
        now = self._clock()
        self._codes = [code for code in self._codes if now < code.until]
        over = [
            token
            for token, session in self._sessions.items()
            if now >= session.used + IDLE_SECONDS
            or now >= session.begun + LONGEST_SECONDS
        ]
        for token in over:
            self.sign_out(token)


def _bytes(text: str) -> bytes:
    """Return what can be compared: header and JSON may hold what is no text."""
    return text.encode("ascii", "backslashreplace")


def _code_error(message: str) -> NotAllowed:
    return NotAllowed(
        message,
        code="dashboard_code",
        hint="byok dashboard makes a new one; it is for one use within a minute.",
        status=401,
    )
