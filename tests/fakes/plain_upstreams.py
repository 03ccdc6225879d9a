"""Upstreams that take less than others, and an Ollama whose model calls tools."""

from typing import Any

from aiohttp import web

from tests.fakes.ollama_server import OllamaServer, call_line, text_line
from tests.fakes.reasoning_upstream import StrictVendor
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


def _thought(text: str) -> dict[str, Any]:
    return text_line("", thinking=text)
