"""The agent loop of one task: ask the model and run its tool calls until it stops.

The bodies of /chat-stream are as an editor's agent sends them: the texts of the user
are in nodes, and the history has the nodes of each answer.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from byok.core.chat import Json
from byok.core.wire.json_body import parse_json, write_json
from tools.trials.daemon import TrialReply
from tools.trials.judge import count_printed, find_fault
from tools.trials.tasks import TrialTask
from tools.trials.workspace import (
    ROOT,
    TOOLS,
    BadArguments,
    ToolFailed,
    TrialFiles,
    run_tool,
)

_MAX_ANSWER_CHARS = 200_000
_MAX_REPORTED_CHARS = 2000  # of the last answer
_MAX_CALLS = 32  # of one answer that are run


class WrongCall(StrEnum):
    """The kinds of wrong tool calls; each call counts once, as the first that fits."""

    UNKNOWN_TOOL = "unknown_tool"
    BROKEN_ARGUMENTS = "broken_arguments"
    REPEATED = "repeated"
    FAILED = "failed"


@dataclass(slots=True)
class TrialOutcome:
    """The result of a task; `fault` is why it is not solved, "" if it is.

    `steps` is the number of requests to the model, `answers` of those that it answered;
    `printed` counts files in its texts; `prompt` is as in RequestRecord.
    """

    task: str
    model: str
    fault: str = ""
    steps: int = 0
    answers: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    wrong: dict[WrongCall, int] = field(default_factory=dict)
    printed: int = 0
    seconds: float = 0.0
    prompt: str = ""
    answer: str = ""

    @property
    def is_solved(self) -> bool:
        """Whether the files and the answer are correct."""
        return not self.fault

    @property
    def wrong_calls(self) -> int:
        """How many calls were wrong."""
        return sum(self.wrong.values())

    def count_wrong(self, kind: WrongCall, number: int = 1) -> None:
        """Add to the number of wrong calls of a kind."""
        self.wrong[kind] = self.wrong.get(kind, 0) + number

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as JSON for a script."""
        return {**asdict(self), "solved": self.is_solved}


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """The maximum number of requests and of seconds for a task."""

    steps: int = 20
    seconds: float = 600.0


