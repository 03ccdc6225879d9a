"""A server of Anthropic's Messages API that thinks, signs and calls tools."""

from collections.abc import Iterator
from typing import Any

from aiohttp import web

from tests.fakes.strict_anthropic import broken_rules
from tests.fakes.upstream import FakeUpstream, Script, event, play

Block = dict[str, Any]


class AnthropicAgent(FakeUpstream):
    """Calls the first tool once a question, then says "Done."; each answer is thought.

    It refuses what the judge refuses, and thinking that it did not say so. `lost` are
    ids of its calls before which the thinking was missing, although it was thinking.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[str] = []
        self.lost: list[str] = []
        self._thoughts: dict[str, Block] = {}  # by signature
        self._calls: dict[str, Block] = {}  # the thought before each call, by its id

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        if reasons := [*broken_rules(body), *self._unfaithful(body)]:
            self.refusals += reasons
            error = {"type": "invalid_request_error", "message": "; ".join(reasons)}
            return web.json_response({"type": "error", "error": error}, status=400)
        return await play(request, Script([*self._events(body)]))

    def _unfaithful(self, body: Any) -> Iterator[str]:
        is_thinking = "thinking" in body
        for message in body["messages"]:
            before: Block = {}
            for block in _blocks(message):
                if block["type"] == "thinking":
                    if block != self._thoughts.get(block["signature"]):
                        yield "Invalid `signature` in `thinking` block"
                    before = block
                wanted = self._calls.get(block.get("id", ""), before)
                if is_thinking and wanted != before:
                    self.lost.append(block["id"])

    def _events(self, body: Any) -> Iterator[bytes]:
        number = len(self.requests)
        last = [block["type"] for block in _blocks(body["messages"][-1])]
        calls = bool(body.get("tools")) and "tool_result" not in last
        blocks: list[Block] = []
        if body.get("thinking", {}).get("type") in ("adaptive", "enabled"):
            thought = {"type": "thinking", "thinking": f"Thought {number}: é.",
                       "signature": f"S{number}+/=="}  # fmt: skip
            self._thoughts[thought["signature"]] = thought
            blocks.append(thought)
        if calls:
            name = body["tools"][0]["name"]
            call = {"type": "tool_use", "id": f"toolu_{number}", "name": name}
            if blocks:
                self._calls[call["id"]] = blocks[0]
            blocks.append({**call, "input": {}})
        else:
            blocks.append({"type": "text", "text": "Done."})
        yield from map(_named, _stream(blocks, "tool_use" if calls else "end_turn"))


def _blocks(message: Any) -> list[Block]:
    content = message["content"]
    return [{"type": "text"}] if isinstance(content, str) else content


def _named(value: Block) -> bytes:
    return f"event: {value['type']}\n".encode() + event(value)


def _stream(blocks: list[Block], reason: str) -> Iterator[Block]:
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "m", "role": "assistant", "content": [], "usage": usage}
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(blocks):
        at = {"index": index}
        begun = {key: "" if key != "input" else {} for key in block}
        begun |= {key: block[key] for key in ("type", "id", "name") if key in block}
        yield {"type": "content_block_start", **at, "content_block": begun}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", **at, "delta": delta}
        yield {"type": "content_block_stop", **at}
    last = {"stop_reason": reason}
    yield {"type": "message_delta", "delta": last, "usage": {"output_tokens": 9}}
    yield {"type": "message_stop"}


def _deltas(block: Block) -> Iterator[Block]:
    match block["type"]:
        case "thinking":
            yield {"type": "thinking_delta", "thinking": block["thinking"]}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            yield {"type": "text_delta", "text": block["text"]}
        case _:
            yield {"type": "input_json_delta", "partial_json": "{}"}
