"""Open a page in the user's browser: a window, never a program in the terminal.

`webbrowser` of the standard library finds the browser. It would also start a text
browser in the terminal that the command runs in, and wait for a browser that BROWSER
names until its window is closed; both are avoided here.
"""

import os
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from byok.client_settings.run_place import RunPlace
from byok.platform.programs import find_program

Run = Callable[[Sequence[str]], bool]

_TEXT = frozenset(
    {"browsh", "carbonyl", "elinks", "links", "links2", "lynx", "w3m", "www-browser"}
)
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_FAIL_SECONDS = 3.0  # within which a browser that cannot be started has ended
# What opens Windows' own browser from WSL; the first is in Debian's package wslu.
_WINDOWS = (
    ("wslview",),
    ("rundll32.exe", "url.dll,FileProtocolHandler"),
    ("/mnt/c/Windows/System32/rundll32.exe", "url.dll,FileProtocolHandler"),
)


def run_detached(command: Sequence[str]) -> bool:
    """Start a browser that outlives this command; False if it ends with an error."""
    try:
        started = subprocess.Popen(  # noqa: S603 - the user's own browser
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # browsers fill the terminal with warnings
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return started.wait(_FAIL_SECONDS) == 0
    except subprocess.TimeoutExpired:
        return True  # it shows the page
    except OSError:
        return False


def open_browser(
    url: str,
    place: RunPlace,
    environ: Mapping[str, str] = os.environ,
    *,
    platform: str = sys.platform,
    find: Callable[[str], str | None] = find_program,
    get: Callable[[], webbrowser.BaseBrowser] = webbrowser.get,
    run: Run = run_detached,
) -> bool:
    """Open a page of this machine in a browser of its user; tell whether one was found.

    Behind SSH and in a container there is none: the user's browser is elsewhere.
    """
    if place in (RunPlace.SSH, RunPlace.CONTAINER):
        return False
    if place is RunPlace.WSL:
        return any(
            run([found, *arguments, url])
            for name, *arguments in _WINDOWS
            if (found := find(name))
        )
    has_display = any(environ.get(name) for name in _DISPLAYS)
    if platform not in ("darwin", "win32") and not has_display:
        return False
    try:
        browser = get()
    except webbrowser.Error:
        return False
    if not isinstance(browser, webbrowser.GenericBrowser):
        return browser.open(url)
    if PurePath(browser.name).name in _TEXT:
        return False
    return run([browser.name, *(arg.replace("%s", url) for arg in browser.args)])
