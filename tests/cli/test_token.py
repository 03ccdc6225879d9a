"""byok token."""

import re

import pytest

from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli

pytestmark = pytest.mark.usefixtures("unused_port")


def test_the_token_and_a_newline_are_printed_and_nothing_else(cli: Cli) -> None:
    done = cli("token")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}\n", done.out)
    assert done.out.strip() == find_paths().token.read_text().strip()


def test_the_token_stays_the_same(cli: Cli) -> None:
    assert cli("token").out == cli("token").out == cli("token", "show").out


def test_a_rotated_token_replaces_the_old_one(cli: Cli) -> None:
    old = cli("token").out
    rotated = cli("token", "rotate")
    assert rotated.code == 0
    assert rotated.out != old
    assert re.fullmatch(r"\S+\n", rotated.out)
    assert "no longer valid" in rotated.err
    assert cli("token").out == rotated.out


def test_rotating_works_without_a_token_and_repairs_a_damaged_one(cli: Cli) -> None:
    path = find_paths().token
    first = cli("token", "rotate").out
    assert path.read_text() == first
    path.write_text("x")
    damaged = cli("token")
    assert (damaged.code, damaged.out) == (78, "")
    assert "byok token rotate" in damaged.err
    assert cli("token", "rotate").code == 0
    assert cli("token").code == 0


@pytest.mark.case("B103")
def test_a_token_that_others_can_read_is_not_used(cli: Cli) -> None:
    token = cli("token").out.strip()
    path = find_paths().token
    path.chmod(0o644)
    done = cli("token")
    assert (done.code, done.out) == (78, "")
    assert "chmod 600" in done.err
    assert token not in done.err


def test_the_metrics_have_a_token_of_their_own(cli: Cli) -> None:
    client, metrics = cli("token").out, cli("token", "--metrics").out
    assert client != metrics == cli("token", "show", "--metrics").out
    assert metrics.strip() == find_paths().metrics_token.read_text().strip()
    rotated = cli("token", "rotate", "--metrics")
    assert rotated.out == cli("token", "--metrics").out != metrics
    assert "Prometheus" in rotated.err
    assert cli("token").out == client


def test_a_misplaced_option_rotates_nothing(cli: Cli) -> None:
    client = cli("token").out
    assert cli("token", "--metrics", "rotate").code == 2
    assert cli("token").out == client
