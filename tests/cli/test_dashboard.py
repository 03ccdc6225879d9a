"""byok dashboard: the page in the browser, and the code of one sign-in."""

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from byok.cli.dashboard import advise_link
from byok.client_settings.run_place import RunPlace
from byok.daemon.token import read_token
from byok.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.program import run_byok

SHOWN = re.compile(r".* (http://127\.0\.0\.1:\d+/ui/)\n.* ([0-9A-Z]{5}-[0-9A-Z]{5})\n")


@pytest.fixture(autouse=True)
def desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a screen, whatever the test runs on."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)


def sign_in(shown: "re.Match[str]") -> int:
    body = json.dumps({"code": shown[2]}).encode()
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"{shown[1]}api/sign-in", body, headers)
    try:
        with urllib.request.urlopen(asked) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_code_opens_the_page_once(cli: Cli) -> None:
    with daemon_thread() as daemon:
        done = cli("dashboard", "--link")
        assert done.code == 0
        shown = SHOWN.fullmatch(done.out)
        assert shown
        assert shown[1] == f"{daemon.url}/ui/"
        with urllib.request.urlopen(shown[1]) as answer:
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert (sign_in(shown), sign_in(shown)) == (200, 401)


@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a script")
@pytest.mark.case("B161")
def test_the_browser_is_given_nothing_secret(
    tmp_path: Path,
) -> None:
    """Its arguments and environment can be read by others, as by /proc."""
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nenv > {seen}; echo "$@" >> {seen}\n')
    browser.chmod(0o700)
    env = {"BROWSER": f"{browser} %s", "DISPLAY": ":99"}
    with daemon_thread() as daemon:
        shown = SHOWN.fullmatch(run_byok("dashboard", env=env).stdout)
        assert shown
        if not seen.exists():
            pytest.skip("a container has no browser of its own to open")
        given = seen.read_text()
        assert given.endswith(f"{daemon.url}/ui/\n")
        assert shown[2] not in given
        assert shown[2].replace("-", "") not in given
        assert read_token(find_paths().owner_secret) not in given


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="it would open")
def test_without_a_display_the_address_is_shown(cli: Cli) -> None:
    with daemon_thread():
        assert SHOWN.fullmatch(cli("dashboard").out)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (RunPlace.DESKTOP, None),
        (RunPlace.WSL, None),
        (RunPlace.SSH, "ssh -N -L 4800:127.0.0.1:4800 HOST"),
        (RunPlace.CONTAINER, "if port 4800 is forwarded as the same port"),
    ],
)
def test_a_browser_elsewhere_is_told_how_to_get_here(
    place: RunPlace, said: str | None
) -> None:
    lines = "\n".join(advise_link(place, 4800))
    assert said in lines if said else lines == ""


def test_in_a_container_the_command_says_how_the_page_is_reached(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMOTE_CONTAINERS", "true")
    with daemon_thread() as daemon:
        done = cli("dashboard")
    assert SHOWN.fullmatch(done.out)
    assert f"if port {daemon.port} is forwarded" in done.err


@pytest.mark.usefixtures("unused_port")
def test_without_a_daemon_the_command_says_how_to_start_it(cli: Cli) -> None:
    done = cli("dashboard", "--link")
    assert (done.code, done.out) == (1, "")
    assert "byok is not running.\n  Start it: byok serve\n" in done.err
    assert not find_paths().owner_secret.exists()


def test_a_secret_that_others_can_read_is_named(cli: Cli) -> None:
    path = find_paths().owner_secret
    with daemon_thread():
        secret = read_token(path)
        path.chmod(0o644)
        done = cli("dashboard", "--link")
        assert (done.code, done.out) == (78, "")
        assert "chmod 600" in done.err
        assert secret not in done.err
