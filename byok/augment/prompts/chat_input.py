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
    defaults = with_client_limit(body, defaults)
    chat = question(body, defaults, "chat_input", blocks, {"mark": mark})
    return ReplyJob(chat, reply)


def _reply(cursor: Cursor, facts: ReplyFacts) -> CompletionObject:
    clean = chain(Unannounced(), Unfenced(MARKDOWN))
    return CompletionObject(Cutter(cursor, clean, one_line=True), cursor, facts)
