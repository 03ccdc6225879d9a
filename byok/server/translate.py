"""Questions of other clients: passed on, or translated for the upstream's dialect."""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from byok.core.bounded import SaidOnce
from byok.core.chat import ChatRequest
from byok.core.threads import Runner, inline
from byok.core.wire.encrypted_content import holds_encrypted
from byok.features.base import Asking, Verdict
from byok.protocols.augment.body import first_text
from byok.protocols.v1.block_reply import Question, ReplyHead, WholeReply
from byok.server.admission import Admission
from byok.server.answerable import Answerable, ConstantAnswer
from byok.server.forward import Forwarder
from byok.server.http.reply import HttpExchange
from byok.server.http.stream import LineStream
from byok.server.model_answer import (
    AnswerTools,
    ModelAnswer,
    StreamedAnswer,
    WholeAnswer,
)
from byok.server.openai_api import Ask, CountTokens, Forward
from byok.upstream.base import Destination
from byok.upstream.router import Router
from byok.upstream.window.estimate import BYTES_A_TOKEN, weigh_said, weigh_tools

_log = logging.getLogger(__name__)
_MAX_TOLD = 200


class Translator:
    """Answers the Forward routes: what an upstream does not serve is translated."""

    def __init__(
        self,
        router: Router,
        forwarder: Forwarder,
        tools: AnswerTools,
        admission: Admission,
        open_stream: Callable[[HttpExchange], LineStream],
        admit: Callable[[Asking], Awaitable[Verdict]],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._router = router
        self._forwarder = forwarder
        self._tools = tools
        self._admission = admission
        self._open_stream = open_stream
        self._admit = admit
        self._clock = clock
        self._said = SaidOnce(_MAX_TOLD)

    async def understand(
        self,
        row: Forward,
        raw: bytes,
        body: dict[str, Any],
        exchange: HttpExchange,
        run: Runner,
    ) -> Answerable:
        """Choose the model, and pass the request on if its API has this protocol.

        Reasoning in byok's own envelope came from another API, which alone can read it:
        such a conversation is always translated.

        Raises:
            BadRequest: the body asks for what byok cannot translate; 402, a cap is
                reached.
        """
        destination = await self._router.choose_listed(first_text(body, "model"))
        upstream, model = destination.upstream, destination.model
        own = upstream.serves(row.upstream_path, model) and not holds_encrypted(raw)
        if own or not isinstance(row, (Ask, CountTokens)):
            if not isinstance(row, CountTokens):
                await self._judge(exchange, destination)
            return await self._forwarder.understand(
                row, raw, body, exchange, run, destination
            )
        question: Question = await run(partial(row.decode, body))
        self._log_left_out(question)
        if isinstance(row, CountTokens):
            return ConstantAnswer({"input_tokens": estimate_tokens(question)})
        verdict = await self._judge(exchange, destination, question.chat, run)
        if verdict.chat is not None:
            question = replace(question, chat=verdict.chat)
        return self._ask(row, question, exchange, destination, verdict.answer)

    async def _judge(
        self,
        exchange: HttpExchange,
        destination: Destination,
        chat: ChatRequest | None = None,
        run: Runner = inline,
    ) -> Verdict:
        name, model = destination.upstream.name, destination.model
        asking = Asking(exchange.record, name, model, chat, run=run)
        verdict = await self._admit(asking)
        if verdict.refusal is not None:
            raise verdict.refusal
        return verdict

    def _ask(
        self,
        row: Ask,
        question: Question,
        exchange: HttpExchange,
        destination: Destination,
        own_answer: str,
    ) -> Answerable:
        created = int(self._clock())
        head = ReplyHead(exchange.request_id, destination.model, created)
        pieces = question.reply(head)
        reply = pieces if question.stream else WholeReply(pieces)
        answer = ModelAnswer(
            destination,
            question.chat,
            reply,
            exchange.record,
            self._tools,
            logs_notices=True,
            own_answer=own_answer,
        )
        if isinstance(reply, WholeReply):
            return WholeAnswer(answer, reply, None, self._admission)
        return StreamedAnswer(
            exchange,
            answer,
            reply,
            None,
            self._admission,
            self._open_stream,
            row.encode,
            fails_with_status=True,
        )

    def _log_left_out(self, question: Question) -> None:
        """Log once what is not passed on."""
        for what in question.left_out:
            if self._said.is_new(what):
                _log.info("not passed on to models: %s", what)


def estimate_tokens(question: Question) -> int:
    """Estimate the length of a prompt from its size in bytes."""
    chat = question.chat
    weight = sum(map(weigh_said, chat.messages)) + weigh_tools(chat.tools)
    return int(weight / BYTES_A_TOKEN) + 1
