"""The handler for each kind of row that byok itself answers."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from byok.augment.body import first_text
from byok.augment.chat_request import model_id
from byok.augment.constant_replies import ConstantReply
from byok.augment.endpoints import Completing, Generate, Local, Refused
from byok.augment.silent_purposes import purpose_of_chat
from byok.chat import Json
from byok.errors import BadRequest
from byok.model_ids import MAX_ID_LENGTH
from byok.purposes import Purpose
from byok.routing import Service
from byok.server.answerable import (
    Answerable,
    ConstantAnswer,
    ConstantStream,
    ObjectAnswer,
)
from byok.server.completions import Completer
from byok.server.folders import OpenFolders, window_of
from byok.server.generate import Generator
from byok.server.http.exchange import HttpExchange
from byok.server.model_lists import ModelLists
from byok.server.openai_api import CODEX_VERSION, Ask, Forward, ListModels
from byok.server.routes import Row
from byok.server.translate import Translator
from byok.threads import Runner
from byok.upstream.chat_places import ChatPlaces

LocalHandler: TypeAlias = Callable[[Json], Awaitable[Json]]


class Handlers:
    """Understands requests by their rows."""

    def __init__(
        self,
        generator: Generator,
        completer: Completer,
        translator: Translator,
        models: ModelLists,
        local: Mapping[str, LocalHandler],
        places: ChatPlaces,
    ) -> None:
        """Take the handlers; `local` are those of the Local rows, by their answers."""
        self._generator = generator
        self._completer = completer
        self._translator = translator
        self._models = models
        self._local = local
        self._places = places
        self._folders = OpenFolders()

    def note(self, row: Row, exchange: HttpExchange, body: Json) -> None:
        """Take note of what a request tells about itself, whoever answers it."""
        record = exchange.record
        if isinstance(row, Generate):
            self._folders.note(exchange.request.headers, body)
            is_chat = row.purpose is Purpose.CHAT
            record.purpose = purpose_of_chat(body) if is_chat else row.purpose
            record.model_asked = model_id(body)[:MAX_ID_LENGTH]
        elif isinstance(row, Forward):
            record.purpose = Purpose.CHAT if isinstance(row, Ask) else ""
            record.model_asked = first_text(body, "model")[:MAX_ID_LENGTH]

    async def understand(
        self,
        row: Row,
        exchange: HttpExchange,
        raw: bytes,
        body: dict[str, Any],
        run: Runner,
    ) -> Answerable:
        """Read a body; `raw` are its bytes.

        Raises:
            BadRequest: the body cannot be used, or the endpoint is not served.
        """
        match row:
            case Generate(how=Completing(decode)):
                return await self._completer.understand(
                    row, decode, body, exchange, run
                )
            case Generate():
                return await self._generator.understand(row, body, exchange, run)
            case Forward():
                return await self._translator.understand(row, raw, body, exchange, run)
            case ListModels(wanted=wanted):
                codex = CODEX_VERSION in exchange.request.query
                answer = partial(self._models.for_openai, wanted, is_for_codex=codex)
                return ObjectAnswer(answer)
            case Local(answer=service):
                if service is Service.RETRIEVAL:
                    body = self._add_window(exchange, body)
                return ObjectAnswer(partial(self._local[service], body))
            case ConstantReply(stream=True):
                lines = () if row.body is None else (row.body,)
                return ConstantStream(exchange, lines)
            case ConstantReply():
                return ConstantAnswer(row.body or {})
            case Refused():
                raise BadRequest(row.reason, code="not_served", status=row.status)

    def _add_window(self, exchange: HttpExchange, body: Json) -> dict[str, Any]:
        """Add what chats told about the window from which a question comes."""
        headers = exchange.request.headers
        exchange.record.chat_upstreams = self._places.find(window_of(headers))
        return dict(self._folders.add_folders(headers, body))
