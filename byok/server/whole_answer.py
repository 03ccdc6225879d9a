"""A model's answer as one object."""

from dataclasses import dataclass

from aiohttp.web import StreamResponse

from byok.augment.conversation import Place
from byok.augment.reply_job import ObjectReply
from byok.errors import ByokError
from byok.server.admission import Admission
from byok.server.http.reply import json_response
from byok.server.model_answer import ModelAnswer


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """Answers with one object at the end; `place` is that in the conversation."""

    model_answer: ModelAnswer
    reply: ObjectReply
    place: Place | None
    admission: Admission

    async def answer(self) -> StreamResponse:
        """Answer; a failure is an error, or what the reply makes of it."""
        model_answer = self.model_answer
        try:
            async with (
                self.admission.enter(self.place),
                model_answer.events() as batches,
            ):
                async for batch in batches:
                    model_answer.lines(batch)
            if not model_answer.ended:
                model_answer.end()
        except ByokError as error:
            if not model_answer.begun:
                raise
            if not model_answer.ended:  # a whole answer cannot fail any more
                failure = model_answer.note_failure(error)
                return json_response(self.reply.fail_whole(failure))
        return json_response(model_answer.last[-1])
