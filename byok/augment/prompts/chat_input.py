"""/chat-input-completion: complete the sentence that the user types into a chat."""

from functools import partial

from byok.augment.completion.cursor import Cursor
from byok.augment.completion.cut import Cutter
from byok.augment.completion.reply import CompletionObject
from byok.augment.fences import MARKDOWN, Unfenced
from byok.augment.leads import Unannounced
from byok.augment.prompts.completion import (
    cursor_of,
    is_wanted,
    unused_mark,
    with_client_limit,
)
from byok.augment.prompts.prompt_parts import NOTHING, conversation, question
from byok.augment.reply_job import DecodeState, Defaults, ReplyFacts, ReplyJob
from byok.chat import Json
from byok.stage import chain

_MARK = "CURSOR"
_INSTRUCTIONS = """You complete what a programmer types to a coding assistant. \
The place of the cursor is marked {mark}. Write the few words that most likely follow \
there, in the user's language, on one line. Do not repeat what stands before or behind \
it, and do not answer.
Reply with these words alone, or with nothing if the sentence is complete."""


def decode(
    body: Json, defaults: Defaults, state: DecodeState
) -> ReplyJob[CompletionObject]:
    """Read the text around the cursor, and the conversation so far."""
    del state
    cursor = cursor_of(body)
    reply = partial(_reply, cursor)
    if not is_wanted(body, cursor):
        return ReplyJob(NOTHING, reply)
    mark = unused_mark(_MARK, cursor.head + cursor.tail)
    typed = f"[what is being typed]\n{cursor.head}{mark}{cursor.tail}"
    blocks = (conversation(body), typed)
    instructions = _INSTRUCTIONS.format(mark=mark)
    return ReplyJob(
        question(body, with_client_limit(body, defaults), instructions, blocks), reply
    )


def _reply(cursor: Cursor, facts: ReplyFacts) -> CompletionObject:
    clean = chain(Unannounced(), Unfenced(MARKDOWN))
    return CompletionObject(Cutter(cursor, clean, one_line=True), cursor, facts)
