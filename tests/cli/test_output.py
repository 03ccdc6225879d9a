"""Text for people, JSON for scripts, errors with their cure."""

import io
import json
import re
import sys
import time

import pytest
import typer

from byok.cli.terminal import (
    Asker,
    confirm,
    fail,
    say,
    say_json,
    say_styled,
    say_table,
    show_progress,
    tell,
)
from byok.core.errors import ByokError, ConfigError
from byok.core.platform.installation import make_pasteable
from tests.fakes.patience import PATIENCE

Capture = pytest.CaptureFixture[str]


ODD = "a\x1b]0;x\x07\u202eb\x9b\u200b\U000e0041\r"
SHOWN = "a\\x1b]0;x\\x07\\u202eb\\x9b\\u200b\\U000e0041\\r"


@pytest.mark.case("B117")
def test_output_lines_have_no_control_characters(capsys: Capture) -> None:
    say(ODD + "\n")
    tell(ODD)
    fail(ByokError(ODD, hint=ODD))
    told = capsys.readouterr()
    assert told.out == f"{SHOWN}\\n\n"
    more = "  More: byok explain internal\n"
    assert told.err == f"{SHOWN}\nbyok: {SHOWN}\n  {SHOWN}\n{more}"
    fail(ConfigError("One.\nTwo."))
    more = "  More: byok explain config\n"
    assert capsys.readouterr() == ("", f"byok: One.\nTwo.\n{more}")


@pytest.mark.case("B117")
def test_output_json_escapes_keep_its_value(capsys: Capture) -> None:
    say_json({"path": ODD, "n": [1]})
    out = capsys.readouterr().out
    assert json.loads(out) == {"path": ODD, "n": [1]}
    assert out.replace("\n", "").isascii()
    assert out.replace("\n", "").isprintable()


def test_output_table_goes_on_in_the_same_columns(capsys: Capture) -> None:
    widths = {"name": 6, "size": 5}
    for row, header in ((("a", "7"), True), (("longer", "1,000"), False)):
        say_table(
            "name", "size", rows=[row], right=["size"], widths=widths, header=header
        )
    assert capsys.readouterr().out.splitlines() == [
        "name     size",
        "a           7",
        "longer  1,000",
    ]


def test_output_in_a_narrow_terminal_shows_whole_paths(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    rows = [(f"/home/somebody/src/of/a/company/{end}", "complete") for end in "ab"]
    say_table("workspace", "phase", rows=rows)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    first, *lines = plain.splitlines()
    assert first.split() == ["workspace", "phase"]
    assert all(len(line) <= 40 for line in lines)
    shown = "".join(line.replace("complete", "").strip() for line in lines)
    assert shown == "".join(path for path, _ in rows)


def test_output_in_styles_is_wrapped_behind_its_mark(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    say_styled(("ok   ", "green"), ("name", "bold"), (": " + "word " * 20, ""))
    out = capsys.readouterr().out
    first, *rest = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()
    assert "\x1b[32m" in out
    assert first.startswith("ok   name: word")
    assert rest
    assert all(line.startswith("     word") and len(line) <= 40 for line in rest)


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("a[bold]b[/bold]", "a[bold]b[/bold]"),
        (":smile:", ":smile:"),
        ("two\nlines", "two\\nlines"),
    ],
)
def test_output_name_of_an_upstream_is_only_text(
    capsys: Capture, cell: str, shown: str
) -> None:
    say_table("model", rows=[(cell,)])
    assert capsys.readouterr().out.splitlines()[1].rstrip() == shown


class Terminal(io.StringIO):
    """Input or output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_remark_is_broken_between_words_and_no_command_is(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    commands = ("serve --upstream ollama", "connect vscode --start", "explain x")
    first, second, third = (f"byok {words}" for words in commands)
    remark = (
        "  No model answers here, and no browser reaches byok if its port is closed. "
        f"Run {first}, or let this do it: {second}. More: {third}"
    )
    tell(remark)
    lines = shown.getvalue().splitlines()
    assert " ".join(line.strip() for line in lines) == make_pasteable(remark).strip()
    assert all(line.startswith("  ") for line in lines)
    assert all(len(line) < columns or "/" in line for line in lines)
    for words in commands:
        assert any(words in line for line in lines)
    # A sentence about byok is none, so the first line is filled.
    assert columns > 60 or columns - len(lines[0]) <= len("browser") + 1


@pytest.mark.parametrize(
    ("out", "err", "hidden", "shown"),
    [
        (Terminal, Terminal, False, True),
        (Terminal, Terminal, True, False),
        (io.StringIO, Terminal, False, False),
        (Terminal, io.StringIO, False, False),
    ],
)
def test_progress_is_shown_in_a_terminal_only(
    out: type[io.StringIO],
    err: type[io.StringIO],
    hidden: bool,
    shown: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stdout", out())
    monkeypatch.setattr(sys, "stderr", drawn := err())
    with show_progress("reading", hidden=hidden, after=0) as progress:
        progress.update("writing", done=1, total=4, detail="617 of 1,234 files")
        end = time.monotonic() + (PATIENCE if shown else 0.1)
        while "617 of 1,234" not in drawn.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert ("writing" in drawn.getvalue()) is shown
    assert ("617 of 1,234 files" in drawn.getvalue()) is shown


def test_a_person_may_take_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("\n\n no\n mine \n"))
    asker = Asker(is_person=True)
    assert asker.confirm("Yes?") is True
    assert asker.text("Which?", "1") == "1"
    assert asker.confirm("Yes?") is False
    assert asker.text("Which?", "1") == "mine"


def test_yes_takes_what_is_proposed_and_nothing_else() -> None:
    asker = Asker(takes_best=True)
    assert asker.confirm("Sure?") is True
    assert asker.confirm("Sure?", default=False) is False
    assert asker.text("Which?", "1") == "1"
    with pytest.raises(ConfigError, match="Which"):
        asker.text("Which?", "")
    with pytest.raises(ConfigError, match="Key"):
        asker.secret("Key?")


@pytest.mark.parametrize("ask", ["confirm", "text", "secret"])
def test_nobody_answers_nothing(ask: str) -> None:
    asker = Asker("byok init --yes")
    arguments = ("Which?", "1") if ask == "text" else ("Which?",)
    with pytest.raises(ConfigError, match="Which") as caught:
        getattr(asker, ask)(*arguments)
    assert caught.value.hint == "In a script: byok init --yes"


def test_only_yes_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\nn\n\n"))
    confirm("Sure?", "byok embed clear", yes=False)
    for _ in range(2):
        with pytest.raises(typer.Exit) as left:
            confirm("Sure?", "byok embed clear", yes=False)
        assert left.value.exit_code == 1
    assert capsys.readouterr().out.strip() == ""  # questions are no part of the result
