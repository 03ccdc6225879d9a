"""Questions of /v1 clients: passed on, or translated for the upstream's dialect."""

import logging
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from aiohttp.web_response import Response, StreamResponse
from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.bounded import SaidOnce
from byok.core.chat import ChatRequest
from byok.core.errors import BadRequest, ByokError
from byok.core.events import Usage
from byok.core.late import late_function
from byok.core.threads import Runner, inline
from byok.core.wire.encrypted_content import holds_encrypted
from byok.core.wire.json_body import with_string
from byok.core.wire.sse import encode_data, encode_named
from byok.dialects.openai_chat.chunks import usage_near_end
from byok.features.base import Asking, Verdict
from byok.protocols.augment.body import first_text
from byok.protocols.v1.block_reply import (
    BlockReply,
    Question,
    ReplyHead,
    WholeReply,
)
from byok.protocols.v1.fields import anthropic_error, openai_error
from byok.protocols.v1.recent_answers import RecentAnswers
from byok.server.admission import Admission
from byok.server.http.reply import BASE_HEADERS, HttpExchange, error_for_user
from byok.server.http.stream import LineStream, OpenStream
from byok.server.model_answer import (
    AnswerTools,
    LateAnswer,
    ModelAnswer,
    StreamedAnswer,
    answer_whole,
    answer_with,
)
from byok.server.openai_api import Ask, ClientApi, CountTokens, Forward, client_api
from byok.upstream.base import Destination, ForwardedResponse
from byok.upstream.http_body import read_to_end
from byok.upstream.moments import BY_CLIENT, BY_DEFAULT, ChatFacts, Moments, facts_of
from byok.upstream.router import Router
from byok.upstream.window.estimate import (
    BYTES_A_TOKEN,
    weigh_tools,
    weigh_without_thoughts,
)

_log = logging.getLogger(__name__)
_TYPE = "content-type"
_JSON = {_TYPE: "application/json"}
_PASSED_HEADERS = ("anthropic-version", "anthropic-beta")
_HEADER_VALUE = re.compile(r"[ -~]{1,1000}")
_FAILURE_EVENTS = late_function("byok.protocols.v1.responses:failure_events")
_USAGE_TAIL_BYTES = 4096  # at the end of a stream, where it reports its tokens
_MAX_LOGGED_NAMES = 200


