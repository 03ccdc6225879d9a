"""The client token: its file, its comparison, its rotation."""

import errno
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from byok.core.daemon.token import TokenCheck, read_token, rotate_token
from byok.core.errors import ConfigError
from tests.fakes.disk import Power


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the token goes; neither it nor its folder exists."""
    return tmp_path / "state" / "token"


def put(path: Path, content: str, mode: int = 0o600) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text(content)
    path.chmod(mode)


def test_the_token_is_made_once_and_for_its_owner_only(path: Path) -> None:
    token = read_token(path)
    assert len(token) == 43
    assert read_token(path) == token
    assert path.read_text() == token + "\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Power:
    (tmp_path / "home").mkdir()
    return Power(tmp_path / "home", monkeypatch)


@pytest.mark.case("B114")
def test_the_first_token_survives_a_power_cut(tmp_path: Path, power: Power) -> None:
    token = read_token(tmp_path / "home" / "byok" / "state" / "token")
    for names_last in (False, True):
        left = power.cut(names_last=names_last)
        assert read_token(left / "byok" / "state" / "token") == token


@pytest.mark.parametrize("first", [True, False], ids=["first", "rotated"])
@pytest.mark.case("B114")
def test_a_power_cut_at_any_moment_leaves_a_whole_token_or_none(
    tmp_path: Path, power: Power, first: bool
) -> None:
    def check(left: Path) -> None:
        token = left / "state" / "token"
        found.append(token.read_text() if token.exists() else "")

    path = tmp_path / "home" / "state" / "token"
    found: list[str] = []
    before = "" if first else read_token(path) + "\n"
    power.check_each(check)
    token = read_token(path) if first else rotate_token(path)
    assert set(found) == {before, token + "\n"}


@pytest.mark.case("B114")
def test_who_makes_the_token_second_takes_the_first(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        tokens = set(pool.map(read_token, [path] * 64))
    assert tokens == {path.read_text().strip()}
    assert [left.name for left in path.parent.iterdir()] == ["token"]


@pytest.mark.case("B114")
def test_a_disk_without_hard_links_gets_a_whole_token_too(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> NoReturn:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    token = read_token(path)
    assert path.read_text() == token + "\n"
    assert read_token(path) == token


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
@pytest.mark.case("B103")
def test_token_file_open_to_others_is_refused_with_a_hint(
    path: Path, mode: int
) -> None:
    put(path, "a-token-of-the-user\n", mode)
    with pytest.raises(ConfigError) as caught:
        read_token(path)
    assert "chmod 600" in caught.value.hint
    assert "a-token-of-the-user" not in caught.value.sentence


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("short", id="short"),
        pytest.param("x" * 2**20, id="1-mb"),
        pytest.param("two words and\nlines, long enough", id="two-lines"),
        pytest.param("\x00" * 40, id="nul"),
        pytest.param("\ufffd" * 40, marks=pytest.mark.case("B114"), id="no-ascii"),
        pytest.param("t\u00f6ken" * 8, marks=pytest.mark.case("B114"), id="umlauts"),
    ],
)
@pytest.mark.case("B103")
def test_a_file_without_a_token_is_refused(path: Path, content: str) -> None:
    put(path, content)
    with pytest.raises(ConfigError, match="contains no token") as caught:
        read_token(path)
    assert caught.value.hint == "Run: byok token rotate"


@pytest.mark.case("B103")
def test_token_file_that_is_a_symlink_is_refused(path: Path) -> None:
    target = path.parent.parent / "target"
    put(path, "")
    path.unlink()
    path.symlink_to(target)
    with pytest.raises(ConfigError, match="plain file"):
        read_token(path)
    assert not target.exists()
    target.write_text("a-token-of-the-user\n")
    target.chmod(0o600)
    with pytest.raises(ConfigError, match="plain file"):
        read_token(path)


def test_a_rotated_token_counts_at_once_and_the_old_one_no_more(path: Path) -> None:
    check = TokenCheck(path)
    old = check.token
    assert check(f"Bearer {old}")
    new = rotate_token(path)
    assert new != old
    assert check(f"Bearer {new}")
    assert not check(f"Bearer {old}")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.case("B103")
def test_token_file_counts_again_once_it_is_private(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    check = TokenCheck(path)
    token = rotate_token(path)
    path.chmod(0o644)
    assert not check(f"Bearer {token}")
    assert not check(f"Bearer {token}")
    assert caplog.text.count("cannot be read") == 1
    path.chmod(0o600)
    assert check(f"Bearer {token}")


def test_a_running_daemon_keeps_its_token_when_the_file_vanishes(path: Path) -> None:
    check = TokenCheck(path)
    path.unlink()
    assert check(f"Bearer {check.token}")


@pytest.mark.parametrize(
    ("header", "right"),
    [
        ("Bearer TOKEN", True),
        ("Bearer Bearer TOKEN", True),
        ("TOKEN", False),
        ("Basic TOKEN", False),
        ("BearerTOKEN", False),
        ("Bearer ", False),
        ("", False),
        ("Bearer TOKENx", False),
        ("Bearer TOKEN\x00", False),
        ("Bearer \udcff\udcfe", False),
        ("Bearer \u00e9", False),
    ],
)
def test_only_the_whole_token_behind_bearer_counts(
    path: Path, header: str, right: bool
) -> None:
    check = TokenCheck(path)
    assert check(header.replace("TOKEN", check.token)) is right


def test_a_token_never_looks_like_an_option(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter(["-" + "x" * 42, "_" + "x" * 42, "x" * 43])
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _: next(drawn))
    assert read_token(path) == "x" * 43


def test_a_full_disk_leaves_no_empty_token(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int, *_: object, **__: object) -> NoReturn:
        os.close(handle)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", full)
        with pytest.raises(OSError, match="No space"):
            read_token(path)
    assert not path.exists()
    assert len(read_token(path)) > 20
