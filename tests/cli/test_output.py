"""Text for people, JSON for scripts, errors with their cure."""

import json
import re
import sys

import pytest

from byok.cli.output import (
    count_noun,
    fail,
    say,
    say_json,
    say_json_line,
    say_styled,
    say_table,
    say_text,
    tell,
)
from byok.core.errors import ByokError, ConfigError

Capture = pytest.CaptureFixture[str]


def test_output_has_results_on_stdout_and_remarks_on_stderr(capsys: Capture) -> None:
    say("result")
    tell("remark")
    assert capsys.readouterr() == ("result\n", "remark\n")


def test_output_json_is_readable_and_unescaped(capsys: Capture) -> None:
    say_json({"name": "é", "n": [1]})
    out = capsys.readouterr().out
    assert json.loads(out) == {"name": "é", "n": [1]}
    assert '  "name": "é"' in out


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


def test_output_text_keeps_its_lines_and_tabs(capsys: Capture) -> None:
    say_text(f"1\tone\n2\t{ODD}")
    assert capsys.readouterr().out == f"1\tone\n2\t{SHOWN}\n"


@pytest.mark.case("B117")
def test_output_json_escapes_keep_its_value(capsys: Capture) -> None:
    say_json({"path": ODD, "n": [1]})
    out = capsys.readouterr().out
    assert json.loads(out) == {"path": ODD, "n": [1]}
    assert out.replace("\n", "").isascii()
    assert out.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ByokError("It broke.", code="port"), "byok: It broke.\n{port}"),
        (ConfigError("No.", hint="Do."), "byok: No.\n  Do.\n{config}"),
        (ConfigError("One.\nTwo."), "byok: One.\nTwo.\n{config}"),
    ],
)
def test_output_of_an_error_has_a_hint_and_the_code(
    capsys: Capture, error: ByokError, text: str
) -> None:
    fail(error)
    more = "  More: byok explain {}\n".format
    told = text.format(port=more("port"), config=more("config"))
    assert capsys.readouterr() == ("", told)


def test_output_table_in_a_pipe_has_one_line_a_row(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    say_table("upstream", "model", rows=[("box", "m" * 300), ("other", "n")])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["upstream", "model"], ["box", "m" * 300], ["other", "n"]]


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


def test_output_json_of_a_stream_is_one_line_a_value(capsys: Capture) -> None:
    say_json_line({"name": "a\nb\u202e"})
    out = capsys.readouterr().out
    assert out == '{"name":"a\\nb\\u202e"}\n'


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


def test_output_in_styles_is_plain_in_a_pipe(capsys: Capture) -> None:
    long = "word " * 400
    say_styled(("ok   ", "green"), ("a [bold]name\x1b[2J", "bold"), (f": {long}", ""))
    out = capsys.readouterr().out
    assert out == f"ok   a [bold]name\\x1b[2J: {long}\n"


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
    ("number", "told"), [(0, "0 names"), (1, "1 name"), (2000, "2,000 names")]
)
def test_output_number_has_its_noun(number: int, told: str) -> None:
    assert count_noun(number, "name") == told


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("a[bold]b[/bold]", "a[bold]b[/bold]"),
        ("x[/nonsense]", "x[/nonsense]"),
        (":smile:", ":smile:"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("two\nlines", "two\\nlines"),
        ("bell\x07", "bell\\x07"),
        ("\u202eback", "\\u202eback"),
    ],
    ids=ascii,
)
def test_output_name_of_an_upstream_is_only_text(
    capsys: Capture, cell: str, shown: str
) -> None:
    say_table("model", rows=[(cell,)])
    assert capsys.readouterr().out.splitlines()[1].rstrip() == shown
