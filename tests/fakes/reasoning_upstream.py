"""An upstream that follows one vendor's rules and wants its reasoning back.

Reasoning is checked to the letter: what the upstream said must come back in the form
that the vendor wants.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.strict_vendors import VENDORS, Body, Speech, refusals_of
from tests.fakes.upstream import DONE, FakeUpstream, Script, delta, play

SKIPPED = "skip_thought_signature_validator"
# What must stand in the turns of other models as well; a placeholder may.
_WANTED_OF_ALL = (Speech.FIELD, Speech.SEALED, Speech.SIGNATURE)


@dataclass
class Turn:
    """What the upstream said in one turn, as the fields of a message."""

    calls: bool
    fields: Body = field(default_factory=dict)


class StrictVendor(FakeUpstream):
    """Calls the first tool offered `steps` times a question, then gives an answer.

    It wants its own reasoning back, unchanged; what another said it does not know.
    """

    def __init__(self, vendor: str, steps: int = 1) -> None:
        super().__init__()
        self.rules = VENDORS[vendor]
        self.vendor = vendor
        self.steps = steps
        self.refusals: list[str] = []
        self.turns: dict[str, Turn] = {}  # by id of the first call, or by the text
        self.replayed = 0  # messages whose reasoning came back
        self.models = [self.rules.model]

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if request.match_info.get("path") != "chat/completions":
            return web.json_response({"detail": "Not Found"}, status=404)
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        if reasons := self.judge(body):
            error = {"message": reasons[0], "type": "invalid_request_error"}
            return web.json_response({"error": error}, status=400)
        return await play(request, Script(self.answer(body)))

    def judge(self, body: Body) -> list[str]:
        """Return the reasons to refuse a body, and note them."""
        reasons = [*refusals_of(self.vendor, body), *self._reasoning(body)]
        self.refusals += reasons
        return reasons

    def answer(self, body: Body) -> list[bytes]:
        """Return the answer to a body, as events of a stream."""
        number = len(self.turns) + 1
        roles = [message["role"] for message in body["messages"]]
        asked = len(roles) - roles[::-1].index("user")
        done = sum("tool_calls" in m for m in body["messages"][asked:])
        calls = bool(body.get("tools")) and done < self.steps
        call_id = f"{self.vendor.replace('-', '')[-4:]:x<4}{number:05d}"
        said, fields = _speak(self.rules.speech, number, call_id, calls=calls)
        text = "" if calls else f"Answer {number} of {self.vendor}."
        self.turns[call_id if calls else text] = Turn(calls, fields)
        if not calls:
            return [*said, delta(content=text), delta(finish="stop"), DONE]
        name = body["tools"][0]["function"]["name"]
        call: Body = {"index": 0, "id": call_id, "type": "function"}
        call["function"] = {"name": name, "arguments": "{}"}
        if self.rules.speech is Speech.SIGNATURE:
            call["extra_content"] = fields["extra_content"]
        return [*said, delta(tool_calls=[call]), delta(finish="tool_calls"), DONE]

    def _reasoning(self, body: Body) -> Iterator[str]:
        """Yield what is wrong with the reasoning in a body."""
        rules = self.rules
        for place, message in enumerate(body["messages"]):
            if message["role"] != "assistant":
                continue
            calls = message.get("tool_calls") or ()
            given = _given(message, rules.speech)
            turn = self.turns.get(_key(message))
            if given == SKIPPED or (given == "" and rules.empty):
                continue
            if given is None:
                wanted = rules.tool_turns if calls else rules.plain_turns
                if wanted and (turn or rules.speech in _WANTED_OF_ALL):
                    yield f"reasoning is missing in the assistant message {place}"
            elif turn is None or given != _given(turn.fields, rules.speech):
                yield f"reasoning of the assistant message {place} was changed"
            else:
                self.replayed += 1


def _speak(
    speech: Speech, number: int, call_id: str, *, calls: bool
) -> tuple[list[bytes], Body]:
    """Return the deltas of a thought, and the fields in which it must come back."""
    thought = f"Thought {number}: \u00e9\U0001f9f5\n"
    entry: Body = {"type": "reasoning.text", "index": 0, "format": "claude"}
    sealed: Body = {
        "type": "reasoning.encrypted",
        "data": f"CiQ+/{number}==",
        "index": 0,
        **({"id": call_id} if calls else {}),
    }
    match speech:
        case Speech.FIELD:
            pieces = [delta(reasoning_content=c) for c in thought]
            return pieces, {"reasoning_content": thought}
        case Speech.DETAILS:
            pieces = [
                delta(reasoning=c, reasoning_details=[{**entry, "text": c}])
                for c in thought
            ]
            signed = {**entry, "signature": f"S{number}=="}
            whole = {**entry, "text": thought, "signature": f"S{number}=="}
            return [*pieces, delta(reasoning_details=[signed])], {
                "reasoning_details": [whole]
            }
        case Speech.SEALED:
            return [delta(content="", reasoning_details=[sealed])], {
                "reasoning_details": [sealed]
            }
        case Speech.SIGNATURE:
            return [], {
                "extra_content": {"google": {"thought_signature": f"S{number}=="}}
            }
        case Speech.TAGS:
            text = f"<think>{thought}</think>\n\n"
            return [delta(content=c) for c in text], {"content": text}
        case Speech.PARTS:
            part = {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
            return [delta(content=[part])], {"content": [part]}
        case _:
            return [], {}


def _given(message: Body, speech: Speech) -> Any:
    """Return the reasoning in a message; None where there is none."""
    content = message.get("content")
    match speech:
        case Speech.DETAILS | Speech.SEALED:
            details = message.get("reasoning_details")
            skipped = details and [entry.get("data") for entry in details] == [SKIPPED]
            return SKIPPED if skipped else details
        case Speech.SIGNATURE:
            calls = message.get("tool_calls")
            extra = (calls[0] if calls else message).get("extra_content")
            return SKIPPED if SKIPPED in json.dumps(extra) else extra
        case Speech.TAGS:
            end = "</think>\n\n"
            found = isinstance(content, str) and content.startswith("<think>")
            return str(content).partition(end)[0] + end if found else None
        case Speech.PARTS:
            parts = content if isinstance(content, list) else []
            return [p for p in parts if p.get("type") == "thinking"] or None
        case _:
            return message.get("reasoning_content")


def _key(message: Body) -> str:
    """Return what tells the turns of an upstream apart."""
    if calls := message.get("tool_calls"):
        return str(calls[0]["id"])
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return str(content).partition("</think>\n\n")[2] or str(content)
