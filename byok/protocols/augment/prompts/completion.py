"""/completion: predict what the user types next."""

from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from byok.core.chat import ChatRequest, FimRequest, Json
from byok.core.stage import chain
from byok.protocols.augment.body import first_text, flag, integer, text
from byok.protocols.augment.completion import CompletionObject, Cursor, Cutter
from byok.protocols.augment.models import PREFIX_CHARS, SUFFIX_CHARS
from byok.protocols.augment.nodes import render_edits
from byok.protocols.augment.prompts.edit import path_line, without_fence
from byok.protocols.augment.prompts.prompt_parts import NOTHING, code, question
from byok.protocols.augment.remarks import LeadRemover
from byok.protocols.augment.reply_job import Defaults, ReplyFacts, ReplyJob

_MARK = "CURSOR"
_MAX_PATH_CHARS = 4096  # stored with a prediction


def decode(body: Json, defaults: Defaults) -> ReplyJob[CompletionObject]:
    """Decode the text around the cursor; the offsets in the body are not needed."""
    cursor = cursor_of(body)
    blocks = (
        path_line(body),
        render_edits(body),
        code("the code", marked(cursor), text(body, "lang")),
    )
    chat = ask_for_rest(body, defaults, "completion", cursor, blocks)
    if chat.messages:
        fim = FimRequest(cursor.head, cursor.tail, cursor.one_line)
        chat = replace(chat, fim=fim)
    return ReplyJob(chat, partial(_reply, body, cursor))


def cursor_of(body: Json) -> Cursor:
    """Return the cursor, with as much text around it as models are shown.

    Text that was cut begins with a whole line. So it stays the same while a line is
    typed, and upstreams can reuse their prompt cache.
    """
    before = first_text(body, "prompt", "prefix")
    if len(before) >= PREFIX_CHARS:
        before = before[-PREFIX_CHARS:]
        before = before.partition("\n")[2] or before
    after, path = text(body, "suffix")[:SUFFIX_CHARS], text(body, "path")
    return Cursor(before, after, path[-_MAX_PATH_CHARS:])


def marked(cursor: Cursor) -> str:
    """Return the text with a mark where the cursor is."""
    mark = unused_mark(cursor.head + cursor.tail)
    return f"{cursor.head}{mark}{cursor.tail}"


def ask_for_rest(
    body: Json, defaults: Defaults, prompt: str, cursor: Cursor, blocks: Iterable[str]
) -> ChatRequest:
    """Return the request for the text at the cursor.

    The answer is as short as the client or the user's settings want it. A probe needs
    no model, because it only requests the retrieval facts; nor does an empty file.
    """
    if flag(body, "probe_only") or not (cursor.before + cursor.after).strip():
        return NOTHING
    limit, requested = defaults.sampling.max_tokens, integer(body, "max_tokens")
    if requested > 0 and (limit is None or requested < limit):
        sampling = replace(defaults.sampling, max_tokens=requested)
        defaults = replace(defaults, sampling=sampling)
    mark = unused_mark(cursor.head + cursor.tail)
    return question(body, defaults, prompt, blocks, {"mark": mark})


def unused_mark(code: str) -> str:
    """Return a mark for the cursor, with more brackets than any in the code."""
    count = 2
    while (mark := "[" * count + _MARK + "]" * count) in code:
        count *= 2
    return mark


def _reply(body: Json, cursor: Cursor, facts: ReplyFacts) -> CompletionObject:
    clean = chain(LeadRemover(), without_fence(body, cursor.before, cursor.after))
    return CompletionObject(Cutter(cursor, clean), cursor, facts)
