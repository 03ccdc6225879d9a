"""A model that does what the agent's system message says, word by word, and no more.

It knows what each task wants, but works only as it is told to: it searches, views and
edits if a tool for that is named in the system message; else it prints the file. It
keeps nothing: what it has done stands in the conversation that it is sent.
"""

import difflib
import json
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    event,
    refusal,
    tool_answer,
)
from tools.trials.tasks import all_tasks

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
