"""All tasks through a daemon: with a model that follows, and some that do not."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from byok.config import load_settings
from byok.errors import ConfigError
from byok.platform.paths import find_paths
from byok.redact import Redactor
from byok.trials.agent_loop import TrialLimits
from byok.trials.outcome import TrialOutcome, TrialRow, WrongCall
from byok.trials.run import choose_models, try_model
from byok.trials.tasks import all_tasks, choose_tasks
from byok.trials.trial_daemon import OVERRIDES, Trial, open_trial
from tests.fakes.literal_agent import Habit, LiteralAgent
from tests.fakes.process import configure
from tests.fakes.upstream import FakeUpstream, Script, answer, tool_answer

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
    outcomes: list[TrialOutcome] = []
    tasks = choose_tasks(names)
    await try_model(
        trial.client, model, tasks, TrialLimits(**limits), on_end=outcomes.append
    )
    assert [one.task for one in outcomes] == [task.name for task in tasks]
    return TrialRow(MODEL, "", outcomes)


@pytest.mark.parametrize(
    ("model", "prompt"),
    [("m", "agent"), ("tiny-4b", "agent.small"), ("deepseek-r1", "agent.reasoning")],
)
async def test_a_model_that_follows_the_prompt_solves_all_tasks(
    fake: FakeUpstream, clean_environment: Path, model: str, prompt: str
) -> None:
    async with trying(fake, clean_environment) as trial:
        row = await row_of(trial, model=f"byok:fake:{model}")
    assert [(one.task, one.fault) for one in row.outcomes if one.fault] == []
    assert row.total("is_solved") == len(all_tasks()) == 10
    assert row.total("printed") == 0
    assert row.total("wrong_calls") == 1  # the file that is not there
    assert row.total("input_tokens") > 10_000
    assert {one.prompt.partition("@")[0] for one in row.outcomes} == {prompt}


async def test_a_prompt_that_names_no_tools_is_seen_in_the_numbers(
    fake: FakeUpstream, clean_environment: Path
) -> None:
    prompts = {"agent": "You help with code."}
    async with trying(fake, clean_environment, prompts=prompts) as trial:
        row = await row_of(trial, "rename", "new-module", "question")
    assert [one.is_solved for one in row.outcomes] == [False, False, True]
    assert row.total("printed") >= 4
    assert row.total("calls") == 0


@pytest.mark.parametrize(
    ("habit", "solved", "wrong"),
    [
        (Habit.PRINTS_FILES, True, {}),
        (Habit.UNKNOWN_TOOL, True, {WrongCall.UNKNOWN_TOOL: 1}),
        (Habit.LEAVES_OUT, True, {WrongCall.BROKEN_ARGUMENTS: 1}),
        (Habit.REPEATS, True, {WrongCall.REPEATED: 2, WrongCall.FAILED: 1}),
        (Habit.BROKEN_JSON, False, {WrongCall.BROKEN_ARGUMENTS: 2}),
        (Habit.NEVER_STOPS, False, {WrongCall.REPEATED: 9}),
        (Habit.HUGE, False, {}),
        (Habit.REFUSES, False, {}),
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
    assert [one.asked for one in row.outcomes] == [True, True, *[False] * 8]
    assert all("401" in one.fault for one in row.outcomes)
    assert len(fake.requests) == 2


async def test_a_model_that_hangs_is_left_and_its_request_ended(
    fake: FakeUpstream, clean_environment: Path
) -> None:
    async with trying(fake, clean_environment, Habit.HANGS) as trial:
        row = await row_of(trial, "rename", seconds=0.5)
        await fake.hung_up.wait()
    assert row.outcomes[0].fault == "it was not done after 0.5 seconds"


async def test_models_are_chosen_as_clients_name_them(
    fake: FakeUpstream, clean_environment: Path
) -> None:
    fake.models = ["m", "n"]
    async with trying(fake, clean_environment) as trial:
        router = trial.services.router
        assert await choose_models(router, []) == [MODEL]
        assert await choose_models(router, ["n", MODEL, "n", "byok:fake:new"]) == [
            *("byok:fake:n", MODEL, "byok:fake:new")
        ]
        with pytest.raises(ConfigError, match="'no-such'"):
            await choose_models(router, ["no-such"])


def deep(levels: int) -> str:
    return '{"path": ' + '{"a": ' * levels + "1" + "}" * levels + ', "type": "file"}'


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("view", {"path": "../../../../../../etc/passwd", "type": "file"}),
        ("view", {"path": "/etc/passwd", "type": "file"}),
        ("view", {"path": "/proc/self/cwd/pyproject.toml", "type": "file"}),
        ("view", {"path": "text/layout.py\0.txt", "type": "file"}),
        ("view", {"path": "text/\x1b[2Jlayout.py", "type": "file"}),
        ("save-file", {"path": "{outside}", "file_content": "x"}),
        ("save-file", {"path": "../../..{outside}", "file_content": "x"}),
        ("save-file", {"path": "text", "file_content": "x"}),
        ("save-file", {"path": "big.py", "file_content": "x" * 100_000}),
        ("save-file", {"path": "big.py", "file_content": "x" * 3_000_000}),
        ("save-file", {"path": "big.py", "file_content": "x" * 10_000_000}),
        ("save-file", {"path": "p" * 100_000, "file_content": "x"}),
        ("view", deep(100)),
        ("view", deep(100_000)),
        ("view", '{"path": 1e999, "type": "file"}'),
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


async def test_code_that_breaks_parsers_is_judged(
    fake: FakeUpstream, clean_environment: Path
) -> None:
    edit = {
        "command": "str_replace",
        "path": "report/monthly.py",
        "old_str_1": "from report.months import days_in_month\n",
        "new_str_1": "x = " + "(" * 20_000 + ")" * 20_000 + "\n",
    }
    call = tool_answer("str-replace-editor", json.dumps(edit))
    async with trying(fake, clean_environment) as trial:
        fake.reply = None
        fake.play(Script(call), Script(answer("Done.")))
        row = await row_of(trial, "off-by-one")
    assert row.outcomes[0].fault == "report/monthly.py cannot be parsed any more"
