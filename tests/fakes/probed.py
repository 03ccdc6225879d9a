"""A model that a probe tries out, with whims of its own, behind a fake upstream."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    delta,
    event,
    refusal,
)


@dataclass
class ProbedModel:
    """What the model takes; put `reply` into a FakeUpstream.

    `efforts` are those that it accepts, None for any. A model that `needs_reasoning`
    refuses a turn with a tool call whose reasoning is missing.
    """

    tools: bool = True
    calls: str = "by itself"  # "if it must", "never"
    parallel: int = 2
    images: str = "seen"  # "unseen", "refused"
    sampling: bool = True
    efforts: tuple[str, ...] | None = ("low", "medium", "high")
    reasons: bool = True
    needs_reasoning: bool = True
    caches: bool = True
    counts: bool = True
    window: int = 100_000  # characters of a body
    pause: float = 0.02  # seconds between the pieces of an answer
    bodies: list[dict[str, Any]] = field(default_factory=list)

    def serve(self, fake: FakeUpstream) -> None:
        """Answer the requests to an upstream."""
        fake.reply = self.reply

    def reply(self, body: dict[str, Any]) -> Script:
        """Answer one request, or refuse it."""
        self.bodies.append(body)
        if why := self._refuse(body):
            return refusal(400, why)
        if "tools" in body and body["messages"][-1]["role"] == "user":
            return Script(self._call(body))
        seen = self.images == "seen" and "image_url" in json.dumps(body)
        return self._say("Red." if seen else "1 2 3")

    def _refuse(self, body: dict[str, Any]) -> str:
        sent = json.dumps(body)
        if len(sent) > self.window:
            return f"maximum context length is {self.window} tokens"
        if "tools" in body and not self.tools:
            return "this model does not support tools"
        if "image_url" in sent and self.images == "refused":
            return "image input is not supported"
        if "temperature" in body and not self.sampling:
            return "Unsupported parameter: 'temperature'"
        effort = body.get("reasoning_effort")
        if effort and self.efforts is not None and effort not in self.efforts:
            return f"Invalid reasoning_effort {effort!r}"
        if self.needs_reasoning and self._lacks_reasoning(body):
            return "reasoning_content is missing in assistant tool call message"
        return ""

    def _lacks_reasoning(self, body: dict[str, Any]) -> bool:
        turns = [turn for turn in body["messages"] if turn.get("tool_calls")]
        return any(not turn.get("reasoning_content") for turn in turns)

    def _call(self, body: dict[str, Any]) -> list[bytes]:
        must = body.get("tool_choice") == "required"
        if self.calls == "never" or (self.calls == "if it must" and not must):
            return answer("Sunny.")
        both = "Oslo" in json.dumps(body)
        events = [delta(reasoning_content="Hm.")] if self.reasons else []
        for place in range(self.parallel if both else 1):
            function = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
            call = {"index": place, "id": f"c{place}", "function": function}
            events.append(delta(tool_calls=[{**call, "type": "function"}]))
        return [*events, delta(finish="tool_calls"), *self._count(body), DONE]

    def _say(self, text: str) -> Script:
        thought = [delta(reasoning_content="Hm.")] if self.reasons else []
        pieces: list[bytes | float] = [*thought, delta(content=text[:1]), self.pause]
        pieces += [delta(content=text[1:]), delta(finish="stop")]
        return Script([*pieces, *self._count(self.bodies[-1]), DONE])

    def _count(self, body: dict[str, Any]) -> list[bytes]:
        if not self.counts:
            return []
        size = len(json.dumps(body))
        again = sum(len(json.dumps(b)) == size for b in self.bodies) > 1
        usage: dict[str, Any] = {"prompt_tokens": size, "completion_tokens": 3}
        if again and self.caches:
            usage["prompt_tokens_details"] = {"cached_tokens": size - 10}
        return [event({"choices": [], "usage": usage})]
