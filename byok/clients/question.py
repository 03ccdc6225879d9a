"""The type of a decoded body: what to ask a model, and how to write the answer."""

from collections.abc import Callable
from dataclasses import dataclass

from byok.chat import ChatRequest
from byok.clients.block_reply import BlockReply, ReplyHead


@dataclass(frozen=True, slots=True)
class Question:
    """A decoded body.

    `stream`: the answer is to be streamed. `left_out` names what the body asks for and
    byok does not pass on.
    """

    chat: ChatRequest
    stream: bool
    reply: Callable[[ReplyHead], BlockReply]
    left_out: tuple[str, ...] = ()
