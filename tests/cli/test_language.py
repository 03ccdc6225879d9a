"""Commands in another language: what people read, and what scripts do."""

import json
import re
from collections.abc import Iterator

import pytest

from byok.cli.terminal import say, say_styled, say_table
from byok.core.error_table import error_rows
from byok.core.language import ENGLISH, use_language
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli

CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def english_afterwards() -> Iterator[None]:
    yield
    use_language(ENGLISH)


@pytest.mark.parametrize(
    "words",
    [
        ("--lang", "zh_CN", "explain", "upstream_auth"),
        ("explain", "upstream_auth", "--lang", "zh"),
        ("explain", "--lang", "zh", "upstream_auth"),
        ("explain", "--lang=zh", "upstream_auth"),
    ],
)
def test_an_option_chooses_the_language_wherever_it_stands(
    cli: Cli, words: tuple[str, ...]
) -> None:
    done = cli(*words)
    row = error_rows("zh")["upstream_auth"]
    assert done.code == 0
    assert done.out.startswith(f"upstream_auth: {row.what}\n")
    assert all(cure in done.out for cure in row.cures)
    assert CHINESE.search(cli("keys", "list", "--help", "--lang", "zh").out)
    assert not CHINESE.search(cli("explain", "upstream_auth").out)


def test_what_is_no_option_chooses_no_language(cli: Cli) -> None:
    assert not CHINESE.search(cli("explain", "--", "--lang", "zh").err)


def test_the_environment_chooses_the_language(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    done = cli("explain", "nothing")
    lines = done.err.splitlines()
    assert (done.code, done.out) == (1, "")
    assert len(lines) == 2
    assert all(map(CHINESE.search, lines))
    assert not CHINESE.search(cli("--lang", "en", "explain", "nothing").err)


def test_an_unknown_language_is_refused(cli: Cli) -> None:
    done = cli("--lang", "tlh", "status")
    assert done.code == 2
    assert "en, zh" in done.err


@pytest.mark.parametrize(
    "command", [["nothing"], ["log", "-n"], ["log", "--no"], ["explain", "a", "b"]]
)
def test_an_error_of_the_command_line_is_translated(
    cli: Cli, command: list[str]
) -> None:
    before = cli(*command)
    done = cli("--lang", "zh", *command)
    assert (before.code, done.code) == (2, 2)
    assert CHINESE.search(done.err)
    assert not CHINESE.search(cli(*command).err)


@pytest.mark.parametrize("command", [[], ["keys"], ["keys", "set"]])
def test_a_page_of_help_is_translated_while_it_is_shown(
    cli: Cli, command: list[str]
) -> None:
    before = cli(*command, "--help").out
    done = cli("--lang", "zh", *command, "--help").out
    options = re.compile(r"--[a-z-]+")
    assert CHINESE.search(done)
    assert "…" not in done
    assert {*options.findall(done)} == {*options.findall(before)}
    assert cli(*command, "--help").out == before


def test_json_is_the_same_in_all_languages(cli: Cli) -> None:
    told = [cli("--lang", name, "status", "--json") for name in ("en", "zh")]
    assert told[0] == told[1]
    assert json.loads(told[0].out)["running"] is False


def test_what_scripts_wait_for_stays_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    use_language("zh")
    say("byok is listening on http://127.0.0.1:8317")
    assert capsys.readouterr().out == "byok is listening on http://127.0.0.1:8317\n"


def test_lines_of_the_log_stay_as_they_are(cli: Cli) -> None:
    log = find_paths().log
    log.parent.mkdir(parents=True)
    log.write_text("/x: complete\n")
    assert cli("--lang", "zh", "service", "logs").out == "/x: complete\n"


def test_columns_of_wide_characters_are_aligned_and_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    use_language("zh")
    name, text = "模型", "用口令打开的加密文件：系统服务每次启动时都需要口令。"
    say_table("upstream", "why", rows=[(name, text), ("b", "c")])
    _, *lines = capsys.readouterr().out.splitlines()  # the heading has styles
    begins = {
        cell_len(line[: line.index(word)])
        for line, word in zip((lines[0], lines[-1]), ("用", "c"), strict=True)
    }
    assert len(begins) == 1
    assert text in "".join(line.replace(name, "").strip() for line in lines)
    assert max(map(cell_len, lines)) <= 40
    say_styled(("ok   ", ""), (text, ""))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert {cell_len(line) - cell_len(line[5:].lstrip()) for line in lines[1:]} == {5}
