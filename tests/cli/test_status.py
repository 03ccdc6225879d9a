"""byok status."""

import asyncio
import json
import os
from typing import Any

import pytest
from msgspec import to_builtins

from byok.core.platform.paths import find_paths
from byok.features.status import Meter, StatusLine
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.project import make_project
from tests.fakes.rows import daemon_rows

DAEMON = {"model": "m", "settings": {"file": "f", "error": "", "restart": []}}
ANSWERS: dict[str, Any] = {
    "/byok/daemon": DAEMON,
    "/byok/official": {"base_url": ""},
    "/byok/index/status": {"workspaces": [], "totals": {}},
}


def test_status_without_a_daemon_exits_with_3(cli: Cli) -> None:
    done = cli("status")
    assert (done.code, done.err) == (3, "")
    assert done.out == "byok is not running. Start it: byok serve\n"
    assert json.loads(cli("status", "--json").out) == {"running": False}


def test_status_shows_the_daemon_its_model_and_its_index(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = str(make_project(tmp_path_factory.mktemp("status") / "bakery"))
    with daemon_thread() as daemon:
        done = cli("status")
        assert done.code == 0
        assert f"pid {os.getpid()}, {daemon.url}, since 20" in done.out
        assert "model: byok:demo:echo\n" in done.out
        assert "nothing is indexed" in done.out
        assert "last requests" not in done.out
        assert done.out.endswith("dashboard: byok dashboard opens it in your browser\n")
        cli("index", "add", project)
        assert project in cli("status").out
        told = json.loads(cli("status", "--json").out)
    assert (told["running"], told["pid"]) == (True, os.getpid())
    assert "instance" not in told
    assert told["index"]["workspaces"][0]["phase"] == "complete"


async def test_status_reports_settings_that_are_not_in_force(cli: Cli) -> None:
    async with daemon_rows({**ANSWERS}) as rows:
        fine = await asyncio.to_thread(cli, "status")
        told = {"file": "f", "error": "f is wrong.", "restart": ["server.port"]}
        rows.answers["/byok/daemon"] = {**DAEMON, "settings": told}
        done = await asyncio.to_thread(cli, "status")
    assert "settings" not in fine.out
    assert "settings: the previous ones are still in use. f is wrong.\n" in done.out
    assert "need a restart (byok restart): server.port\n" in done.out


async def test_status_shows_what_features_tell_with_their_labels(cli: Cli) -> None:
    lost = StatusLine("3 requests could not be written", warns=True)
    cap = Meter("requests_per_day", 12, 1000)
    features = to_builtins({"caps": [cap], "capture": [], "journal": [lost]})
    told = {**DAEMON, "features": features}
    async with daemon_rows({**ANSWERS, "/byok/daemon": told}):
        done = await asyncio.to_thread(cli, "status")
    assert "cap: requests_per_day: 12 of 1,000 used\n" in done.out
    assert "journal: 3 requests could not be written\n" in done.out
    assert "capture" not in done.out


async def test_status_shows_the_official_service_and_its_failures(cli: Cli) -> None:
    told = {
        "base_url": "https://h.example",
        "groups": {"chat": "official", "edit": "official", "telemetry": "off"},
        "troubles": {"chat": "it answered 402."},
    }
    async with daemon_rows({**ANSWERS, "/byok/official": told}) as rows:
        done = await asyncio.to_thread(cli, "status")
        rows.answers["/byok/official"] = {**told, "groups": {}, "troubles": {}}
        unused = await asyncio.to_thread(cli, "status")
    lines = "official service: https://h.example, used for chat, edit\n"
    assert lines + "  chat: it answered 402.\n" in done.out
    assert "official service: https://h.example, not used\n" in unused.out


def test_status_shows_the_last_five_requests(cli: Cli) -> None:
    entries = [entry(request_id=f"r{number}") for number in range(7)]
    with daemon_thread():
        write_journal(find_paths().journal, entries)
        told = json.loads(cli("status", "--json").out)
        done = cli("status")
    assert [row["request_id"] for row in told["requests"]] == [
        *["r2", "r3", "r4", "r5", "r6"]
    ]
    assert done.out.partition("last requests (byok log):\n")[2].count("one:m") == 5
