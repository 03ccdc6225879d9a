"""A server that speaks Responses strictly, and models that reason, as OpenAI's do."""

from typing import Any

from aiohttp import web

from tests.fakes.strict_responses import broken_rules
from tests.fakes.upstream import FakeUpstream, Script, answer, event, play

ONLY_RESPONSES = (
    "Function tools with reasoning_effort are not supported for {model} in "
    "/v1/chat/completions. To use function tools, use /v1/responses or set "
    "reasoning_effort to 'none'."
)
Item = dict[str, Any]


def text_item(text: str, **fields: Any) -> Item:
    """Write a complete message of the assistant."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "content": [part], **fields}


def call_item(name: str, arguments: str = "{}", call_id: str = "call_1") -> Item:
    """Write a complete function call."""
    call = {"call_id": call_id, "name": name, "arguments": arguments}
    return {"type": "function_call", "id": f"fc_{call_id}", **call}


def reasoning_item(sealed: str = "", *summary: str, **fields: Any) -> Item:
    """Write a complete reasoning item."""
    parts = [{"type": "summary_text", "text": text} for text in summary]
    own = {"encrypted_content": sealed} if sealed else {}
    return {"type": "reasoning", "id": "rs_1", "summary": parts, **own, **fields}


def response(*items: Item, status: str = "completed", **fields: Any) -> Item:
    """Write a whole response."""
    return {"object": "response", "status": status, "output": list(items), **fields}


def streamed(*items: Item, status: str = "completed", **fields: Any) -> list[bytes]:
    """Stream a response as OpenAI does: each item begins, grows and ends."""
    pieces = [event({"type": "response.created", "response": {"status": "queued"}})]
    for index, item in enumerate(items):
        pieces += [event(e | {"output_index": index}) for e in _item_events(item)]
    last = {"type": f"response.{status}"}
    whole = response(*items, status=status, **fields)
    return [*pieces, event({**last, "response": whole})]


def _item_events(item: Item) -> list[Item]:
    begun = {**item, "status": "in_progress"}
    for name in ("content", "arguments", "summary", "encrypted_content"):
        begun.pop(name, None)
    deltas: list[Item] = []
    match item["type"]:
        case "message":
            text = "".join(part["text"] for part in item["content"])
            deltas = _deltas("output_text", text)
        case "function_call":
            deltas = _deltas("function_call_arguments", item["arguments"])
        case "reasoning":
            for n, part in enumerate(item["summary"]):
                more = _deltas("reasoning_summary_text", part["text"])
                deltas += [{**delta, "summary_index": n} for delta in more]
        case _:
            pass
    return [
        {"type": "response.output_item.added", "item": begun},
        *deltas,
        {"type": "response.output_item.done", "item": item},
    ]


def _deltas(kind: str, text: str) -> list[Item]:
    half = len(text) // 2
    return [
        {"type": f"response.{kind}.delta", "delta": piece}
        for piece in (text[:half], text[half:])
        if piece
    ]


class ResponsesServer(FakeUpstream):
    """Calls the first tool offered until it saw `steps` results, then says "Done.".

    It refuses what breaks a rule, and reasoning or phases that it did not send so. Chat
    Completions takes no tools; with `has_path` unset it is the only API.
    """

    def __init__(self, steps: int = 3, *, has_path: bool = True) -> None:
        super().__init__()
        self.steps = steps
        self.has_path = has_path
        self.refusals: list[str] = []
        self.issued: list[Item] = []  # reasoning, as it must come back
        self.phases: dict[str, str] = {}  # by the text of a message

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.paths.append(request.match_info["path"])
        if request.match_info["path"] == "chat/completions":
            return await self._complete(request, body)
        if not self.has_path:
            return web.json_response({"detail": "Not Found"}, status=404)
        if reasons := [*broken_rules(body), *self._unfaithful(body)]:
            self.refusals += reasons
            return _refusal("; ".join(reasons))
        return await play(request, Script(self._answer(body)))

    async def _complete(self, request: web.Request, body: Any) -> web.StreamResponse:
        if self.has_path and body.get("tools"):
            return _refusal(ONLY_RESPONSES.format(model=body["model"]))
        return await play(request, Script(answer("By chat.")))

    def _answer(self, body: Any) -> list[bytes]:
        results = (i for i in body["input"] if "output" in i)
        done = len([*results])
        if done >= self.steps or not body.get("tools"):
            self.phases["Done."] = "final_answer"
            return streamed(text_item("Done.", phase="final_answer"))
        said = f"Step {done + 1} of {self.steps}."
        self.phases[said] = "commentary"
        thought = reasoning_item(f"gAAA{done}+é==", f"Plan {done}.", "Go on.")
        self.issued.append({k: v for k, v in thought.items() if k != "id"})
        return streamed(
            thought,
            text_item(said, phase="commentary"),
            call_item(body["tools"][0]["name"], call_id=f"call_{done}"),
        )

    def _unfaithful(self, body: Any) -> list[str]:
        items = body["input"] if isinstance(body.get("input"), list) else []
        reasons = [
            f"The encrypted content of {item} could not be verified."
            for item in items
            if item.get("type") == "reasoning"
            and {k: v for k, v in item.items() if k != "id"} not in self.issued
        ]
        for item in items:
            wanted = self.phases.get(str(item.get("content")))
            if item.get("role") == "assistant" and item.get("phase") != wanted:
                reasons.append(f"phase of {item}, not {wanted}")
        return reasons


def _refusal(message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error"}
    return web.json_response({"error": error}, status=400)
