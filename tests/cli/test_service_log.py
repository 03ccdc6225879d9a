"""The end of the log, through rotations; whether a daemon is the service's."""

from pathlib import Path

import pytest

from byok.cli.service import LogReader, is_of
from byok.clients.service.base import ServiceState
from byok.core.daemon.instance import Instance
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "byok.log"
    path.write_text("".join(f"line {n}\n" for n in range(100)))
    return path


def add(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_tail_is_the_last_lines(log: Path) -> None:
    with LogReader(log) as reader:
        assert reader.tail(2) == ["line 98", "line 99"]
        assert reader.more() == []
        add(log, "new\nhalf")
        assert reader.more() == ["new"]
        add(log, " whole\n")
        assert reader.more() == ["half whole"]


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (1, 1), (100, 100), (500, 100)])
def test_tail_has_at_most_what_there_is(count: int, shown: int, log: Path) -> None:
    with LogReader(log) as reader:
        assert len(reader.tail(count)) == shown


def test_next_file_is_read_after_the_end_of_this_one(log: Path) -> None:
    with LogReader(log) as reader:
        reader.tail(0)
        add(log, "last\n")
        log.rename(log.with_name("byok.log.1"))
        assert reader.more() == ["last"]
        log.write_text("first\n")
        assert reader.more() == ["first"]


def test_file_that_is_cut_is_read_from_its_beginning(log: Path) -> None:
    with LogReader(log) as reader:
        reader.tail(0)
        log.write_text("anew\n")
        assert reader.more() == ["anew"]


def test_file_that_is_not_there_yet_is_awaited(tmp_path: Path) -> None:
    log = tmp_path / "later.log"
    with LogReader(log) as reader:
        assert (reader.tail(5), reader.more()) == ([], [])
        log.write_text("first\n")
        assert reader.more() == ["first"]


def test_endless_line_is_not_kept_in_memory(log: Path) -> None:
    with LogReader(log) as reader:
        reader.tail(0)
        add(log, "x" * 3_000_000)
        assert [len(line) for line in reader.more()] == [3_000_000]


def test_command_shows_the_log_and_escapes_what_is_in_it(cli: Cli) -> None:
    log = find_paths().log
    assert "no log yet" in cli("service", "logs").err
    log.parent.mkdir(parents=True)
    log.write_bytes(b"one\ntwo \x1b[31m\n\xff\n")
    done = cli("service", "logs", "-n", "2")
    assert done.code == 0
    assert done.out.splitlines()[0].startswith("two ")
    assert "\x1b" not in done.out


DAEMON = Instance(pid=7, port=1, instance="x", started=0.0)


@pytest.mark.parametrize(
    ("state", "is_so"),
    [
        (ServiceState(running=True, pid=7), True),
        (ServiceState(running=True, pid=8), False),
        (ServiceState(running=True), True),  # Windows tells no pid
        (ServiceState(), False),
    ],
)
def test_daemon_is_the_one_of_the_service(state: ServiceState, is_so: bool) -> None:
    assert is_of(state, DAEMON) is is_so