class Translator(Struct, frozen=True):
    """Answers the Forward routes: passed on, or translated if no upstream has them."""

    router: Router
    tools: AnswerTools
    admission: Admission
    open_stream: Callable[..., LineStream]
    admit: Callable[[Asking], Awaitable[Verdict]]
    moments: Moments
    recent: RecentAnswers
    logged_names: SaidOnce = field(default_factory=lambda: SaidOnce(_MAX_LOGGED_NAMES))

    async def prepare(
        self,
        row: Forward,
        raw: bytes,
        body: dict[str, Any],
        exchange: HttpExchange,
        run: Runner,
    ) -> LateAnswer:
        """Choose the model, and pass the request on if its API has this protocol.

        A conversation is always translated if it refers to an answer that only byok has
        stored, or holds reasoning in byok's envelope, which only the API of its origin
        can read.

        Raises:
            BadRequest: byok cannot translate the body; 402, a cap is reached.
        """
        original_body, body = body, await run(partial(self.recent.fill_in, body))
        destination = await self.router.choose_listed(first_text(body, "model"))
        if isinstance(row, Ask):
            destination = await self._choose_for_moment(row, body, destination, run)
        upstream, model = destination.upstream, destination.model
        is_byoks = body is not original_body or holds_encrypted(raw)
        has_same_api = upstream.serves(row.upstream_path, model) and not is_byoks
        if has_same_api or not isinstance(row, (Ask, CountTokens)):
            if not isinstance(row, CountTokens):
                await self._ask_features(exchange, destination)
            content = await run(partial(with_string, raw, body, "model", model))
            return partial(self._forward, row, exchange, destination, content)
        question: Question = await run(partial(row.decode, body))
        for name in filter(self.logged_names.is_new, question.left_out):
            _log.info("not passed on to models: %s", name)
        if isinstance(row, CountTokens):
            count = {"input_tokens": estimate_tokens(question)}
            return partial(answer_with, {**count, **row.about})
        verdict = await self._ask_features(exchange, destination, question.chat, run)
        if verdict.chat is not None:
            question = replace(question, chat=verdict.chat)
        head = ReplyHead(
            exchange.request_id, destination.model, int(time.time()), self.recent.keep
        )
        pieces = await run(partial(question.reply, head))
        return self._ask(row, question, pieces, exchange, destination, verdict)

    async def _choose_for_moment(
        self, row: Ask, body: dict[str, Any], usual: Destination, run: Runner
    ) -> Destination:
        """Return the destination of a question, which depends on its moment."""
        rule = BY_CLIENT if first_text(body, "model") else BY_DEFAULT
        facts = ChatFacts()
        if self.moments.models:
            facts = await run(partial(_read_facts, row, body))
        return await self.moments.choose(usual, rule, facts)

    async def _ask_features(
        self,
        exchange: HttpExchange,
        destination: Destination,
        chat: ChatRequest | None = None,
        run: Runner = inline,
    ) -> Verdict:
        name, model = destination.upstream.name, destination.model
        asking = Asking(exchange.record, name, model, chat, run=run)
        verdict = await self.admit(asking)
        if verdict.refusal is not None:
            raise verdict.refusal
        return verdict

    def _ask(
        self,
        row: Ask,
        question: Question,
        pieces: BlockReply,
        exchange: HttpExchange,
        destination: Destination,
        verdict: Verdict,
    ) -> LateAnswer:
        answer = partial(
            ModelAnswer,
            destination,
            question.chat,
            record=exchange.record,
            tools=self.tools,
            verdict=verdict,
            logs_notices=True,
        )
        if not question.stream:
            whole = answer(reply=WholeReply(pieces))
            return partial(answer_whole, whole, None, self.admission)
        return StreamedAnswer(
            exchange,
            answer(reply=pieces),
            None,
            self.admission,
            self.open_stream,
            row.encode,
            fails_with_status=True,
        ).answer

    async def _forward(
        self,
        row: Forward,
        exchange: HttpExchange,
        destination: Destination,
        content: bytes,
    ) -> StreamResponse:
        """Send a request, and pass the answer on, as a stream if it is one.

        Raises:
            ByokError: before anything was sent to the client.
        """
        upstream, record = destination.upstream, exchange.record
        record.upstream, record.model = upstream.name, destination.model
        path = row.upstream_path
        opened = upstream.forward(path, content, _passed_headers(row, exchange))
        async with self.admission.gate.enter(), AsyncExitStack() as stack:
            async with self.admission.gate.raise_on_stop():
                answer = await stack.enter_async_context(opened)
                record.note_first_byte()
                headers = {**BASE_HEADERS, **_JSON, **answer.headers}
                if not headers[_TYPE].startswith("text/event-stream"):
                    whole = await read_to_end(answer.reads)
                    record.usage = _count_tokens(path, whole)
                    return Response(body=whole, headers=headers)
            return await self._stream(path, exchange, headers, answer)

    async def _stream(
        self,
        path: str,
        exchange: HttpExchange,
        headers: dict[str, str],
        answer: ForwardedResponse,
    ) -> StreamResponse:
        tail = b""
        stream = OpenStream(exchange, headers)
        try:
            async with self.admission.gate.raise_on_stop():
                async for data in answer.reads:
                    tail = (tail + data)[-_USAGE_TAIL_BYTES:]
                    await stream.write(data)
            exchange.record.usage = _count_tokens(path, tail)
        except ByokError as error:
            if not stream.response.prepared:
                raise
            await stream.write(self._failure_event(path, error, exchange))
        await stream.finish()
        return stream.response

    def _failure_event(
        self, path: str, error: ByokError, exchange: HttpExchange
    ) -> bytes:
        """Return the event with which this API reports a failure inside a stream."""
        record = exchange.record
        model = record.model_id
        _log.warning("a stream from %s broke: %s", model, error.log_text)
        record.note_error(error)
        safe = error_for_user(error, self.tools.redactor)
        if path == "responses":
            head = ReplyHead(record.request_id, record.model, int(time.time()))
            event = b"".join(map(encode_named, _FAILURE_EVENTS(safe, head)))
        elif client_api(exchange.request.raw_path) is ClientApi.ANTHROPIC:
            event = encode_named(anthropic_error(safe, record.request_id))
        else:
            event = encode_data(openai_error(safe))
        return b"\n\n" + event


def _read_facts(row: Ask, body: dict[str, Any]) -> ChatFacts:
    """Return the facts about a question; no facts if byok cannot decode it."""
    try:
        chat = row.decode(body).chat
    except BadRequest:
        return ChatFacts()  # an upstream with this API may still answer it
    return facts_of(chat.messages, chat.tools)


def estimate_tokens(question: Question) -> int:
    """Estimate the length of a prompt from its size in bytes."""
    chat = question.chat
    weight = sum(map(weigh_without_thoughts, chat.messages)) + weigh_tools(chat.tools)
    return int(weight / BYTES_A_TOKEN) + 1


def _count_tokens(path: str, answer: bytes) -> Usage | None:
    """Read the token counts; Anthropic counts cached tokens separately."""
    usage = usage_near_end(answer)
    if usage is None or path != "messages":
        return usage
    cached = usage.cache_read_tokens + usage.cache_creation_tokens
    return usage.plus(Usage(input_tokens=cached))


def _passed_headers(row: Forward, exchange: HttpExchange) -> dict[str, str]:
    """Return the client's headers that affect the answer of Anthropic's API."""
    if not row.upstream_path.startswith("messages"):
        return {}
    headers = exchange.request.headers
    passed = {name: ",".join(headers.getall(name, ())) for name in _PASSED_HEADERS}
    return {n: value for n, value in passed.items() if _HEADER_VALUE.fullmatch(value)}