class AgentLoop:
    """A model at work on one task; used once."""

    def __init__(
        self,
        ask: Callable[[Json], Awaitable[TrialReply]],
        task: TrialTask,
        model: str,
        limits: TrialLimits,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._task = task
        self._limits = limits
        self._clock = clock
        self._workspace = TrialFiles(task.before)
        self._conversation = str(uuid.uuid4())
        self._history: list[Json] = []
        self._texts: list[str] = []
        self.outcome = TrialOutcome(task.name, model)
        self._runner = CallRunner(self._workspace, self.outcome.count_wrong)

    async def run(self) -> TrialOutcome:
        """Run the loop, and judge the result."""
        outcome, began = self.outcome, self._clock()
        try:
            async with asyncio.timeout(self._limits.seconds):
                fault = await self._work()
        except TimeoutError:
            fault = f"it was not done after {self._limits.seconds:g} seconds"
        outcome.seconds = self._clock() - began
        files, answer = self._workspace.files, self._texts[-1] if self._texts else ""
        outcome.answer = answer[:_MAX_REPORTED_CHARS]
        outcome.printed = count_printed(self._texts, self._task.before, files)
        outcome.fault = fault or find_fault(self._task, files, answer)
        return outcome

    async def _work(self) -> str:
        """Ask until the model stops; return why it had to be stopped, or ""."""
        message = self._task.question
        nodes = first_nodes(message)
        for _ in range(self._limits.steps):
            body = chat_body(
                self.outcome.model, self._conversation, message, nodes, self._history
            )
            self.outcome.steps += 1
            reply = await self._ask(body)
            if fault := self._record(reply):
                return fault
            if not (calls := [*reply.calls][:_MAX_CALLS]):
                return ""
            exchange = past_exchange(reply.record.request_id, nodes, reply.nodes)
            self._history.append(exchange)
            message, nodes = "", [*map(self._run_call, range(len(calls)), calls)]
        return f"it did not stop within {self._limits.steps} steps"

    def _record(self, reply: TrialReply) -> str:
        """Add an answer to the outcome; return why the loop cannot go on, or ""."""
        outcome, record = self.outcome, reply.record
        if usage := record.usage:
            outcome.input_tokens += usage.input_tokens
            outcome.output_tokens += usage.output_tokens
        outcome.prompt = record.prompt or outcome.prompt
        outcome.answers += record.first_byte is not None
        for _ in range(record.dropped_calls):
            outcome.count_wrong(WrongCall.BROKEN_ARGUMENTS)
        if reply.text.strip():
            self._texts.append(reply.text[:_MAX_ANSWER_CHARS])
        if reply.failure:
            return reply.failure
        if len(reply.text) > _MAX_ANSWER_CHARS:
            return f"an answer has more than {_MAX_ANSWER_CHARS:,} characters"
        if reply.is_cut:
            return "an answer was cut at the longest length that the model writes"
        if record.model_id and record.model_id != outcome.model:
            return f"{record.model_id} answered instead"
        return ""

    def _run_call(self, node_id: int, call: Mapping[str, Any]) -> Json:
        """Run a call, and return the node with its result."""
        self.outcome.calls += 1
        content, is_error = self._runner.run(call["tool_name"], call["input_json"])
        result = {"content": content, "is_error": is_error}
        result = {"tool_use_id": call["tool_use_id"], **result}
        return {"id": node_id, "type": 1, "tool_result_node": result}


class CallRunner:
    """Runs the tool calls of one task; `count` is called once for each wrong call."""

    def __init__(
        self, workspace: TrialFiles, count: Callable[[WrongCall], None]
    ) -> None:
        self._workspace = workspace
        self._count = count
        self._previous: set[bytes] = set()  # the calls so far, with their revision

    def run(self, name: str, raw: str) -> tuple[str, bool]:
        """Run a call with JSON arguments; return (result, False) or (error, True)."""
        tool = TOOLS.get(name)
        if tool is None:
            self._count(WrongCall.UNKNOWN_TOOL)
            return f"There is no tool of the name {name[:60]}.", True
        try:
            arguments = parse_json(raw.encode("utf-8", "replace"))
            is_repeated = self._is_repeated(name, arguments)
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            self._count(WrongCall.BROKEN_ARGUMENTS)
            return "The arguments are no JSON object.", True
        if is_repeated:
            self._count(WrongCall.REPEATED)
        try:
            return run_tool(tool, self._workspace, arguments), False
        except ToolFailed as error:
            if not is_repeated:
                bad = isinstance(error, BadArguments)
                self._count(WrongCall.BROKEN_ARGUMENTS if bad else WrongCall.FAILED)
            return str(error), True

    def _is_repeated(self, name: str, arguments: Any) -> bool:
        """Tell whether an equal call was made and no file has changed since."""
        call = write_json([self._workspace.revision, name, _sort_names(arguments)])
        is_repeated = call in self._previous
        self._previous.add(call)
        return is_repeated


def _sort_names(arguments: Any) -> Any:
    if not isinstance(arguments, dict):
        return arguments
    return {name: arguments[name] for name in sorted(arguments)}


def chat_body(
    model: str,
    conversation: str,
    message: str,
    nodes: Sequence[Json],
    history: Sequence[Json],
) -> Json:
    """Return the body of a request; its `message` is "" with results of tools."""
    return {
        "message": message,
        "model": model,
        "mode": "AGENT",
        "path": None,
        "lang": None,
        "prefix": None,
        "selected_code": None,
        "suffix": None,
        "nodes": nodes,
        "chat_history": history,
        "tool_definitions": [tool.definition for tool in TOOLS.values()],
        "blobs": {"checkpoint_id": None, "added_blobs": [], "deleted_blobs": []},
        "user_guided_blobs": [],
        "user_guidelines": "",
        "workspace_guidelines": "",
        "rules": [],
        "silent": False,
        "conversation_id": conversation,
        "feature_detection_flags": {
            "support_tool_use_start": True,
            "support_parallel_tool_use": True,
        },
    }


def first_nodes(question: str) -> list[Json]:
    """Return the nodes of a question: its text, and the folder of the workspace."""
    folders = [{"folder_root": ROOT, "repository_root": ROOT}]
    state = {
        "workspace_folders": folders,
        "workspace_folders_unchanged": False,
        "current_terminal": None,
    }
    return [
        {"id": 0, "type": 0, "text_node": {"content": question}},
        {"id": 1, "type": 4, "ide_state_node": state},
    ]


def past_exchange(
    request_id: str, nodes: Sequence[Json], answer_nodes: Sequence[Json]
) -> Json:
    """Return an exchange of the history."""
    return {
        "request_id": request_id,
        "request_message": "",
        "request_nodes": nodes,
        "response_nodes": answer_nodes,
    }
