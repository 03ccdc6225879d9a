"""The journal of a real daemon: what clients asked, after restarts and kills."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from byok.features.journal.requests import last_entries
from tests.fakes.daemon import running_on_file
from tests.fakes.disk import fill, mounted
from tests.fakes.journal_entries import rows_of
from tests.fakes.patience import until
from tests.fakes.program import (
    COUNTED,
    PRICES,
    Program,
    configure,
    hang_up,
    run_byok,
    serving,
)
from tests.fakes.raw import RawAnswer
from tests.fakes.upstream import FakeUpstream, Script, answer, delta

SECRET = "sk-0123456789abcdefghijklmnop"
CANARY = "canary-in-the-message"


async def ask(program: Program, target: str, **body: object) -> RawAnswer:
    return await program.post(target, **{"message": CANARY, **body})


def byok(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_byok(*arguments, env={"BYOK_HOME": str(home)})


def shown(home: Path) -> list[dict[str, Any]]:
    done = byok(home, "log", "--json", "--all")
    assert (done.returncode, done.stderr) == (0, "")
    told: list[dict[str, Any]] = json.loads(done.stdout)
    return told


async def test_journal_shows_what_became_of_each_request(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url, PRICES)
    async with serving(home) as program:
        fake.play([delta(content="Hi."), delta("stop"), COUNTED])
        asked = {"conversation_id": "one", "model": f"byok:fake:{SECRET}"}
        await ask(program, "/chat-stream", **asked)
        await ask(program, "/chat-stream", conversation_id="one")
        fake.play(Script([b'{"error": {"message": "no"}}'], status=401))
        await ask(program, "/chat-stream", conversation_id="two")
        await hang_up(program, fake, "two")
        fake.play(answer("return 1"))
        await ask(program, "/completion", prompt="def f():\n", path="/secret/dir/a.py")
        await ask(program, "/find-missing")
        await program.ended(signal.SIGTERM)
    everything = shown(home)
    rows = everything[:5]
    wrong, good, refused, cancelled, _ = rows
    ends = [(row["purpose"], row["outcome"], row["conversation"]) for row in rows]
    assert ends == [
        ("chat", "ok", "one"),
        ("chat", "ok", "one"),
        ("chat", "failed", "two"),
        ("chat", "cancelled", "two"),
        ("completion", "ok", ""),
    ]
    assert (good["model"], good["upstream"], good["attempts"]) == ("m", "fake", 1)
    assert (good["input_tokens"], good["output_tokens"]) == (1000, 9)
    assert good["cost"] == (1000 * 2 + 9 * 10) / 1_000_000
    assert 0 < good["first_byte"] <= good["seconds"]
    assert wrong["model_asked"] == "byok:fake:[redacted]"
    assert wrong["cost"] == 0  # on this machine, and without a price
    assert (refused["error"], refused["error_class"]) == (
        "upstream_auth",
        "UpstreamRefused",
    )
    assert (cancelled["status"], cancelled["cost"]) == (499, None)
    assert [row["endpoint"] for row in everything][5:] == ["/find-missing"]
    total = json.loads(byok(home, "usage", "--json").stdout)["total"]
    assert (total["requests"], total["failed"], total["unpriced"]) == (5, 1, 2)
    journal = home / "state" / "journal.db"
    if os.name == "posix":
        assert journal.stat().st_mode & 0o777 == 0o600
    kept = journal.read_bytes()
    for word in (CANARY, SECRET, "/secret/dir", "def f()", "Hi.", "return 1"):
        assert word.encode() not in kept


@pytest.mark.case("F60")
async def test_journal_survives_a_kill_in_the_middle(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url)
    journal = home / "state" / "journal.db"
    async with serving(home) as program:
        await ask(program, "/chat-stream", conversation_id="written")
        await until(lambda: bool(last_entries(journal, 1)))
        await hang_up(program, fake, "two")
        program.process.kill()
        await program.process.wait()
    assert rows_of(journal, "conversation")[0] == ("written",)
    fake.play(answer("Hi."))
    async with serving(home) as program:
        await ask(program, "/chat-stream", conversation_id="after")
        await program.ended(signal.SIGTERM)
    rows = rows_of(journal, "conversation")
    assert (rows[0], rows[-1]) == (("written",), ("after",))
    assert not list(journal.parent.glob("*damaged*"))


@pytest.mark.case("F60")
async def test_journal_that_cannot_be_used_changes_no_answer(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url)
    journal = home / "state" / "journal.db"
    journal.parent.mkdir(mode=0o700)
    (home / "state" / "daemon.lock").touch()
    journal.write_bytes(b"what somebody left here" * 500)
    async with serving(home) as program:
        await program.check_well()
        await program.ended(signal.SIGTERM)
        assert program.err.count(b"cannot be used") == 1
    aside = journal.with_name("journal.db.damaged-1")
    assert aside.read_bytes() == b"what somebody left here" * 500
    assert len(rows_of(journal, "id")) == 1


@pytest.mark.case("F60")
async def test_journal_of_a_full_disk_is_no_reason_to_fail(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    with mounted(tmp_path / "small", "16m") as home:
        configure(home, fake.url)
        async with serving(home) as program:
            await program.check_well()
            fill(home / "filler")
            for _ in range(10):
                await program.check_well()
            (home / "filler").unlink()
            await program.check_well()
            code, _, err = await program.ended(signal.SIGTERM)
        assert code == 0
        assert err.count(b"WARNING byok.storage.database") <= 1
        assert rows_of(home / "state" / "journal.db", "id")


async def test_journal_can_be_switched_off_while_the_daemon_runs(
    clean_environment: Path, fake: FakeUpstream
) -> None:
    journal = clean_environment / "state" / "journal.db"
    configure(clean_environment, fake.url, "[journal]\nkeep_days = 0\n")
    async with running_on_file() as editor:
        await editor.chat()
        assert not journal.exists()
        configure(clean_environment, fake.url, "[journal]\nkeep_days = 1\n")
        assert (await editor.post("/byok/reload")).status == 200
        await editor.chat()
    assert len(rows_of(journal, "id")) == 1
