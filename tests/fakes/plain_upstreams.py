"""Upstreams that take less than others; servers whose models call tools each turn."""

from itertools import pairwise
from typing import Any

from aiohttp import web

from tests.fakes.ollama_server import OllamaServer, call_line, text_line
from tests.fakes.reasoning_upstream import StrictVendor
from tests.fakes.responses_server import (
    ResponsesServer,
    call_item,
    reasoning_item,
    streamed,
    text_item,
)
from tests.fakes.strict_vendors import Body


class RefusingUpstream(StrictVendor):
    """A server that follows a vendor's rules, and also refuses some fields.

    `refused` maps a field of the body to the words of the refusal.
    """

    def __init__(self, vendor: str = "any", **refused: str) -> None:
        super().__init__(vendor)
        self._refused = refused

    def judge(self, body: Body) -> list[str]:
        """Return the reasons to refuse a body, and note them."""
        reasons = [words for name, words in self._refused.items() if name in body]
        self.refusals += reasons
        return [*reasons, *super().judge(body)]


class OllamaAgent(OllamaServer):
    """Calls the first tool offered once a question, then says "Fine."."""

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        roles = [message["role"] for message in body["messages"]]
        asked = len(roles) - roles[::-1].index("user")
        if body.get("tools") and "tool" not in roles[asked:]:
            name = body["tools"][0]["function"]["name"]
            line = call_line(name, {"n": len(self.requests)}, len(self.requests))
            self.scripts = [[_thought("A tool."), line]]
        else:
            self.scripts = [[_thought("Enough."), text_line("Fine.")]]
        return await super()._chat(request)


class ResponsesAgent(ResponsesServer):
    """Calls the first tool offered once a question, then says "Done."; it reasons.

    `lost` are ids of its calls before which its reasoning was missing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[str] = []
        self._reasoned: dict[str, Body] = {}  # what came before each call, by its id

    def _answer(self, body: Any) -> list[bytes]:
        number = len(self.requests)
        self._note_lost(body["input"])
        spoken = [n for n, i in enumerate(body["input"]) if i.get("role") == "user"]
        asked = body["input"][spoken[-1] :]
        thought = reasoning_item(f"gAAA{number}+é==", f"Plan {number}.")
        self.issued.append({k: v for k, v in thought.items() if k != "id"})
        if not body.get("tools") or any("output" in item for item in asked):
            self.phases[f"Done. {number}"] = "final_answer"
            last = text_item(f"Done. {number}", phase="final_answer")
            return streamed(thought, last)
        call_id = f"call_r{number}"
        self._reasoned[call_id] = self.issued[-1]
        return streamed(thought, call_item(body["tools"][0]["name"], call_id=call_id))

    def _unfaithful(self, body: Any) -> list[str]:
        """Accept a message without its phase, which the API does as well."""
        items = [
            i for i in body["input"] if i.get("role") != "assistant" or "phase" in i
        ]
        return super()._unfaithful({**body, "input": items})

    def _note_lost(self, items: list[Body]) -> None:
        for before, item in pairwise(items):
            wanted = self._reasoned.get(item.get("call_id", ""))
            is_call = item.get("type") == "function_call"
            given = {k: v for k, v in before.items() if k != "id"}
            if is_call and wanted and given != wanted:
                self.lost.append(item["call_id"])


def _thought(text: str) -> dict[str, Any]:
    return text_line("", thinking=text)
