"""byok dashboard: a code, an address, and the browser that the page is opened in."""

import json
import re
import sys
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import pytest

from byok.cli.dashboard import advise_link, open_browser, run_detached
from byok.clients.locations import RunPlace
from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread
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


def test_the_code_opens_the_page_once(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMOTE_CONTAINERS", "true")  # the browser is outside
    with daemon_thread() as daemon:
        done = cli("dashboard", "--link")
        assert done.code == 0
        assert f"if port {daemon.port} is forwarded" in done.err
        shown = SHOWN.fullmatch(done.out)
        assert shown
        assert shown[1] == f"{daemon.url}/ui/"
        with urllib.request.urlopen(shown[1]) as answer:
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert (sign_in(shown), sign_in(shown)) == (200, 401)


def test_a_sign_out_ends_what_was_opened_and_shown(cli: Cli) -> None:
    with daemon_thread() as daemon:
        opened = SHOWN.fullmatch(cli("dashboard", "--link").out)
        shown = SHOWN.fullmatch(cli("dashboard", "--link").out)
        assert opened and shown
        assert sign_in(opened) == 200
        assert cli("dashboard", "--sign-out").code == 0
        assert daemon.sessions.export() == {}
        assert sign_in(shown) == 401


@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a script")
@pytest.mark.case("B161")
def test_the_browser_is_given_nothing_secret(tmp_path: Path) -> None:
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


URL = "http://127.0.0.1:1/ui/#code=c"
DESKTOP = RunPlace.DESKTOP
HANDLER = "url.dll,FileProtocolHandler"
XDG = webbrowser.BackgroundBrowser("xdg-open")


class Program:
    """Notes what is started; `works` is what it comes to."""

    def __init__(self, works: bool = True) -> None:
        self.works = works
        self.started: list[list[str]] = []

    def __call__(self, command: Sequence[str]) -> bool:
        self.started.append(list(command))
        return self.works


class OwnBrowser(webbrowser.BaseBrowser):
    """A browser that the standard library knows well, such as that of macOS."""

    def __init__(self) -> None:
        super().__init__("own")
        self.opened: list[str] = []

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        self.opened.append(url)
        return True


def no_browser() -> webbrowser.BaseBrowser:
    raise webbrowser.Error("could not locate runnable browser")


@pytest.mark.parametrize(
    ("environ", "platform", "opens"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "darwin", True),
    ],
)
def test_a_browser_needs_a_display(
    environ: dict[str, str], platform: str, opens: bool
) -> None:
    own = OwnBrowser()
    done = open_browser(URL, DESKTOP, environ, platform=platform, get=lambda: own)
    assert done is opens
    assert own.opened == ([URL] if opens else [])


@pytest.mark.parametrize(
    ("browser", "started"),
    [
        (XDG, ["xdg-open", URL]),
        (webbrowser.GenericBrowser("firefox"), ["firefox", URL]),
        (
            webbrowser.GenericBrowser(["/opt/b/b", "--new", "%s"]),
            ["/opt/b/b", "--new", URL],
        ),
        (webbrowser.GenericBrowser("w3m"), None),
        (webbrowser.BackgroundBrowser("www-browser"), None),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_text_browser_is_none(
    browser: webbrowser.BaseBrowser, started: list[str] | None
) -> None:
    run, display = Program(), {"DISPLAY": ":0"}
    done = open_browser(
        URL, DESKTOP, display, platform="linux", get=lambda: browser, run=run
    )
    assert done is (started is not None)
    assert run.started == ([started] if started else [])


def test_a_browser_that_fails_or_is_not_there_is_told() -> None:
    display, failing = {"DISPLAY": ":0"}, Program(works=False)
    assert not open_browser(URL, DESKTOP, display, get=no_browser)
    assert not open_browser(URL, DESKTOP, display, get=lambda: XDG, run=failing)
    assert failing.started == [["xdg-open", URL]]


@pytest.mark.parametrize(
    ("there", "works", "started"),
    [
        (["wslview", "rundll32.exe"], True, [["/wslview", URL]]),
        (["rundll32.exe"], True, [["/rundll32.exe", HANDLER, URL]]),
        (
            ["wslview", "rundll32.exe"],
            False,
            [["/wslview", URL], ["/rundll32.exe", HANDLER, URL]],
        ),
        ([], True, []),
    ],
)
def test_wsl_opens_the_browser_of_windows(
    there: list[str], works: bool, started: list[list[str]]
) -> None:
    run = Program(works)
    done = open_browser(
        URL,
        RunPlace.WSL,
        {"DISPLAY": ":0"},
        find=lambda name: f"/{name}" if name in there else None,
        get=no_browser,
        run=run,
    )
    assert done is (works and bool(started))
    assert run.started == started


@pytest.mark.parametrize(
    ("code", "works"), [("", True), ("raise SystemExit(3)", False)]
)
def test_a_program_that_ends_with_an_error_did_not_open_it(
    code: str, works: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    noise = f"import sys; print('x'); print('y', file=sys.stderr); {code}"
    assert run_detached([sys.executable, "-c", noise]) is works
    assert capfd.readouterr() == ("", "")
