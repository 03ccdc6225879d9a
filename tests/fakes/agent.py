"""An agent in an editor: it runs the tools that are called, and keeps the history."""

from typing import Any

from tests.fakes.daemon import Answer, Editor

TOOL = {"name": "read", "description": "", "input_schema_json": '{"type":"object"}'}


class Agent:
    """Asks, answers tool calls and keeps the history as an editor does."""

    def __init__(self) -> None:
        self.history: list[dict[str, Any]] = []
        self._next: dict[str, Any] = {"message": "Go on."}

    async def step(self, editor: Editor, model: str) -> Answer:
        """Ask once more; the tools are run at once."""
        asked: dict[str, Any] = {
            "chat_history": self.history,
            "tool_definitions": [TOOL],
        }
        answer = await editor.chat(model=model, **asked, **self._next)
        past = {"request_message": "Go on.", "response_nodes": answer.nodes}
        if results := self._next.get("nodes"):
            past = {**past, "request_message": "", "request_nodes": results}
        self.history.append(past)
        results = [
            {
                "id": n,
                "type": 1,
                "tool_result_node": {"tool_use_id": i["tool_use_id"], "content": "ok"},
            }
            for n, i in enumerate(answer.tool_uses, 1)
        ]
        self._next = {"message": "", "nodes": results}
        return answer
