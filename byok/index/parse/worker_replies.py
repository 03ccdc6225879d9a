"""Reading what a worker process sends.

A parser is native code that reads files of strangers, so what its process sends is not
trusted: it may name no class but those of a reply, and must answer the jobs it got.
"""

import pickle
from collections.abc import Sequence
from io import BytesIO

from byok.index.parse.worker import WorkerReply
from byok.index.types import (
    Document,
    FileFacts,
    ParseJob,
    ParseOutcome,
    Prepared,
    SkipReason,
    Span,
)

_CLASSES = {
    (made.__module__, made.__name__): made
    for made in (WorkerReply, FileFacts, Prepared, Document, Span, SkipReason)
}


class UnreadableReply(Exception):
    """What a worker sent is no reply to the jobs it got."""


def read_message(received: bytes) -> object:
    """Return what was sent.

    Raises:
        UnreadableReply: it is damaged, or made of other classes.
    """
    try:
        return _Unpickler(BytesIO(received)).load()
    except Exception as error:  # a damaged pickle may raise anything
        raise UnreadableReply(type(error).__name__) from error


def read_outcomes(message: object, batch: Sequence[ParseJob]) -> list[ParseOutcome]:
    """Return the outcomes of the first jobs of a batch.

    Raises:
        UnreadableReply: the message does not answer them.
    """
    if not isinstance(message, list) or not 0 < len(message) <= len(batch):
        raise UnreadableReply("not a list of replies")
    outcomes = []
    for job, reply in zip(batch, message, strict=False):
        if not isinstance(reply, WorkerReply) or reply.key != job.key:
            raise UnreadableReply("a reply to another job")
        if not isinstance(reply.prepared, Prepared | None):
            raise UnreadableReply("not a prepared file")
        outcomes.append(ParseOutcome(job, *reply[1:]))
    return outcomes


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        """Return one of the classes that a reply is made of."""
        return _CLASSES[module, name]
