"""byok models."""

import asyncio
import re
from datetime import date
from pathlib import Path
from typing import Any

import orjson
import pytest

from byok.cli.models import show
from byok.upstream.model_table import known_table
from tests.fakes.commands import Cli
from tests.fakes.daemon import ask_chat, daemon_thread
from tests.fakes.model_lists import GEM, models_dev
from tests.fakes.upstream import FakeUpstream


def cells(out: str) -> list[str]:
    """Return the cells of the only row."""
    _, row = out.splitlines()
    return row.split()


FREE = ("free", "(this", "machine)")


async def test_models_are_those_of_the_running_daemon_and_not_of_the_settings(
    cli: Cli, fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that was started with --upstream answers by that one."""
    fake.models = ["first"]

    def listed() -> tuple[str, str]:
        monkeypatch.setenv("BYOK_UPSTREAMS__DEMO__TYPE", "demo")
        done = cli("models")
        return done.out, done.err

    def both() -> tuple[str, str]:
        with daemon_thread(upstream=fake.url):
            before, err = listed()
            assert (before.split("\n")[1].split(), err) == (
                ["custom", "first", "default", *FREE],
                "",
            )
            fake.models = ["another"]  # what it offers now is told
            return listed()

    after, err = await asyncio.to_thread(both)
    assert (cells(after), err) == (["custom", "another", "default", *FREE], "")


def answer(**facts: Any) -> dict[str, Any]:
    """What the daemon answers about one model, which it knows from a table."""
    sources = dict.fromkeys(facts, "table") | {"window": "server's list"}
    row = {"id": "byok:a:m", "upstream": "a", "model": "m"}
    return {
        "default": "byok:a:n",
        "jobs": {"commit": "byok:a:m", "completion": "byok:a:n"},
        "models": [{**row, "facts": facts, "sources": sources}],
        "failures": {},
        "substitutes": [],
        "table": {"source": "A list 1.0", "date": "2026-01-01", "stale": True},
    }


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        (
            {
                "window": 1_048_576,
                "max_output": 8192,
                "price": {"input": 1.25, "output": 10.0, "cache_read": 0.125},
            },
            ["1.05M (list)", "8,192 (table)", "1.25 / 10 (table, old)"],
        ),
        (
            {"window": 131_072, "price": {"output": 0.0}},
            ["131k (list)", "? / 0 (table, old)"],
        ),
        ({"window": 2_000_000, "price": {"cache_read": 1.0}}, ["2M (list)"]),
    ],
)  # fmt: skip
def test_facts_stand_with_where_they_are_known_from(
    facts: dict[str, Any], shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show(answer(**facts))
    out, err = capsys.readouterr()
    (_, row) = out.splitlines()
    assert re.split(r" {2,}", row.strip()) == ["a", "m", "commits", *shown]
    assert ("A list 1.0" in err) == ("table" in row)


@pytest.mark.parametrize(
    ("day", "price", "offered"),
    [
        (date(2026, 1, 1), {"input": 2.0}, True),
        (date(2026, 1, 1), {}, True),
        (date(2026, 1, 1), {"input": 0.0, "output": 0.0}, False),
        (date.today(), {"input": 2.0}, False),
    ],
)
def test_an_old_table_offers_an_update_to_those_who_pay(
    day: date, price: Any, offered: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {"source": "A list 1.0", "date": day.isoformat(), "stale": False}
    show({**answer(price=price), "table": table})
    assert ("byok models update" in capsys.readouterr().err) == offered


def test_facts_are_updated_from_a_file_and_used_at_once(
    cli: Cli, tmp_path: Path
) -> None:
    listed = tmp_path / "api.json"
    listed.write_bytes(orjson.dumps(models_dev(gem=GEM)))
    done = cli("models", "update", "--file", listed)
    assert done.code == 0, done.err
    assert "gemini/gem" in done.out
    assert known_table().facts("gemini", "gem").window == 900_000
    assert known_table().facts("openai", "gpt-4o").window  # what byok knew stays
    listed.write_text('{"google": {"models": {}}}')
    assert cli("models", "update", "--file", listed).code == 78
    missing = cli("models", "update", "--file", tmp_path / "missing.json")
    assert (missing.code, "BYOK_HOME" in missing.err) == (78, False)
    assert known_table().facts("gemini", "gem").window == 900_000


def test_nothing_is_fetched_without_a_yes(cli: Cli) -> None:
    done = cli("models", "update")
    assert (done.code, done.out) == (78, "")
    assert "--yes" in done.err


def test_unknown_models_stand_with_who_answers_and_the_line_to_write(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = '"sonnet4.5" = "byok:a:m"'
    rows = [
        {"asked": "sonnet4.5", "model": "byok:a:m", "alias": line},
        {"asked": "a b\x1b[31m", "model": "byok:a:m", "alias": ""},
    ]
    show({**answer(), "substitutes": rows})
    err = capsys.readouterr().err
    assert line in err
    assert err.count("[routing.aliases]") == 1
    assert "\x1b" not in err


def test_models_why_shows_the_rules_in_their_order_and_the_last_choices(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOK_ROUTING__MODELS__IMAGE", "byok:demo:eyes")
    monkeypatch.setenv("BYOK_UPSTREAMS__DEMO__TYPE", "demo")
    with daemon_thread() as daemon:
        ask_chat(daemon, "Hi.")
        done = cli("models", "why")
        told = orjson.loads(cli("models", "why", "--json").out)
    rules = [line.split()[0] for line in done.out.splitlines()[1:8]]
    assert rules == [
        *("image", "long_context", "subagent", "plan"),
        *("client", "chat", "default"),
    ]
    assert "byok:demo:eyes" in done.out.splitlines()[1]
    assert "described by byok:demo:eyes" in done.out
    assert [row["rule"] for row in told["choices"]] == ["default"]
    assert "default" in done.out.splitlines()[-1]
