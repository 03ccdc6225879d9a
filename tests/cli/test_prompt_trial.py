"""byok prompts try: a table of models, and nothing left behind."""

import asyncio
import json
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.fakes.commands import Cli
from tests.fakes.literal_agent import Habit, LiteralAgent
from tests.fakes.patience import PATIENCE
from tests.fakes.process import KEY, configure
from tests.fakes.program import ROOT
from tests.fakes.upstream import FakeUpstream

TRY = ("prompts", "try", "agent")
RENAME, QUESTION = ("--task", "rename"), ("--task", "question")


@pytest.fixture
def home(
    fake: FakeUpstream,
    clean_environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """The user's home with one upstream; temporary files have a folder of their own."""
    configure(clean_environment, fake.url)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return clean_environment


@pytest.fixture
def left(home: Path, tmp_path: Path) -> Path:
    """What temporary files are in."""
    assert home.is_dir()
    return tmp_path / "temporary"


async def test_a_trial_prints_a_table_and_leaves_nothing(
    cli: Cli, fake: FakeUpstream, home: Path, left: Path
) -> None:
    LiteralAgent().serve(fake)
    done = await asyncio.to_thread(cli, *TRY, *RENAME, *QUESTION)
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].split()[:3] == ["model", "solved", "steps"]
    assert done.out.splitlines()[1].split()[:4] == ["byok:fake:m", "2", "of", "2"]
    assert "did not solve" not in done.out
    assert "  2/2 question: solved (" in done.err
    assert [path.name for path in home.iterdir()] == ["config.toml"]
    assert [*left.iterdir()] == []


@pytest.mark.usefixtures("home")
async def test_folders_of_prompts_are_compared(
    cli: Cli, fake: FakeUpstream, tmp_path: Path
) -> None:
    LiteralAgent().serve(fake)
    folders = [tmp_path / name for name in ("shipped", "poor")]
    for folder in folders:
        folder.mkdir()
    (folders[1] / "agent.md").write_text("You help with code.")
    options = [x for folder in folders for x in ("--prompts", folder)]
    done = await asyncio.to_thread(cli, *TRY, *RENAME, *options, "--json")
    rows = json.loads(done.out)["rows"]
    assert [row["prompts"] for row in rows] == [str(folder) for folder in folders]
    assert [row["solved"] for row in rows] == [1, 0]
    assert [row["tasks"][0]["files_printed"] > 0 for row in rows] == [False, True]
    assert rows[1]["tasks"][0]["prompt"].startswith("own agent@")
    shown = await asyncio.to_thread(cli, *TRY, *RENAME, *options)
    assert "1 of 1" in shown.out
    assert f"byok:fake:m with {folders[1]} did not solve:" in shown.out


@pytest.mark.usefixtures("home")
async def test_several_models_have_a_row_each(cli: Cli, fake: FakeUpstream) -> None:
    LiteralAgent().serve(fake)
    models = ("--model", "byok:fake:one", "-m", "byok:fake:two")
    done = await asyncio.to_thread(cli, *TRY, *QUESTION, *models, "--json")
    rows = json.loads(done.out)["rows"]
    assert [row["model"] for row in rows] == ["byok:fake:one", "byok:fake:two"]
    assert {request["model"] for request in fake.requests} == {"one", "two"}


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
async def test_what_a_hostile_model_says_never_reaches_the_terminal(
    cli: Cli, fake: FakeUpstream, left: Path, form: list[str]
) -> None:
    LiteralAgent(Habit.ESCAPES).serve(fake)
    done = await asyncio.to_thread(cli, *TRY, "-t", "missing-file", *form)
    assert done.code == 0
    assert not any(char in done.out + done.err for char in "\x1b\x07\u202e")
    assert [*left.iterdir()] == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--task", "no-such"], "There is no task 'no-such'"),
        (["--model", "no-such"], "There is no model 'no-such'"),
        (["--model", "byok:nowhere:m"], "nowhere"),
        (["--prompts", "no-such-folder"], "no-such-folder is no folder"),
        (["--config", "no-such.toml"], "no-such.toml does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_what_cannot_be_tried_is_told(
    cli: Cli, fake: FakeUpstream, left: Path, arguments: list[str], why: str
) -> None:
    done = await asyncio.to_thread(cli, *TRY, *arguments)
    assert why in done.err
    assert done.code != 0
    assert fake.requests == []
    assert [*left.iterdir()] == []


async def test_only_the_agent_can_be_tried(cli: Cli) -> None:
    done = await asyncio.to_thread(cli, "prompts", "try", "chat")
    assert done.code == 78
    assert "byok prompts try agent" in done.err


@pytest.mark.usefixtures("home")
async def test_a_trial_without_one_answer_fails(cli: Cli, fake: FakeUpstream) -> None:
    LiteralAgent(Habit.REFUSES).serve(fake)
    done = await asyncio.to_thread(cli, *TRY)
    assert done.code == 1
    assert "0 of 10" in done.out
    assert "not asked, after: upstream_auth" in done.out


async def test_models_elsewhere_are_asked_only_with_leave(
    cli: Cli, clean_environment: Path
) -> None:
    configure(clean_environment, "https://models.invalid/v1")
    done = await asyncio.to_thread(cli, *TRY, *RENAME, "--steps", "7")
    assert done.code == 78
    assert "byok:fake:m with at most 7 requests" in done.err
    assert "--yes" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
async def test_a_trial_that_is_interrupted_ends_cleanly(
    fake: FakeUpstream, home: Path, left: Path, number: signal.Signals, code: int
) -> None:
    LiteralAgent(Habit.HANGS).serve(fake)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "byok", *TRY),
        env={"BYOK_HOME": str(home), "TMPDIR": str(left), "BYOK_KEY_FAKE": KEY},
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await asyncio.wait_for(fake.reached.wait(), PATIENCE)
    assert len([*left.iterdir()]) == 1
    process.send_signal(number)
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == code, err
    assert b"0 of 0" in out
    assert b"interrupted" in err
    assert b"Traceback" not in err
    assert [*left.iterdir()] == []
