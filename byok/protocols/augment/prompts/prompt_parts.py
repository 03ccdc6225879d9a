"""Parts of the prompts that ask for one text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from byok.core.chat import ChatRequest, Json, Message, Role, TextPart
from byok.core.escapes import truncate_middle
from byok.core.wire.json_body import write_json
from byok.protocols.augment.body import objects
from byok.protocols.augment.frames import read_guides
from byok.protocols.augment.history import read_exchange
from byok.protocols.augment.nodes import fence_code
from byok.protocols.augment.reply_job import NO_VALUES, Defaults

LOW = 0.2  # temperature: these answers must be right, not creative
_MAX_EXCHANGES = 10
_MAX_SAID = 2000
NOTHING = ChatRequest(())


def question(
    body: Json,
    defaults: Defaults,
    prompt: str,
    blocks: Iterable[str],
    values: Mapping[str, str] = NO_VALUES,
    conditions: Sequence[str] = (),
    *,
    whole: bool = False,
    note: str = "",
) -> ChatRequest:
    """Return a request for one text, from a task (system) and its input (user).

    `prompt` is the name of the prompt that says the task; `values` are those of its
    slots, and `conditions` those that hold. `whole`: see ChatRequest.
    `note` is one of its notes.
    """
    told = defaults.render(prompt, values, conditions=conditions)
    guides = read_guides(body, defaults.fit.window)
    parts = (
        defaults.system_prompt,
        told.text,
        *guides.frames,
        defaults.addition,
    )
    system = "\n\n".join(part.strip() for part in parts if part.strip())
    asked = "\n\n".join(block for block in blocks if block.strip())
    own = defaults.sampling.temperature
    cool = LOW if own is None else min(own, LOW)
    return ChatRequest(
        (
            Message(Role.SYSTEM, (TextPart(system),)),
            Message(Role.USER, (TextPart(asked),)),
        ),
        prompt=told.name,
        notes=tuple(filter(None, (note, told.note, guides.note))),
        silent=True,
        whole=whole,
        verbatim=True,
        sampling=replace(defaults.sampling, temperature=cool),
    )


def conversation(body: Json) -> str:
    """Render the newest exchanges as text; "" without any."""
    said: list[str] = []
    newest = objects(body, "chat_history")[-_MAX_EXCHANGES:]
    for exchange in map(read_exchange, newest):
        for who, words in (
            ("User", exchange.turn.words),
            ("Assistant", exchange.reply.text),
        ):
            if words.strip():
                said.append(f"{who}: {truncate_middle(words.strip(), _MAX_SAID)}")
    return "\n".join(["[conversation so far]", *said]) if said else ""


def code(label: str, text: str, language: str = "") -> str:
    """Render code under a label; empty code is marked as empty."""
    if not text:
        return f"[{label}: empty]"
    return f"[{label}]\n{fence_code(text, language)}"


def as_json(label: str, found: Any) -> str:
    """Render a value of unknown shape as JSON; "" for nothing."""
    if not found:
        return ""
    shown = write_json(found).decode("utf-8", "replace")
    return f"[{label}]\n{truncate_middle(shown, 8000)}"
