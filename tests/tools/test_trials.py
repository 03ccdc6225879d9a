"""All tasks of tools.trials through a daemon: with models that follow, and others."""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.core.redact import Redactor
from byok.settings import load_settings
from tests.fakes.literal_agent import Habit, LiteralAgent
from tests.fakes.program import configure
from tests.fakes.upstream import FakeUpstream, Script, answer, tool_answer
from tools.trials.__main__ import TrialRow, main, try_model
from tools.trials.agent import TrialLimits, WrongCall
from tools.trials.daemon import OVERRIDES, Trial, open_trial
from tools.trials.judge import NotParsed, find_meaning
from tools.trials.tasks import all_tasks, choose_tasks

pytestmark = pytest.mark.slow
MODEL = "byok:fake:m"


@asynccontextmanager
async def trying(
    fake: FakeUpstream,
    home: Path,
    habit: Habit = Habit.NONE,
    prompts: Mapping[str, str] | None = None,
) -> AsyncIterator[Trial]:
    """A trial with a model of this habit, and with own prompts."""
    LiteralAgent(habit).serve(fake)
    configure(home, fake.url)
    paths = find_paths()
    for name, text in (prompts or {}).items():
        paths.prompts.mkdir(exist_ok=True)
        (paths.prompts / f"{name}.md").write_text(text)
    settings = load_settings(paths.config, OVERRIDES)
    async with open_trial(settings, paths, Redactor()) as trial:
        yield trial


async def row_of(
    trial: Trial, *names: str, model: str = MODEL, **limits: Any
) -> TrialRow:
    row, tasks = TrialRow(model, "", []), choose_tasks(names)
    await try_model(trial.client, row, tasks, TrialLimits(**limits))
    assert [one.task for one in row.outcomes] == [task.name for task in tasks]
    return row


async def test_a_model_that_follows_the_prompt_solves_all_tasks(
    fake: FakeUpstream, clean_environment: Path
) -> None:
    model = "m"
    async with trying(fake, clean_environment) as trial:
        row = await row_of(trial, model=f"byok:fake:{model}")
    assert [(one.task, one.fault) for one in row.outcomes if one.fault] == []
    assert row.total("is_solved") == len(all_tasks()) == 10
    assert row.total("printed") == 0
    assert row.total("wrong_calls") == 1  # the file that is not there
    assert row.total("input_tokens") > 10_000
    assert {one.prompt.partition("@")[0] for one in row.outcomes} == {"agent"}


@pytest.mark.parametrize(
    ("habit", "solved", "wrong"),
    [
        (Habit.PRINTS_FILES, True, {}),
        (Habit.LEAVES_OUT, True, {WrongCall.BROKEN_ARGUMENTS: 1}),
        (Habit.REPEATS, True, {WrongCall.REPEATED: 2, WrongCall.FAILED: 1}),
        (Habit.NEVER_STOPS, False, {WrongCall.REPEATED: 9}),
        (Habit.ESCAPES, False, {}),
    ],
)
async def test_the_row_tells_what_a_model_does(
    fake: FakeUpstream,
    clean_environment: Path,
    habit: Habit,
    solved: bool,
    wrong: dict[WrongCall, int],
) -> None:
    async with trying(fake, clean_environment, habit) as trial:
        row = await row_of(trial, "dead-code", steps=10)
    [outcome] = row.outcomes
    assert (outcome.is_solved, outcome.wrong) == (solved, wrong)
    assert outcome.printed == (3 if habit is Habit.PRINTS_FILES else 0)


async def test_a_model_that_cannot_be_asked_is_given_up(
    fake: FakeUpstream, clean_environment: Path
) -> None:
    async with trying(fake, clean_environment, Habit.REFUSES) as trial:
        row = await row_of(trial)
    assert [one.steps for one in row.outcomes] == [1, 1, *[0] * 8]
    assert all("401" in one.fault for one in row.outcomes)
    assert len(fake.requests) == 2


