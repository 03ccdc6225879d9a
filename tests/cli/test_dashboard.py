"""byok dashboard: the link of one sign-in, in the browser or printed."""

import json
import re
import sys
import urllib.error
import urllib.request

import pytest

from byok.cli.dashboard import advise_link
from byok.client_settings.run_place import RunPlace
from byok.daemon.token import read_token
from byok.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread

LINK = re.compile(r"(http://127\.0\.0\.1:\d+/ui/)#code=(byok_ui_[\w-]{22})\n")


@pytest.fixture(autouse=True)
def desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a screen, whatever the test runs on."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)


def sign_in(link: "re.Match[str]") -> int:
    body = json.dumps({"code": link[2]}).encode()
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"{link[1]}api/sign-in", body, headers)
    try:
        with urllib.request.urlopen(asked) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_link_opens_the_page_once(cli: Cli) -> None:
    with daemon_thread() as daemon:
        done = cli("dashboard", "--link")
        assert done.code == 0
        link = LINK.fullmatch(done.out)
        assert link
        assert link[1] == f"{daemon.url}/ui/"
        assert "within a minute" in done.err
        with urllib.request.urlopen(link[1]) as answer:
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert (sign_in(link), sign_in(link)) == (200, 401)


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="it would open")
def test_without_a_display_the_link_is_printed(cli: Cli) -> None:
    with daemon_thread():
        assert LINK.fullmatch(cli("dashboard").out)


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
    assert LINK.fullmatch(done.out)
    assert f"if port {daemon.port} is forwarded" in done.err


def test_without_a_daemon_the_command_says_how_to_start_it(cli: Cli) -> None:
    done = cli("dashboard", "--link")
    assert (done.code, done.out) == (1, "")
    assert "byok is not running.\n  Start it: byok serve\n" in done.err
    assert not find_paths().dashboard_token.exists()


def test_a_token_file_that_others_can_read_is_named(cli: Cli) -> None:
    path = find_paths().dashboard_token
    with daemon_thread():
        token = read_token(path)
        path.chmod(0o644)
        done = cli("dashboard", "--link")
        assert (done.code, done.out) == (78, "")
        assert "chmod 600" in done.err
        assert token not in done.err


def test_a_token_file_without_a_token_is_made_anew_once_it_is_deleted(cli: Cli) -> None:
    path = find_paths().dashboard_token
    with daemon_thread():
        read_token(path)
        path.write_text("")
        assert "byok dashboard makes a new one" in cli("dashboard", "--link").err
        path.unlink()
        assert LINK.fullmatch(cli("dashboard", "--link").out)
