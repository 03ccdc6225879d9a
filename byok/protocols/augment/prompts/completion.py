"""/completion: predict what the user types next."""

from functools import partial

from msgspec.structs import replace

from byok.core.chat import FimRequest, Json
from byok.core.stage import chain
from byok.protocols.augment.body import first_text, flag, integer, text
from byok.protocols.augment.completion import CompletionObject, Cursor, Cutter
from byok.protocols.augment.models import PREFIX_CHARS, SUFFIX_CHARS
from byok.protocols.augment.nodes import edit_events
from byok.protocols.augment.prompts.edit import path_line, without_fence
from byok.protocols.augment.prompts.prompt_parts import NOTHING, code, question
from byok.protocols.augment.remarks import Unannounced
from byok.protocols.augment.reply_job import Defaults, ReplyFacts, ReplyJob

_MARK = "CURSOR"
_LONGEST_PATH = 4096  # that is kept with a prediction


def decode(body: Json, defaults: Defaults) -> ReplyJob[CompletionObject]:
    """Read the text around the cursor; the offsets in the body add nothing to it."""
    cursor = cursor_of(body)
    reply = partial(_reply, body, cursor)
    if not is_wanted(body, cursor):
        return ReplyJob(NOTHING, reply)
    head, tail = cursor.head, cursor.tail
    mark = unused_mark(head + tail)
    blocks = (
        path_line(body),
        edit_events(body),
        code("the code", f"{head}{mark}{tail}", text(body, "lang")),
    )
    defaults = with_client_limit(body, defaults)
    chat = question(body, defaults, "completion", blocks, {"mark": mark})
    fill = FimRequest(head, tail, cursor.one_line)
    return ReplyJob(replace(chat, fim=fill), reply)


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


def is_wanted(body: Json, cursor: Cursor) -> bool:
    """Tell whether there is anything to complete; probes only ask for the facts."""
    blank = not (cursor.before + cursor.after).strip()
    return not (blank or flag(body, "probe_only"))


def with_client_limit(body: Json, defaults: Defaults) -> Defaults:
    """Apply the client's limit if it is below the user's."""
    most, asked = defaults.sampling.max_tokens, integer(body, "max_tokens")
    if asked <= 0 or (most is not None and asked >= most):
        return defaults
    return replace(defaults, sampling=replace(defaults.sampling, max_tokens=asked))


def unused_mark(code: str) -> str:
    """Put brackets around the mark until it does not occur in the code."""
    count = 2
    while (found := "[" * count + _MARK + "]" * count) in code:
        count *= 2
    return found


def _reply(body: Json, cursor: Cursor, facts: ReplyFacts) -> CompletionObject:
    clean = chain(Unannounced(), without_fence(body, cursor.before, cursor.after))
    return CompletionObject(Cutter(cursor, clean), cursor, facts)
