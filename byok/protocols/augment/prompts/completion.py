"""/completion: predict what the user types next."""

from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from byok.core.chat import ChatRequest, FimRequest, Json
from byok.core.stage import chain
from byok.protocols.augment.body import first_text, flag, integer, text
from byok.protocols.augment.completion import CompletionObject, Cursor, Cutter
from byok.protocols.augment.models import PREFIX_CHARS, SUFFIX_CHARS
from byok.protocols.augment.nodes import edit_events
from byok.protocols.augment.prompts.edit import path_line, without_fence
from byok.protocols.augment.prompts.prompt_parts import NOTHING, code, question
from byok.protocols.augment.remarks import LeadRemover
from byok.protocols.augment.reply_job import Defaults, ReplyFacts, ReplyJob

_MARK = "CURSOR"
_LONGEST_PATH = 4096  # that is kept with a prediction


def decode(body: Json, defaults: Defaults) -> ReplyJob[CompletionObject]:
    """Read the text around the cursor; the offsets in the body add nothing to it."""
    cursor = cursor_of(body)
    blocks = (
        path_line(body),
        edit_events(body),
        code("the code", marked(cursor), text(body, "lang")),
    )
    chat = ask_for_rest(body, defaults, "completion", cursor, blocks)
    if chat.messages:
        fill = FimRequest(cursor.head, cursor.tail, cursor.one_line)
        chat = replace(chat, fim=fill)
    return ReplyJob(chat, partial(_reply, body, cursor))


def cursor_of(body: Json) -> Cursor:
    """Read the cursor and as much text around it as models are shown.

    A full window begins with a whole line, so that it stays the same while a line is
    typed and upstreams can reuse their prompt cache.
    """
    before = first_text(body, "prompt", "prefix")
    if len(before) >= PREFIX_CHARS:
        before = before[-PREFIX_CHARS:]
        before = before.partition("\n")[2] or before
    after, path = text(body, "suffix")[:SUFFIX_CHARS], text(body, "path")
    return Cursor(before, after, path[-_LONGEST_PATH:])


def marked(cursor: Cursor) -> str:
    """Return the text with a mark where the cursor is."""
    mark = unused_mark(cursor.head + cursor.tail)
    return f"{cursor.head}{mark}{cursor.tail}"


def ask_for_rest(
    body: Json, defaults: Defaults, prompt: str, cursor: Cursor, blocks: Iterable[str]
) -> ChatRequest:
    """Return the question what follows, no longer than the client and the user want.

    A probe only asks for the facts, and where there is no text nothing follows.
    """
    if flag(body, "probe_only") or not (cursor.before + cursor.after).strip():
        return NOTHING
    most, asked = defaults.sampling.max_tokens, integer(body, "max_tokens")
    if asked > 0 and (most is None or asked < most):
        shorter = replace(defaults.sampling, max_tokens=asked)
        defaults = replace(defaults, sampling=shorter)
    mark = unused_mark(cursor.head + cursor.tail)
    return question(body, defaults, prompt, blocks, {"mark": mark})


def unused_mark(code: str) -> str:
    """Put brackets around the mark until it does not occur in the code."""
    count = 2
    while (found := "[" * count + _MARK + "]" * count) in code:
        count *= 2
    return found


def _reply(body: Json, cursor: Cursor, facts: ReplyFacts) -> CompletionObject:
    clean = chain(LeadRemover(), without_fence(body, cursor.before, cursor.after))
    return CompletionObject(Cutter(cursor, clean), cursor, facts)
