"""All tasks of tools.trials through a daemon: with models that follow, and others."""

import asyncio
import difflib
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.core.redact import Redactor
from byok.settings import load_settings
from tests.fakes.program import configure
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    event,
    refusal,
    tool_answer,
)
from tools.trials.__main__ import TrialRow, main, try_model
from tools.trials.agent import TrialLimits, WrongCall
from tools.trials.daemon import OVERRIDES, Trial, open_trial
from tools.trials.judge import NotParsed, find_meaning
from tools.trials.tasks import all_tasks, choose_tasks

# A model that does what the agent's system message says, word by word, and no more.
#
# It knows what each task wants, but works only as it is told to: it searches, views and
# edits if a tool for that is named in the system message; else it prints the file. It
# keeps nothing: what it has done stands in the conversation that it is sent.


SEARCH, VIEW = "codebase-retrieval", "view"
EDIT, SAVE = "str-replace-editor", "save-file"
_LINE = re.compile(r"^ *\d+\t(.*)$", re.MULTILINE)
Call = tuple[str, dict[str, Any]]


class Habit(StrEnum):
    """What it does besides, or instead."""

    NONE = "none"
    PRINTS_FILES = "prints files"
    LEAVES_OUT = "leaves out arguments"
    REPEATS = "makes each call twice"
    NEVER_STOPS = "never stops"
    REFUSES = "answers with an HTTP error"
    ESCAPES = "answers with terminal escapes"


class LiteralAgent:
    """Answers chat/completions of byok's trials."""

    def __init__(self, habit: Habit = Habit.NONE) -> None:
        self._habit = habit

    def serve(self, fake: FakeUpstream) -> None:
        """Let an upstream answer as this model."""
        fake.reply = self.reply

    def reply(self, body: dict[str, Any]) -> Script:
        """Return the answer to a request."""
        talk = _Talk(body["messages"])
        return (
            self._misbehave(body)
            or self._stray(talk, body)
            or self._work(talk, body, prints=self._habit is Habit.PRINTS_FILES)
        )

    def _misbehave(self, body: dict[str, Any]) -> Script | None:
        """Return what it answers to everything, if its habit is so bad."""
        match self._habit:
            case Habit.REFUSES:
                return refusal(401, "This key is not valid.")
            case Habit.NEVER_STOPS:
                return _call(VIEW, {"path": ".", "type": "directory"}, body)
            case Habit.ESCAPES:
                return Script(answer("\x1b[2J\x1b]0;owned\x07 \u202e invoice.py"))
            case _:
                return None

    def _stray(self, talk: "_Talk", body: dict[str, Any]) -> Script | None:
        """Return a call that it makes besides, if it is time for that."""
        if self._habit is Habit.LEAVES_OUT and not talk.calls:
            return _call(VIEW, {"type": "file"}, body)
        if self._habit is Habit.REPEATS and talk.calls and talk.is_new(talk.calls[-1]):
            return _call(*talk.calls[-1], body)
        return None

    def _work(self, talk: "_Talk", body: dict[str, Any], *, prints: bool) -> Script:
        """Return the next call, or the last words."""
        for name, arguments in talk.next_calls():
            return _call(name, arguments, body)
        text = talk.last_words()
        if prints:
            text += "".join(map(_printed, talk.task.before.values()))
        return Script([*answer(text)[:-1], _usage(body), DONE])


class _Talk:
    """A conversation: the task, what the model is told, and what it has done."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.told: str = messages[0]["content"]
        assert messages[0]["role"] == "system"
        said = [str(m["content"]) for m in messages if m["role"] == "user"]
        [self.task] = [t for t in all_tasks() if any(t.question in s for s in said)]
        made = [call for m in messages for call in m.get("tool_calls") or ()]
        self.calls: list[Call] = [
            (one["function"]["name"], json.loads(one["function"]["arguments"]))
            for one in made
        ]
        results = [m["content"] for m in messages if m["role"] == "tool"]
        self.results = dict(zip([one["id"] for one in made], results, strict=False))
        self.texts = [*zip(self.calls, results, strict=False)]

    def may(self, tool: str) -> bool:
        return f"`{tool}`" in self.told

    def is_new(self, call: Call) -> bool:
        """Whether a call was made once so far."""
        return self.calls.count(call) == 1

    def next_calls(self) -> Iterator[Call]:
        """Give the calls that are left, in the order in which it was told to work."""
        if self.may(SEARCH):
            yield from self._once(SEARCH, {"information_request": self.task.question})
        for path in self._paths():
            if self.may(VIEW):
                yield from self._once(VIEW, {"path": path, "type": "file"})
        for path, wanted in self.task.wanted.items():
            if path not in self.task.before:
                if self.may(SAVE):
                    new = {"path": path, "file_content": wanted[0]}
                    yield from self._once(SAVE, new)
            elif self.may(EDIT) and not self._is_edited(path):
                yield EDIT, _edit(path, self._seen(path), wanted[0])

    def last_words(self) -> str:
        """Say what was done; print what could not be edited."""
        words = [group[0] for group in self.task.answer]
        for path, wanted in self.task.wanted.items():
            tool = EDIT if path in self.task.before else SAVE
            if self.may(tool):
                words.append(f"I changed {path}.")
            else:
                words.append(_printed(wanted[0]))
        return "\n".join(words)

    def _paths(self) -> Iterator[str]:
        """Give the files to look at: those to be changed, and those that are named."""
        yield from (path for path in self.task.wanted if path in self.task.before)
        yield from re.findall(r"[\w/]+\.py", self.task.question)[:1]

    def _once(self, name: str, arguments: dict[str, Any]) -> Iterator[Call]:
        if (name, arguments) not in self.calls:
            yield name, arguments

    def _is_edited(self, path: str) -> bool:
        return any(n == EDIT and a["path"] == path for n, a in self.calls)

    def _seen(self, path: str) -> str:
        """Return a file as it was shown, "" if it was not."""
        for (name, arguments), result in self.texts:
            if name == VIEW and arguments.get("path") == path:
                return "".join(f"{line}\n" for line in _LINE.findall(result))
        return ""


def _edit(path: str, before: str, after: str) -> dict[str, Any]:
    """Return one replacement of all lines that differ."""
    old, new = before.splitlines(), after.splitlines()
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    first, last = (changed[0][1], changed[-1][2]) if changed else (0, 0)
    start, end = (changed[0][3], changed[-1][4]) if changed else (0, 0)
    if first == last and first:  # an insertion: it needs a line to stand behind
        first, start = first - 1, start - 1
    return {
        "command": "str_replace",
        "path": path,
        "old_str_1": "\n".join(old[first:last]),
        "new_str_1": "\n".join(new[start:end]),
        "old_str_start_line_number_1": first + 1,
        "old_str_end_line_number_1": last,
    }


def _printed(text: str) -> str:
    return f"\n```\n{text}```\n"


def _call(name: str, arguments: dict[str, Any], body: dict[str, Any]) -> Script:
    number = sum(len(m.get("tool_calls") or ()) for m in body["messages"])
    made = tool_answer(name, json.dumps(arguments), f"call_{number}")
    return Script([*made[:-1], _usage(body), DONE])


def _usage(body: dict[str, Any]) -> bytes:
    tokens = {"prompt_tokens": len(json.dumps(body)) // 4, "completion_tokens": 20}
    return event({"choices": [], "usage": tokens})


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
