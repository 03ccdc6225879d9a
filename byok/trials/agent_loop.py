"""One task: asks the model, runs the tools that it calls, until it stops or must."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from byok.chat import Json
from byok.trials.call_runner import MOST_CALLS, CallRunner
from byok.trials.editor_body import chat_body, first_nodes, past_exchange, result_node
from byok.trials.judge import find_fault
from byok.trials.outcome import TrialOutcome, WrongCall
from byok.trials.printed import count_printed
from byok.trials.tasks import TrialTask
from byok.trials.trial_client import TrialReply
from byok.trials.trial_files import TrialFiles

_LONGEST_ANSWER = 200_000  # characters
_KEPT_ANSWER = 2000  # characters of the last answer, for the report


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """How many answers of the model a task may take, and how many seconds."""

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
        """Let the model work, and judge what it did."""
        outcome, began = self.outcome, self._clock()
        try:
            async with asyncio.timeout(self._limits.seconds):
                fault = await self._work()
        except TimeoutError:
            fault = f"it was not done after {self._limits.seconds:g} seconds"
        outcome.seconds = self._clock() - began
        after, said = self._workspace.files, self._texts[-1] if self._texts else ""
        outcome.answer = said[:_KEPT_ANSWER]
        outcome.printed = count_printed(self._texts, self._task.before, after)
        outcome.fault = fault or find_fault(self._task, after, said)
        return outcome

    async def _work(self) -> str:
        """Ask until the model stops; return why it had to be stopped, if it had."""
        message = self._task.question
        nodes = first_nodes(message)
        for _ in range(self._limits.steps):
            body = chat_body(
                self.outcome.model, self._conversation, message, nodes, self._history
            )
            self.outcome.steps += 1
            reply = await self._ask(body)
            if fault := self._note(reply):
                return fault
            if not (calls := [*reply.calls]):
                return ""
            said = past_exchange(reply.record.request_id, nodes, reply.nodes)
            self._history.append(said)
            message, nodes = "", [*map(self._answer, range(len(calls)), calls)]
        return f"it did not stop within {self._limits.steps} steps"

    def _note(self, reply: TrialReply) -> str:
        """Count what an answer cost; return why it cannot be gone on with, if so."""
        outcome, record = self.outcome, reply.record
        if usage := record.usage:
            outcome.input_tokens += usage.input_tokens
            outcome.output_tokens += usage.output_tokens
        outcome.prompt = record.prompt or outcome.prompt
        outcome.answers += record.first_byte is not None
        for _ in range(record.dropped_calls):
            outcome.count_wrong(WrongCall.BROKEN_ARGUMENTS)
        if reply.text.strip():
            self._texts.append(reply.text[:_LONGEST_ANSWER])
        if reply.failure:
            return reply.failure
        if len(reply.text) > _LONGEST_ANSWER:
            return f"an answer has more than {_LONGEST_ANSWER:,} characters"
        if reply.is_cut:
            return "an answer was cut at the longest length that the model writes"
        if record.model_id and record.model_id != outcome.model:
            return f"{record.model_id} answered instead"
        return ""

    def _answer(self, place: int, call: Mapping[str, Any]) -> Json:
        """Run a call, and return the node with its result."""
        self.outcome.calls += 1
        if place < MOST_CALLS:
            result = self._runner.run(call["tool_name"], call["input_json"])
        else:
            result = self._runner.refuse()
        call_id, content, is_error = call["tool_use_id"], *result
        return result_node(place, call_id, content, is_error=is_error)
