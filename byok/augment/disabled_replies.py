"""Replies of endpoints whose group the user disabled.

They do as little harm as possible: a model's answer fails, an upload is accepted and
dropped, a fixed reply stays the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from byok.augment.blobs import (
    checkpoint_reply,
    decode_uploads,
    missing_reply,
    upload_reply,
)
from byok.augment.constant_replies import ConstantReply
from byok.augment.endpoints import Endpoint, Generate, Local, Refused, Streamed, Whole
from byok.augment.reply_job import DecodeState, Defaults, ReplyFacts
from byok.augment.retrieval import encode_retrieval
from byok.chat import Json
from byok.code_query import Retrieval
from byok.errors import BadRequest
from byok.routing import EndpointGroup, Service

CHECKPOINT = "off"  # unknown later, so that clients send all names again


@dataclass(frozen=True, slots=True)
class Off:
    """The reply: lines of a stream, or one object."""

    lines: Sequence[Json]
    stream: bool = False


def disabled_error(group: EndpointGroup) -> BadRequest:
    """Return the error for a group that is disabled."""
    return BadRequest(
        f"The endpoint group {group} is disabled.",
        code="switched_off",
        hint=f"See the setting {group} in [routing.official].",
        status=422,
    )


def off_answer(row: Endpoint, group: EndpointGroup, body: Json, request_id: str) -> Off:
    """Return the reply of a disabled endpoint.

    Raises:
        BadRequest: 422, every possible reply would do harm.
    """
    match row:
        case Generate():
            return _streamed_failure(row, disabled_error(group), body, request_id)
        case Local():
            return Off([_nothing(row.answer, group, body)])
        case ConstantReply(stream=stream, body=line):
            return Off([] if line is None else [line], stream)
        case Refused():
            raise BadRequest(row.reason, code="not_served", status=row.status)
        case _:
            assert_never(row)


def _streamed_failure(
    row: Generate, error: BadRequest, body: Json, request_id: str
) -> Off:
    match row.how:
        case Streamed(decode):
            lines = decode(body, Defaults(), DecodeState()).reply(
                ReplyFacts(request_id)
            )
            if not lines.keeps_part:
                raise error
            first = () if lines.first is None else (lines.first,)
            return Off([*first, *lines.fail(error)], stream=True)
        case Whole(decode):
            whole = decode(body, Defaults(), DecodeState()).reply(
                ReplyFacts(request_id)
            )
            return Off([whole.fail_whole(error)])


def _nothing(service: str, group: EndpointGroup, body: Json) -> Json:
    match service:
        case Service.FIND_MISSING:
            return missing_reply((), ())
        case Service.BATCH_UPLOAD:
            sent = decode_uploads(body)
            return upload_reply(sent, [""] * len(sent))
        case Service.CHECKPOINT:
            return checkpoint_reply(CHECKPOINT)
        case Service.RETRIEVAL:
            return encode_retrieval(Retrieval(disabled_error(group).sentence))
        case _:
            raise disabled_error(group)
