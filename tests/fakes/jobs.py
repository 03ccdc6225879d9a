"""Run a text endpoint's pure part: what is asked, and what is made of an answer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec.structs import replace

from byok.core.chat import ChatRequest, Json, Role, TextPart
from byok.core.errors import ByokError
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta
from byok.protocols.augment.reply_job import (
    Decode,
    Defaults,
    LineReply,
    ObjectReply,
    ReplyFacts,
)

R = TypeVar("R", bound=LineReply | ObjectReply)
FACTS = ReplyFacts("r-1")
PLAIN = Defaults()


def texts(chat: ChatRequest, role: Role = Role.USER) -> str:
    """Return all text of a request's messages of one role."""
    return "\n".join(
        part.text
        for message in chat.messages
        if message.role is role
        for part in message.parts
        if isinstance(part, TextPart)
    )


def events(*said: str, finish: FinishReason = FinishReason.STOP) -> list[StreamEvent]:
    return [*map(TextDelta, said), Finish(finish)]


@dataclass
class Ran:
    """What became of an answer: the lines, or the error that ended it."""

    lines: list[Any]
    error: ByokError | None = None

    @property
    def text(self) -> str:
        return "".join(line["text"] for line in self.lines)


def reply_to(decode: Decode[R], body: Json, facts: ReplyFacts = FACTS) -> R:
    """Return the reply of an endpoint to a body; without messages no model is asked."""
    job = decode(body, PLAIN)
    return job.reply(replace(facts, is_asked=bool(job.chat.messages)))


def streamed(
    decode: Decode[LineReply],
    body: Json,
    answer: Iterable[StreamEvent],
    facts: ReplyFacts = FACTS,
) -> Ran:
    """Feed an answer to the reply of a streamed endpoint."""
    reply = reply_to(decode, body, facts)
    lines = [line for event in answer for line in reply.feed(event)]
    try:
        return Ran([*lines, *reply.flush()])
    except ByokError as error:
        return Ran([*lines, *reply.fail(error)], error)


def whole(
    decode: Decode[ObjectReply],
    body: Json,
    answer: Iterable[StreamEvent],
    facts: ReplyFacts = FACTS,
) -> Any:
    """Feed an answer to the reply of a whole one; raises what it raises."""
    reply = reply_to(decode, body, facts)
    for event in answer:
        assert not list(reply.feed(event))
    try:
        [found] = reply.flush()
    except ByokError as error:
        return reply.fail_whole(error)
    return found


def never_fails(decode: Callable[..., Any], body: Json) -> None:
    """Read an odd body: an error is one of the body, and not lasting as a 5xx."""
    try:
        reply = reply_to(decode, body)
        for event in events("EDIT: x\n1"):
            list(reply.feed(event))
        list(reply.flush())
    except ByokError as error:
        assert error.status == 422
