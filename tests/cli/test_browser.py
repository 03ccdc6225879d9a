"""Which browser a page is opened in, and where none is."""

import sys
import webbrowser
from collections.abc import Sequence

import pytest

from byok.cli.browser import open_browser, run_detached
from byok.client_settings.run_place import RunPlace

URL = "http://127.0.0.1:1/ui/#code=c"
DESKTOP = RunPlace.DESKTOP
RUNDLL = "/mnt/c/Windows/System32/rundll32.exe"
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


@pytest.mark.parametrize("place", [RunPlace.SSH, RunPlace.CONTAINER])
def test_no_browser_is_started_where_no_user_sees_it(place: RunPlace) -> None:
    run, display = Program(), {"DISPLAY": ":0", "BROWSER": "firefox"}
    assert not open_browser(URL, place, display, get=lambda: XDG, run=run)
    assert run.started == []


@pytest.mark.parametrize(
    ("environ", "platform", "opens"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "freebsd14", False),
        ({}, "darwin", True),
        ({}, "win32", True),
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
        (webbrowser.GenericBrowser("/usr/bin/lynx"), None),
        (webbrowser.GenericBrowser(["links", "%s"]), None),
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
        ([RUNDLL], True, [["/" + RUNDLL, HANDLER, URL]]),
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


def test_a_program_that_is_not_there_did_not_open_it() -> None:
    assert not run_detached(["/no/such/browser", URL])
