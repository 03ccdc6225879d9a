"""Codes and sessions of the dashboard: how often, how long, and what ends them."""

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from byok.core.errors import NotAllowed
from byok.core.redact import MARK, Redactor
from byok.server.dashboard.sessions import SessionFile, Sessions
from tests.fakes.clock import Clock

HOUR = 3600


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(clock=clock, wall=clock)


def open_session(sessions: Sessions) -> str:
    return sessions.sign_in(sessions.make_code())


def refuse(sessions: Sessions, code: str) -> None:
    """Sign in with a code that is refused."""
    with pytest.raises(NotAllowed) as caught:
        sessions.sign_in(code)
    assert (caught.value.status, caught.value.code) == (401, "dashboard_code")


def is_refused(sessions: Sessions, authorization: str) -> bool:
    try:
        sessions.check(authorization)
    except NotAllowed as error:
        assert (error.status, error.code) == (401, "dashboard_session")
        return True
    return False


def test_codes_and_tokens_cannot_be_guessed(sessions: Sessions) -> None:
    codes = [sessions.make_code() for _ in range(3)]
    tokens = [sessions.sign_in(code) for code in codes]
    assert len({*codes, *tokens}) == 6
    assert all(len(code.replace("-", "")) == 10 for code in codes)  # 50 bits in base 32
    assert all(len(token) >= 43 for token in tokens)  # 256 bits


def test_tokens_are_redacted_wherever_they_are_written(sessions: Sessions) -> None:
    token = open_session(sessions)
    assert Redactor()(f"Bearer {token}") == f"Bearer {MARK}"


@pytest.mark.parametrize(
    "spell",
    [
        str.lower,
        lambda code: code.replace("-", ""),
        lambda code: f"  {code}\n",
        lambda code: code.replace("-", " - "),
        lambda code: code.replace("0", "O").replace("1", "l"),
        lambda code: code.replace("0", "o").replace("1", "I"),
    ],
)
def test_a_code_may_be_typed_as_people_type(
    sessions: Sessions, spell: Callable[[str], str]
) -> None:
    for _ in range(20):
        assert sessions.sign_in(spell(sessions.make_code()))


@pytest.mark.parametrize(("seconds", "works"), [(299, True), (300, False)])
@pytest.mark.case("B80")
def test_a_code_is_for_five_minutes(
    sessions: Sessions, clock: Clock, seconds: float, works: bool
) -> None:
    code = sessions.make_code()
    clock.now += seconds
    if works:
        assert sessions.sign_in(code)
    else:
        refuse(sessions, code)


@pytest.mark.case("B80")
def test_a_hundred_wrong_codes_open_nothing_and_lock_nobody_out(
    sessions: Sessions,
) -> None:
    code = sessions.make_code()
    wrong = [f"{code[:-1]}{end}" for end in "ABCDEFGH" if not code.endswith(end)]
    odd = [
        *("", " ", code[:-1], code + "X", code[::-1], code.partition("-")[0]),
        *("\u00e9", "\udcff", "\ud800", "x" * 10_000, "-" * 98 + code),
    ]
    for sent in itertools.islice(itertools.cycle([*wrong, *odd]), 100):
        refuse(sessions, sent)
    assert sessions.sign_in(code)


def test_a_fourth_code_drops_the_oldest(sessions: Sessions) -> None:
    oldest, *others = [sessions.make_code() for _ in range(4)]
    refuse(sessions, oldest)
    for code in others:
        assert sessions.sign_in(code)


@pytest.mark.parametrize(
    "spell",
    [
        lambda token: "",
        lambda token: token,
        lambda token: f"Basic {token}",
        lambda token: f"Bearer {token[:-1]}",
        lambda token: f"Bearer {token} ",
        lambda token: f"Bearer {token.swapcase()}",
        lambda token: "Bearer ",
        lambda token: "Bearer é\udcff\ud800",
    ],
    ids=[
        "none", "bare", "basic", "shorter", "longer", "another case", "empty", "bytes",
    ],
)  # fmt: skip
def test_a_token_that_is_nearly_right_is_refused(
    sessions: Sessions, spell: Callable[[str], str]
) -> None:
    token = open_session(sessions)
    assert is_refused(sessions, spell(token))
    assert not is_refused(sessions, f"Bearer {token}")


