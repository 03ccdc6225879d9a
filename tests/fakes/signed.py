"""An upstream that signs its tool calls and wants each signature back, as Gemini 3."""

from typing import Any

from aiohttp import web

from tests.fakes.upstream import DONE, FakeUpstream, Script, answer, delta, play

SKIPPED = {"google": {"thought_signature": "skip_thought_signature_validator"}}


class SignedUpstream(FakeUpstream):
    """Calls the first tool offered until it saw `steps` results, then says "Done."."""

    def __init__(self, steps: int = 3, calls: int = 1) -> None:
        super().__init__()
        self.steps = steps
        self.calls = calls  # in one message; only the first is signed
        self.refusals: list[str] = []
        self.issued: list[tuple[str, Any]] = []  # a model, and what it sent with a call

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        if reason := self._refused(body):
            self.refusals.append(reason)
            error = {"code": 400, "message": reason, "status": "INVALID_ARGUMENT"}
            return web.json_response([{"error": error}], status=400)
        if sum(message["role"] == "tool" for message in body["messages"]) >= self.steps:
            return await play(request, Script(answer("Done.")))
        calls = self._signed(body["model"], body["tools"][0]["function"]["name"])
        # It says `stop` where others say `tool_calls`.
        pieces = [delta(tool_calls=calls), delta(finish="stop"), DONE]
        return await play(request, Script(pieces))

    def _signed(self, model: str, name: str) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = [
            {
                "id": f"function-call-{n}",  # the same again in each answer
                "type": "function",
                "function": {"name": name, "arguments": "{}"},
            }
            for n in range(self.calls)
        ]
        signature = f"CiQB/{len(self.requests)}+é=="
        calls[0]["extra_content"] = {"google": {"thought_signature": signature}}
        self.issued.append((model, calls[0]["extra_content"]))
        return calls

    def _refused(self, body: dict[str, Any]) -> str:
        for message in body["messages"]:
            for n, call in enumerate(message.get("tool_calls", ())):
                extra = call.get("extra_content")
                if extra is None and not n:
                    return "Function call is missing a thought_signature."
                if extra not in (None, SKIPPED) and (
                    (body["model"], extra) not in self.issued
                ):
                    return "Corrupted thought signature."
        return ""
