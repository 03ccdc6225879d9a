"""The prompts that there are, and the slots and conditions that each may use."""

from dataclasses import dataclass

TOOL = "tool:"  # begins the condition that one of these tools is offered
FAMILY = "family:"  # begins the condition that the model is of one of these families
SHIPPED = "shipped"
"""The slot for the shipped text, in a file of the user's that only adds to it."""


@dataclass(frozen=True, slots=True)
class PromptKind:
    """One prompt: its name, which is that of its file, and what its text may name.

    `about` says in one line when a model is told it.
    """

    name: str
    about: str
    slots: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    tools: bool = False


def _kind(name: str, about: str, slots: str = "", conditions: str = "") -> PromptKind:
    found = frozenset(conditions.split())
    return PromptKind(
        name, about, frozenset(slots.split()), found - {"tool"}, "tool" in found
    )


SHORT, SMALL, REASONING = "short", "small", "reasoning"
FAMILIES = ("claude", "gpt", "gemini", "qwen", "deepseek", "kimi", "glm")
# A prompt for a condition of the model: `agent.small.md` beside `agent.md`.
VARIANTS = {
    SHORT: "context windows in which the whole text takes too much room",
    SMALL: "local models of few parameters: shorter, firmer, with an example",
    **{name: f"models of the {name} family" for name in FAMILIES},
    REASONING: "models that think by themselves: no advice on how to think",
}
KINDS = {
    kind.name: kind
    for kind in (
        _kind("agent", "agent modes", conditions="tool parallel snippets"),
        _kind(
            "ask",
            "agent modes with tools that only read",
            conditions="tool parallel snippets",
        ),
        _kind("chat", "chats", conditions="tool snippets"),
        _kind("prototype", "the persona that builds prototypes"),
        _kind("brainstorm", "the persona that collects ideas"),
        _kind("review", "the persona that reviews"),
        _kind("silent", "background jobs of a client"),
        _kind("commit", "commit messages"),
        _kind("title", "titles of conversations"),
        _kind("enhance", "rewriting of prompts"),
        _kind("edit", "edits of a selection"),
        _kind("edit_file", "edits of a file that an agent describes"),
        _kind("smart_paste", "code blocks put into a file", conditions="selection"),
        _kind("next_edit", "suggestions for the next edit"),
        _kind("next_edit_place", "places for the next edit"),
        _kind("completion", "inline completions by a chat model", "mark"),
        _kind("chat_input", "completions in the chat input box", "mark"),
        _kind("summary", "summaries of long conversations", "words holds"),
        _kind("translate", "English search words for a question"),
        _kind("rerank", "the order of the files that a search found", "most"),
    )
}
