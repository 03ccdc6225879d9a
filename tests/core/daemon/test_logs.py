"""Logging: nothing secret, nothing that moves a terminal's cursor, private files."""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.core.daemon import logs
from byok.core.daemon.logs import LogLines, RedactingFormatter, set_up_logging
from byok.core.platform.installation import make_pasteable
from byok.core.redact import Redactor
from tests.fakes.patience import PATIENCE

KEY = "a-canary-of-a-key"


@pytest.fixture
def redactor() -> Redactor:
    """A redactor that knows one key."""
    redactor = Redactor()
    redactor.add(KEY)
    return redactor


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def written(
    redactor: Redactor,
    message: str,
    *args: object,
    failed: bool,
    level: int = logging.INFO,
) -> str:
    facts = sys.exc_info() if failed else None
    record = logging.LogRecord("x", level, "f", 1, message, args, facts)
    return RedactingFormatter(redactor).format(record)


def test_logs_write_lines_together_as_if_each_were_written_alone(
    redactor: Redactor, capfd: pytest.CaptureFixture[str], root: logging.Logger,
    tmp_path: Path,
) -> None:  # fmt: skip
    file = tmp_path / "log" / "byok.log"
    set_up_logging("info", file, redactor)
    logging.getLogger("a").info(LogLines(["one", f"two {KEY}"]))
    told = [line.partition(" INFO ") for line in capfd.readouterr().err.splitlines()]
    assert [rest for _, _, rest in told] == ["a: one", "a: two [redacted]"]
    assert told[0][0] == told[1][0] != ""
    assert file.read_text().count(" INFO a: ") == 2


def test_logs_hide_a_key_in_messages_arguments_and_tracebacks(
    redactor: Redactor,
) -> None:
    try:
        raise ValueError(f"header {KEY} is bad")
    except ValueError:
        text = written(redactor, f"{KEY} and %s", KEY, failed=True)
    assert KEY not in text
    assert text.count("[redacted]") == 3
    assert "ValueError: header [redacted] is bad" in text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\x1b[31mb", "a?[31mb"),
        ("a\rb", "a?b"),
        ("a\u202eb", "a?b"),
        ("a\ud800b", "a?b"),
        ("é 検索 \U0001f600", "é 検索 \U0001f600"),
    ],
    ids=["escape", "return", "override", "surrogate", "letters"],
)
def test_logs_escape_control_characters(
    redactor: Redactor, raw: str, shown: str
) -> None:
    assert written(redactor, "%s", raw, failed=False).endswith(f": {shown}")


def test_a_warning_names_a_command_as_it_can_be_pasted(
    redactor: Redactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        logs, "make_pasteable", lambda text: make_pasteable(text, "/opt/byok")
    )
    warning = written(redactor, "byok keys set a", failed=False, level=logging.WARNING)
    assert warning.endswith(": /opt/byok keys set a")


def test_logs_go_to_stderr_and_to_a_private_file(
    tmp_path: Path,
    redactor: Redactor,
    root: logging.Logger,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "log" / "byok.log"
    set_up_logging("info", file, redactor)
    logging.getLogger("byok.test").info("told %s", KEY)
    logging.getLogger("byok.test").debug("untold")
    logging.getLogger("httpx").info("GET https://host/?key=%s", KEY)
    logged = file.read_text()
    assert logged.endswith("INFO byok.test: told [redacted]\n")
    assert logged.count("\n") == 1
    streams = capsys.readouterr()
    assert (streams.out, streams.err) == ("", logged)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_the_log_turns_over_before_it_is_too_large(
    tmp_path: Path, redactor: Redactor, root: logging.Logger
) -> None:
    file = tmp_path / "byok.log"
    file.write_bytes(b"x" * (10 * 2**20 - 150))
    set_up_logging("info", file, redactor)
    root.info("first")
    assert list(tmp_path.iterdir()) == [file]
    root.info("second" * 20)
    assert file.read_text().endswith("second\n")
    assert file.stat().st_size < 250
    assert (tmp_path / "byok.log.1").read_bytes().endswith(b"first\n")


@pytest.mark.case("F43")
def test_without_a_log_file_the_daemon_still_speaks(
    tmp_path: Path,
    redactor: Redactor,
    root: logging.Logger,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    set_up_logging("warning", blocked / "byok.log", redactor)
    assert "no log file: " in capsys.readouterr().err
    assert len(root.handlers) == 1


@pytest.mark.skipif(os.name == "nt", reason="it cannot be asked there")
@pytest.mark.case("F43")
def test_a_pipe_that_nobody_reads_does_not_hold_the_daemon_up(
    redactor: Redactor,
    monkeypatch: pytest.MonkeyPatch,
    root: logging.Logger,
    tmp_path: Path,
) -> None:
    source, sink = os.pipe()
    file = tmp_path / "byok.log"

    def write() -> None:
        for _ in range(100):
            root.info("%s", "x" * 10_000)

    with open(sink, "w") as stderr:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stderr", stderr)
        set_up_logging("info", file, redactor)
        writing = threading.Thread(target=write, daemon=True)
        writing.start()
        writing.join(PATIENCE)
        try:
            assert not writing.is_alive()
            said = os.read(source, 10_000)
            root.info("read again")
            while b"read again" not in said:
                said += os.read(source, 10_000)
        finally:
            os.close(source)
    assert file.read_text("utf-8").count("\n") == 101


@pytest.mark.skipif(os.name == "nt", reason="no FIFOs here")
@pytest.mark.case("F43")
def test_a_fifo_in_the_place_of_the_log_file_does_not_hold_the_start_up(
    tmp_path: Path, redactor: Redactor, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "byok.log").symlink_to("fifo")
    set_up_logging("warning", tmp_path / "byok.log", redactor)
    assert "byok.log is not a regular file" in capsys.readouterr().err
