"""Adds retrieved code to a chat, and finds out which blobs are not stored here."""

import logging
from collections.abc import Awaitable
from functools import partial
from typing import TypeVar

from byok.augment.blobs import blob_names
from byok.augment.grounding import with_passages
from byok.augment.reply_job import LineReply, ObjectReply, ReplyFacts, ReplyJob
from byok.chat import ChatRequest, Json
from byok.code_query import BlobNames, CodeContextBlock, CodeQuestion, UnknownBlobs
from byok.config.sections import ChatSettings
from byok.errors import ByokError
from byok.retrieval.code_context import CodeContext
from byok.threads import Runner

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Grounding:
    """Looks up the code that requests are about.

    Where uploads go elsewhere (`keeps_uploads` is False), there is nothing to find, and
    nothing is called unknown: a client would upload it at once.
    """

    def __init__(
        self, context: CodeContext, settings: ChatSettings, *, keeps_uploads: bool
    ) -> None:
        self._context = context
        self._settings = settings
        self._keeps_uploads = keeps_uploads

    async def ground(
        self,
        job: ReplyJob[LineReply | ObjectReply],
        body: Json,
        request_id: str,
        run: Runner,
    ) -> tuple[ChatRequest, ReplyFacts]:
        """Return the chat, with code if it wants some, and the facts about blobs."""
        if not self._keeps_uploads:
            return job.chat, ReplyFacts(request_id)
        wanted = job.wanted
        if wanted is not None and self._settings.retrieval:
            found = await self._find_code(wanted)
            facts = ReplyFacts(
                request_id, found.unknown, found.checkpoint_found, found.chunks
            )
            return with_passages(job.chat, found.text), facts
        names = wanted.blobs if wanted else await run(partial(blob_names, body))
        return job.chat, await self.facts(names, request_id)

    async def facts(self, names: BlobNames, request_id: str) -> ReplyFacts:
        """Return which of the blobs that a request names are not stored here."""
        if names.is_empty or not self._keeps_uploads:
            return ReplyFacts(request_id)
        found = await _look_up(
            self._context.find_unknown(names),
            UnknownBlobs(),
            "nothing is said of blobs",
        )
        return ReplyFacts(request_id, found.names, found.checkpoint_found)

    async def _find_code(self, wanted: CodeQuestion) -> CodeContextBlock:
        """Find code."""
        found = self._context.passages(wanted, self._settings.context_chars)
        return await _look_up(
            found, CodeContextBlock(), "a chat continues without code"
        )


async def _look_up(lookup: Awaitable[T], nothing: T, what: str) -> T:
    """Await a lookup; if it fails, log that and return `nothing`."""
    try:
        return await lookup
    except ByokError as error:
        _log.warning("%s: %s", what, error.sentence)
    except Exception:
        _log.exception("%s", what)
    return nothing
