"""The system message: the same bytes in every turn, so that prompt caches hit.

Parts that change during a conversation are in its turns (`editor_context.py`).
"""

from collections.abc import Sequence

from byok.core.chat import Json, ToolDefinition
from byok.core.prompts.prompt_set import Prompt
from byok.protocols.augment.body import first_text, flag, integer, items, mapping, text
from byok.protocols.augment.frames import fit, guide_space
from byok.protocols.augment.reply_job import Defaults

# Tools of the clients that change no file. An agent with only these just answers.
_READING_TOOLS = frozenset(
    {
        *("codebase-retrieval", "git-commit-retrieval", "view"),
        *("view-range-untruncated", "search-untruncated", "diagnostics"),
        *("read-terminal", "read-process", "list-processes", "view_tasklist"),
        *("web-search", "web-fetch", "open-browser", "render-mermaid"),
        *("add_tasks", "update_tasks", "reorganize_tasklist", "remember"),
    }
)
_PERSONAS = {1: "prototype", 2: "brainstorm", 3: "review"}
# Modes of clients that show code of the workspace in a special frame.
_SNIPPET_MODES = ("CHAT", "AGENT")
_PERSONA_PART = 4  # a persona gets 1/4 of the space for guidelines and rules
_MAX_CHARS = 1_000_000  # of a prompt after replacements


def system_text(
    body: Json,
    defaults: Defaults,
    prompt: str,
    *,
    persona: str,
    guides: Sequence[str],
) -> str:
    """Join the parts of the system message of a chat in their fixed order.

    The user's own system prompt and the `prompt` of the mode are used unless the client
    sends one; `guides` are those of `frames.py`.
    """
    base = text(body, "system_prompt") or _join(defaults.system_prompt, prompt)
    return _join(
        _apply_replacements(base, body),
        persona,
        *guides,
        text(body, "system_prompt_append"),
        defaults.addition,
    )


def _join(*parts: str) -> str:
    """Join the parts by blank lines; of equal ones the first counts."""
    distinct = dict.fromkeys(map(str.strip, parts))
    return "\n\n".join(filter(None, distinct))


def mode_prompt(
    body: Json, defaults: Defaults, tools: Sequence[ToolDefinition]
) -> Prompt:
    """Return the prompt for the mode of a chat; none if the client sends its own."""
    if text(body, "system_prompt"):
        return Prompt()
    if flag(body, "silent"):
        return defaults.render("silent")
    flags = mapping(body, "feature_detection_flags")
    conditions = [
        *(["parallel"] if flag(flags, "support_parallel_tool_use") else []),
        *(["snippets"] if text(body, "mode").upper() in _SNIPPET_MODES else []),
    ]
    names = [tool.name for tool in tools]
    name = "chat"  # also for an agent without tools: the AI SDK sends all texts so
    if is_agent(body) and names:
        name = "ask" if only_reads(tools) else "agent"
    return defaults.render(name, tools=names, conditions=conditions)


def persona_prompt(
    body: Json, defaults: Defaults, beside: str, personality: Json | None
) -> Prompt:
    """Return the prompt of the persona, none for a silent job.

    `beside` is the prompt of the mode, with which it shares the window. `personality`
    is the payload of the latest change-personality node.
    """
    if flag(body, "silent"):
        return Prompt()
    payload = personality or {}
    kind = integer(payload, "personality_type")
    if kind not in _PERSONAS:
        kind = integer(body, "persona_type")
    name = _PERSONAS.get(kind)
    instructions = text(payload, "custom_instructions").strip()
    if not name and not instructions:
        return Prompt()
    prompt = defaults.render(name, beside=beside) if name else Prompt()
    limit = guide_space(defaults.fit.window) // _PERSONA_PART
    custom, note = fit("persona", instructions, limit, "a persona has")
    return Prompt(_join(prompt.text, custom), prompt.name, prompt.note or note)


def only_reads(tools: Sequence[ToolDefinition]) -> bool:
    """Tell whether there are tools, and all are known to change no file."""
    return bool(tools) and all(tool.name in _READING_TOOLS for tool in tools)


def is_agent(body: Json) -> bool:
    """Tell whether the request comes from one of the agent modes."""
    return "AGENT" in text(body, "mode").upper()


def _apply_replacements(prompt: str, body: Json) -> str:
    """Apply `system_prompt_replacements` that name the text to replace."""
    for row in items(body, "system_prompt_replacements"):
        if isinstance(row, dict) and (
            old := first_text(row, "old", "from", "search", "pattern")
        ):
            new = first_text(row, "new", "to", "replacement")
            growth = prompt.count(old) * (len(new) - len(old))
            if len(prompt) + growth <= _MAX_CHARS:  # each row could double it
                prompt = prompt.replace(old, new)
    return prompt
