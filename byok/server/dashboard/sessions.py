"""Access to the dashboard: one-time codes, and the sessions that they open.

`byok dashboard` shows a code in the terminal, and the user enters it on the page. So a
code stands in no address and in no argument of a program, where other users of the
machine could read it. It is for one use within five minutes.

A session ends when nobody uses the page for half an hour, after eight hours, and with
the daemon: nothing is stored. What changes something needs a code that was entered
within the last quarter of an hour, so that a page left open is no way to the settings.

Tokens begin with a mark by which byok/core/redact.py knows them, as it knows other
vendors' keys: it need not be told each one, and keep them all.
"""

import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from byok.core.errors import NotAllowed

CODE_SECONDS = 5 * 60.0
IDLE_SECONDS = 30 * 60.0
LONGEST_SECONDS = 8 * 3600.0
CONFIRMED_SECONDS = 15 * 60.0
_MOST_CODES = 3
_MOST_SESSIONS = 16
_BEARER = "Bearer "
_MARK = "byok_ui_"
# Crockford's base 32: no letter looks like a digit. Ten of them are 50 bits.
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_LETTERS = 10
_READ_AS = str.maketrans("OIL", "011")


class SignIn(NamedTuple):
    """A new session; the durations are in seconds."""

    token: str
    idle: float
    longest: float


@dataclass(slots=True)
class _Session:
    begun: float
    used: float
    confirmed: float  # when a code was last entered
    on_end: list[Callable[[], None]] = field(default_factory=list)


class Sessions:
    """Makes codes, exchanges each for a session, and checks the tokens of sessions."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._codes: dict[str, float] = {}  # until when each is valid
        self._sessions: dict[str, _Session] = {}

    def make_code(self) -> str:
        """Return a code such as `4HK2M-0XW9P`; of more than three the oldest goes."""
        self._remove_expired()
        while len(self._codes) >= _MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LETTERS))
        self._codes[code] = self._clock() + CODE_SECONDS
        return f"{code[:5]}-{code[5:]}"

    def sign_in(self, code: str) -> SignIn:
        """Open a session.

        Raises:
            NotAllowed: 401, the code is unknown, too old, or was used before.
        """
        self._use_code(code)
        token = _MARK + secrets.token_urlsafe(32)
        now = self._clock()
        while len(self._sessions) >= _MOST_SESSIONS:
            self.sign_out(next(iter(self._sessions)))
        self._sessions[token] = _Session(now, now, now)
        return SignIn(token, IDLE_SECONDS, LONGEST_SECONDS)

    def confirm(self, token: str, code: str) -> None:
        """Let a session change things for a quarter of an hour.

        Raises:
            NotAllowed: 401, as `sign_in`.
        """
        self._use_code(code)
        if session := self._sessions.get(token):
            session.confirmed = self._clock()

    def require_confirmation(self, token: str) -> None:
        """Refuse a change by a session whose last code is too old.

        Raises:
            NotAllowed: 403.
        """
        session = self._sessions.get(token)
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
            token = _find(authorization.removeprefix(_BEARER), self._sessions)
            if token is not None:
                if by_user:
                    self._sessions[token].used = self._clock()
                return token
        raise NotAllowed(
            "The session has ended.",
            code="dashboard_session",
            hint="byok dashboard opens a new one.",
            status=401,
        )

    def export(self) -> dict[str, list[float]]:
        """Return the sessions for a process that takes the daemon's place."""
        self._remove_expired()
        return {
            token: [one.begun, one.used, one.confirmed]
            for token, one in self._sessions.items()
        }

    def adopt(self, exported: Mapping[str, Sequence[float]]) -> None:
        """Go on with the sessions of the process before; its clock is this one's."""
        for token, (begun, used, confirmed) in exported.items():
            self._sessions[token] = _Session(begun, used, confirmed)

    def is_open(self, token: str) -> bool:
        """Tell whether a session is still open."""
        self._remove_expired()
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
        now = self._clock()
        self._codes = {
            code: until for code, until in self._codes.items() if now < until
        }
        over = [
            token
            for token, session in self._sessions.items()
            if now >= session.used + IDLE_SECONDS
            or now >= session.begun + LONGEST_SECONDS
        ]
        for token in over:
            self.sign_out(token)


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
