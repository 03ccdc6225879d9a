"""What clients of every kind send, and what a model of every kind is then told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from byok.core.chat import ChatRequest, Role
from byok.core.prompts.prompt_set import find_fit
from byok.dialects.families import family_facts
from byok.protocols.augment.chat_request import decode_chat
from byok.protocols.augment.reply_job import Defaults

# The tools of the clients themselves.
TOOLS = (
    "str-replace-editor", "save-file", "remove-files", "view", "apply_patch",
    "launch-process", "read-process", "write-process", "kill-process", "list-processes",
    "read-terminal", "diagnostics", "codebase-retrieval", "git-commit-retrieval",
    "web-search", "web-fetch", "open-browser", "render-mermaid",
    "view-range-untruncated", "search-untruncated", "view_tasklist", "add_tasks",
    "update_tasks", "reorganize_tasklist", "remember",
)  # fmt: skip
READERS = ("codebase-retrieval", "git-commit-retrieval", "view", "diagnostics")
_FLAGS = {"support_parallel_tool_use": True, "support_tool_use_start": True}


def definitions(names: Iterable[str]) -> list[dict[str, Any]]:
    """The definitions of tools as clients send them."""
    schema = '{"type":"object","properties":{"path":{"type":"string"}}}'
    return [
        {"name": name, "description": f"Does {name}.", "input_schema_json": schema}
        for name in names
    ]


def editor(mode: str, tools: Iterable[str] = (), **fields: Any) -> dict[str, Any]:
    """A body of an editor: the words are in `message` and in the first node."""
    words = "Why does the login fail?"
    return {
        "message": words,
        "nodes": [{"id": 0, "type": 0, "text_node": {"content": words}}],
        "mode": mode,
        "chat_history": [],
        "conversation_id": "c-1",
        "path": "src/login.py",
        "lang": "python",
        "feature_detection_flags": _FLAGS,
        "tool_definitions": definitions(tools),
        **fields,
    }


def cli(tools: Iterable[str] = (), **fields: Any) -> dict[str, Any]:
    """A body of the command line client, or of the AI SDK."""
    body = {
        "mode": "CLI_AGENT",
        "message": "Port the parser.",
        "chat_history": [],
        "conversation_id": "c-1",
        **fields,
    }
    offered = definitions(tools)
    return {**body, "tool_definitions": offered} if offered else body


SDK = {
    "nodes": [{"id": 0, "type": 0, "text_node": {"content": "What is a ferry?"}}],
    "chat_history": [],
    "conversation_id": "c-1",
}
GUIDES: dict[str, Any] = {
    "user_guidelines": "Answer briefly.\nNo emoji.",
    "workspace_guidelines": "Python 3.11. Run `make test`.",
    "rules": [{"path": "units.md", "content": "Prices are cents."}, "No new files."],
    "skills": [{"name": "sql", "text": "Use joins."}],
    "agent_memories": "The user likes tabs.",
    "persona_type": 3,
    "system_prompt_append": "Sign nothing.",
}
_ORPHAN = {"tool_use_id": "call_gone", "content": "42", "is_error": False}


@dataclass(frozen=True)
class Occasion:
    """A request, the model that it is for, and its context window in tokens."""

    name: str
    model: str
    window: int
    body: Mapping[str, Any]
    settings: Mapping[str, str] = field(default_factory=dict)

    def defaults(self) -> Defaults:
        """What byok takes from the settings and the facts of the model."""
        facts = family_facts(self.model)
        thinks = facts.thinking is True
        fit = find_fit(
            self.model, family=facts.family, thinks=thinks, window=self.window
        )
        own = self.settings.get("system_prompt", "")
        return Defaults(own, self.settings.get("addition", ""), fit=fit)

    def decode(self) -> ChatRequest:
        return decode_chat(self.body, self.defaults())

    def golden(self) -> str:
        """Return the system message below a line that says what it is for."""
        chat = self.decode()
        system = [m for m in chat.messages if m.role is Role.SYSTEM]
        text = "".join(getattr(p, "text", "") for m in system for p in m.parts)
        head = f"{chat.prompt or 'no prompt'} for {self.model}, {self.window:,} tokens"
        return f"[{head}, {len(chat.tools)} tools]\n\n{text}\n"


LARGE, HUGE = 131_072, 200_000
AGENT = editor("AGENT", TOOLS)
OCCASIONS = (
    Occasion("editor-chat", "some-model", LARGE, editor("CHAT")),
    Occasion("editor-chat-window-4096", "some-model", 4096, editor("CHAT")),
    Occasion("editor-agent", "some-model", LARGE, AGENT),
    Occasion("editor-agent-claude", "claude-sonnet-4-5", HUGE, AGENT),
    Occasion("editor-agent-window-4096", "some-model", 4096, AGENT),
    Occasion("editor-agent-small-local", "qwen2.5-coder:7b", 32_768, AGENT),
    Occasion("editor-ask", "gemini-2.0-flash", 1_000_000, editor("AGENT", READERS)),
    Occasion("editor-persona-review", "glm-4.6", HUGE, editor("CHAT", persona_type=3)),
    Occasion("cli-agent", "gpt-5", 400_000, cli(TOOLS)),
    Occasion("cli-agent-gpt-4.1", "gpt-4.1", 1_000_000, cli(TOOLS)),
    Occasion("cli-agent-mcp-only", "kimi-k2", LARGE, cli(["mcp_jira_search"])),
    Occasion("cli-agent-qwen", "qwen2.5-coder-32b-instruct", 32_768, cli(TOOLS)),
    Occasion("ai-sdk-without-tools", "deepseek-chat", LARGE, cli()),
    Occasion("context-sdk", "deepseek-reasoner", LARGE, SDK),
    Occasion("reasoning-model", "magistral-medium", LARGE, AGENT),
    Occasion("silent-job", "claude-3-5-haiku", HUGE, {**AGENT, "silent": True}),
    Occasion("users-system-prompt", "some-model", LARGE, editor("CHAT"),
             {"system_prompt": "You are the house's helper.", "addition": "Be kind."}),
    Occasion("clients-system-prompt", "some-model", LARGE,
             cli(TOOLS, system_prompt="You are a linter.", **GUIDES)),
    Occasion("guidelines-rules-memories", "some-model", LARGE, {**AGENT, **GUIDES}),
    Occasion("result-without-its-call", "some-model", LARGE, editor(
        "CHAT", nodes=[{"id": 1, "type": 1, "tool_result_node": _ORPHAN}])),
)  # fmt: skip
