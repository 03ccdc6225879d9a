"""byok dashboard: the link of one sign-in."""

import re
import urllib.request

from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread


def test_the_link_opens_the_page(cli: Cli) -> None:
    with daemon_thread() as daemon:
        done = cli("dashboard", "--link")
        assert done.code == 0
        link = re.fullmatch(rf"({daemon.url}/ui/)#code=([\w-]{{30}})\n", done.out)
        assert link
        with urllib.request.urlopen(link[1]) as answer:
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


def test_without_a_daemon_the_command_says_how_to_start_it(cli: Cli) -> None:
    done = cli("dashboard", "--link")
    assert (done.code, done.out) != (0, "")
    assert "Start it: byok serve" in done.err
