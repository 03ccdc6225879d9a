"""A strict upstream whose model has a window, and a long agent conversation for it."""

import json
from typing import Any

from aiohttp import web

from tests.fakes.bodies import call_node, exchange, result_node, tool
from tests.fakes.strict import StrictUpstream, broken_rules
from tests.fakes.upstream import DONE, Script, delta, event, play, tool_answer

TASK = "Port the cron parser to Rust, keep every test, and never touch vendor/."


class WindowedUpstream(StrictUpstream):
    """Refuses more tokens than its window, in the words that it is given.

    A token has 3.5 bytes of the messages and tools as they were sent. Without tools
    the request is one for a summary; `summary` answers it, "" with an error.
    """

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        self.words = (
            "This model's maximum context length is {window} tokens. However, your "
            "messages resulted in {tokens} tokens. Please reduce the length of the "
            "messages."
        )
        self.summary = "So far the lexer is done."
        self.answer = 0  # tokens that it keeps for its answer
        self.overflows = 0
        self.asked_summaries: list[dict[str, Any]] = []
        self.taken: list[dict[str, Any]] = []
        self.sizes: list[int] = []

    def tokens(self, body: dict[str, Any]) -> int:
        """Count the tokens of a request."""
        counted = json.dumps([body["messages"], body.get("tools")], ensure_ascii=False)
        return int(len(counted.encode()) / 3.5)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        tokens = self.tokens(body)
        if reasons := broken_rules(body):
            self.refusals += reasons
            return _refused("; ".join(reasons))
        if tokens + self.answer > self.window:
            self.overflows += 1
            words = self.words.format(window=self.window, tokens=tokens)
            return _refused(words, "context_length_exceeded")
        usage = event({"choices": [], "usage": {"prompt_tokens": tokens}})
        if "tools" in body:
            self.taken.append(body)
            self.sizes.append(tokens)
            pieces = tool_answer("view", "{}")
        else:
            self.asked_summaries.append(body)
            if not self.summary:
                return web.json_response({"error": {"message": "No."}}, status=400)
            pieces = [delta(content=self.summary), delta(finish="stop"), DONE]
        pieces.insert(-1, usage)
        return await play(request, Script(pieces))


def _refused(message: str, code: str = "") -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "code": code}
    return web.json_response({"error": error}, status=400)


class Talk:
    """An agent's conversation as its client keeps it: one tool call an exchange."""

    def __init__(self, exchanges: int, result_chars: int = 5000) -> None:
        self._chars = result_chars
        self.history = [exchange(TASK, "I look around.", calls=[self._call(0)])]
        while len(self.history) < exchanges:
            self.step()

    def step(self) -> None:
        """Do one step more: the result of the last call, and the next call."""
        number = len(self.history)
        said, call = f"Step {number}.", self._call(number)
        self.history.append(exchange("", said, nodes=[self._result()], calls=[call]))

    def body(self, **fields: Any) -> dict[str, Any]:
        """Write the request that brings the newest result."""
        return {
            "message": "",
            "nodes": [self._result()],
            "chat_history": self.history,
            "tool_definitions": [tool()],
            "mode": "AGENT",
            **fields,
        }

    def _result(self) -> dict[str, Any]:
        number = len(self.history) - 1
        line = f"{number}: let field = parse(&input[{number}..])?;\n"
        text = line * (self._chars // len(line) + 1)
        return result_node(f"call_{number}", text[: self._chars])

    def _call(self, number: int) -> dict[str, Any]:
        arguments = json.dumps({"path": f"src/field_{number}.rs"})
        return call_node(f"call_{number}", "view", arguments)


def shared_prefix(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return which share of a request's messages begins the next request, in bytes."""
    before, after = (
        [json.dumps(m, ensure_ascii=False).encode() for m in body["messages"]]
        for body in (one, other)
    )
    same = 0
    for message, following in zip(before, after, strict=False):
        if message != following:
            break
        same += len(message)
    return same / sum(map(len, before))