@pytest.mark.parametrize(
    ("pause", "uses", "last"), [(16 * HOUR - 1, 3, 16 * HOUR), (6 * HOUR, 27, 6 * HOUR)]
)
def test_a_session_ends_after_sixteen_hours_without_its_user_or_seven_days_of_use(
    sessions: Sessions, clock: Clock, pause: int, uses: int, last: int
) -> None:
    token = open_session(sessions)
    for _ in range(uses):
        clock.now += pause
        assert not is_refused(sessions, f"Bearer {token}")
    clock.now += last
    assert is_refused(sessions, f"Bearer {token}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.json"


def started(clock: Clock, path: Path) -> Sessions:
    """The sessions of a daemon that has just begun."""
    return Sessions(clock=clock, wall=clock, file=SessionFile(path))


def test_a_session_outlives_the_daemon_but_its_code_does_not(
    clock: Clock, path: Path
) -> None:
    before = started(clock, path)
    kept, ended = open_session(before), open_session(before)
    before.require_confirmation(kept)
    before.sign_out(ended)
    clock.now += 60
    after = started(clock, path)
    assert not is_refused(after, f"Bearer {kept}")
    assert is_refused(after, f"Bearer {ended}")
    with pytest.raises(NotAllowed) as caught:
        after.require_confirmation(kept)
    assert caught.value.code == "dashboard_confirm"
    after.confirm(kept, after.make_code())
    after.require_confirmation(kept)


def test_a_use_prolongs_a_session_beyond_a_restart(clock: Clock, path: Path) -> None:
    token = open_session(started(clock, path))
    for _ in range(3):
        clock.now += 10 * HOUR
        assert not is_refused(started(clock, path), f"Bearer {token}")
    clock.now += 16 * HOUR
    assert is_refused(started(clock, path), f"Bearer {token}")


@pytest.mark.case("B169")
def test_the_file_of_sessions_opens_nothing_and_is_its_owners(
    clock: Clock, path: Path
) -> None:
    token = open_session(started(clock, path))
    text = path.read_text()
    assert token not in text
    [name] = json.loads(text)
    assert is_refused(started(clock, path), f"Bearer {name}")
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("{"),
        lambda path: path.write_text("[1, 2]"),
        lambda path: path.write_text('{"' + "0" * 64 + '": [null, "x"]}'),
        lambda path: path.write_text('{"short": [1, 1]}'),
        lambda path: path.chmod(0o644),
        lambda path: path.unlink(),
    ],
)
@pytest.mark.case("B169")
def test_a_damaged_or_open_file_of_sessions_ends_them(
    clock: Clock, path: Path, spoil: Callable[[Path], object]
) -> None:
    token = open_session(started(clock, path))
    spoil(path)
    sessions = started(clock, path)
    assert is_refused(sessions, f"Bearer {token}")
    assert not is_refused(sessions, f"Bearer {open_session(sessions)}")


@pytest.mark.case("B169")
def test_a_clock_that_is_set_back_lets_no_session_live_longer(
    clock: Clock, path: Path
) -> None:
    token = open_session(started(clock, path))
    clock.now -= 200
    assert not is_refused(started(clock, path), f"Bearer {token}")
    clock.now -= 200
    assert is_refused(started(clock, path), f"Bearer {token}")


def test_all_sessions_end_at_once_and_for_good(clock: Clock, path: Path) -> None:
    sessions = started(clock, path)
    code, tokens = sessions.make_code(), [open_session(sessions) for _ in range(2)]
    sessions.end_all()
    refuse(sessions, code)
    for one in (sessions, started(clock, path)):
        assert all(is_refused(one, f"Bearer {token}") for token in tokens)


def test_what_ended_while_a_successor_started_has_ended(
    clock: Clock, path: Path
) -> None:
    before = started(clock, path)
    kept, ended = open_session(before), open_session(before)
    successor = started(clock, path)
    before.sign_out(ended)
    successor.adopt(json.loads(json.dumps(before.export())))
    assert is_refused(successor, f"Bearer {ended}")
    successor.require_confirmation(kept)


def test_there_are_at_most_sixteen_sessions_and_the_oldest_makes_room(
    sessions: Sessions,
) -> None:
    tokens = [open_session(sessions) for _ in range(17)]
    assert [sessions.is_open(token) for token in tokens] == [False, *([True] * 16)]


@pytest.mark.parametrize("how", ["sign-out", "too many", "too old"])
def test_who_waits_for_the_end_of_a_session_is_told(
    sessions: Sessions, clock: Clock, how: str
) -> None:
    told = list[str]()
    token = open_session(sessions)
    sessions.on_end(token, lambda: told.append("first"))
    sessions.on_end(token, lambda: told.append("second"))()  # and taken back
    match how:
        case "sign-out":
            sessions.sign_out(token)
        case "too many":
            for _ in range(16):
                open_session(sessions)
        case _:
            clock.now += 16 * HOUR
            assert not sessions.is_open(token)
    assert told == ["first"]
    sessions.on_end(token, lambda: told.append("late"))()
    assert told == ["first", "late"]
