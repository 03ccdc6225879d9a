"""An editor's agent: it runs tools, and keeps, drops or reorders what it is to keep."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from tests.fakes.bodies import exchange, image_node, result_node, text_node
from tests.fakes.daemon import Answer, Editor

_TOOL = {"name": "read", "description": "", "input_schema_json": '{"type":"object"}'}
_THINKING = 8  # the node with the model's reasoning
_MOST_STEPS = 8


class Keeping(StrEnum):
    """What a client does with the nodes of an answer."""

    ALL = "keeps"
    WITHOUT_THINKING = "drops"
    BACKWARDS = "reorders"


class AgentClient:
    """One conversation: asks a model, runs the tools that it calls, asks again."""

    def __init__(
        self, tools: Sequence[dict[str, Any]] = (_TOOL,), *, picture: bool = False
    ) -> None:
        self.history: list[dict[str, Any]] = []
        self._tools = list(tools)
        self._picture = picture  # in the first question
        self._results: list[dict[str, Any]] = []  # of tools, for the next step

    async def step(
        self, editor: Editor, model: str, keeping: Keeping = Keeping.ALL
    ) -> Answer:
        """Ask a question, or tell the results of tools; the next tools run at once."""
        words = "" if self._results else f"Question {len(self.history)}?"
        nodes = self._results or self._question(words)
        answer = await editor.chat(
            words,
            nodes=nodes,
            model=model,
            mode="AGENT",
            chat_history=self.history,
            tool_definitions=self._tools,
        )
        past = exchange(words, answer.text, nodes=nodes)
        past["response_nodes"] = _kept(answer.nodes, keeping)
        self.history.append(past)
        self._results = [result_node(use["tool_use_id"]) for use in answer.tool_uses]
        return answer

    async def turn(
        self, editor: Editor, model: str, keeping: Keeping = Keeping.ALL
    ) -> Answer:
        """Ask a question, and go on until the model calls no tool."""
        for _ in range(_MOST_STEPS):
            answer = await self.step(editor, model, keeping)
            assert "error" not in answer.last, (model, answer.last["error"])
            if not answer.tool_uses:
                return answer
        raise AssertionError(f"{model} never stops calling tools")

    def _question(self, words: str) -> list[dict[str, Any]]:
        picture = [image_node()] if self._picture and not self.history else []
        return [text_node(words), *picture]


def _kept(nodes: list[dict[str, Any]], keeping: Keeping) -> list[dict[str, Any]]:
    match keeping:
        case Keeping.ALL:
            return nodes
        case Keeping.WITHOUT_THINKING:
            return [node for node in nodes if node["type"] != _THINKING]
        case Keeping.BACKWARDS:
            return nodes[::-1]