def deep(levels: int) -> str:
    return '{"path": ' + '{"a": ' * levels + "1" + "}" * levels + ', "type": "file"}'


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("view", {"path": "/etc/passwd", "type": "file"}),
        ("save-file", {"path": "{outside}", "file_content": "x"}),
        ("save-file", {"path": "text", "file_content": "x"}),
        ("save-file", {"path": "big.py", "file_content": "x" * 10_000_000}),
        ("view", deep(100_000)),
    ],
    ids=lambda value: repr(value)[:50],
)
async def test_a_hostile_call_reaches_nothing(
    fake: FakeUpstream,
    clean_environment: Path,
    tmp_path: Path,
    tool: str,
    arguments: dict[str, str] | str,
) -> None:
    outside = tmp_path / "outside.py"
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = tool_answer(tool, raw.replace("{outside}", str(outside)))
    async with trying(fake, clean_environment) as trial:
        fake.reply = None
        fake.play(Script(call), Script(call), Script(answer("Done.")))
        row = await row_of(trial, "dead-code", steps=4, seconds=30)
    [outcome] = row.outcomes
    assert outcome.wrong_calls >= 1 or "too_large" in outcome.fault
    assert not outcome.is_solved
    told = "".join(json.dumps(request["messages"]) for request in fake.requests)
    assert "root:x:0" not in told
    assert "requires-python" not in told
    assert not outside.exists()


BASE = "import a\nfrom b import c, d\n\n\ndef f(x, y=1):\n    return x + y\n"


@pytest.mark.parametrize(
    "text",
    [
        "from b import d, c\nimport a\ndef f(x,y=1): return (x+y) # sum",
        '"""Doc."""\n' + BASE,
        BASE.replace("(x, y=1)", "(x: int, y: int = 1) -> int"),
    ],
    ids=["layout", "docstring", "annotations"],
)
def test_python_of_another_layout_means_the_same(text: str) -> None:
    assert find_meaning("a.py", text) == find_meaning("a.py", BASE)


@pytest.mark.parametrize(
    "text",
    [
        BASE.replace("y=1", "y=2"),
        BASE.replace("(x, y=1)", "(x, *, y=1)"),
        BASE.replace("import a\n", ""),
    ],
)
def test_python_that_does_something_else_differs(text: str) -> None:
    assert find_meaning("a.py", text) != find_meaning("a.py", BASE)


@pytest.mark.parametrize(
    ("path", "one", "other", "same"),
    [
        ("a.json", '{"a": 1, "b": [1, 2]}', '{\n"b":[1,2],"a":1}', True),
        ("a.json", '{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ("a.toml", "a = 1 # one\n[t]\nb = 2", "a=1\nt.b = 2", True),
    ],
)
def test_other_files_are_compared_by_what_they_hold(
    path: str, one: str, other: str, same: bool
) -> None:
    assert (find_meaning(path, one) == find_meaning(path, other)) is same


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "def f(:"),
        ("a.py", "x = " + "[" * 61 + "]" * 61),
        ("a.py", "#" * 10_000_000),
        ("a.toml", "a = 1\na = 2"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_what_is_broken_large_or_deep_is_not_parsed(path: str, text: str) -> None:
    with pytest.raises(NotParsed):
        find_meaning(path, text)


async def test_the_program_compares_folders_of_prompts_and_leaves_nothing(
    fake: FakeUpstream,
    clean_environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    LiteralAgent().serve(fake)
    configure(clean_environment, fake.url)
    for name in ("temporary", "shipped", "poor"):
        (tmp_path / name).mkdir()
    (tmp_path / "poor" / "agent.md").write_text("You help with code.")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    words = ["trials", "--task", "rename"]
    words += [x for n in ("shipped", "poor") for x in ("--prompts", str(tmp_path / n))]
    monkeypatch.setattr(sys, "argv", words)
    assert await asyncio.to_thread(main) == 0
    shown = capsys.readouterr()
    rows = shown.out.splitlines()
    assert [row.split()[2:5] for row in rows[1:3]] == [
        ["1", "of", "1"],
        ["0", "of", "1"],
    ]
    assert "  1/1 rename: solved (" in shown.err
    assert [*(tmp_path / "temporary").iterdir()] == []
    assert [path.name for path in clean_environment.iterdir()] == ["config.toml"]
