"""Short texts for a chat: titles, completions of the input, enhanced prompts."""

import re
from collections.abc import Iterator

from byok.core.chat import Json
from byok.core.stage import chain
from byok.protocols.augment.body import first_text
from byok.protocols.augment.completion import CompletionObject, Cutter
from byok.protocols.augment.nodes import read_turn, unknown_note
from byok.protocols.augment.positions import Trimmer
from byok.protocols.augment.prompts.completion import (
    ask_for_rest,
    cursor_of,
    marked,
)
from byok.protocols.augment.prompts.prompt_parts import NOTHING, conversation, question
from byok.protocols.augment.remarks import MARKDOWN, FenceRemover, LeadRemover
from byok.protocols.augment.reply_job import Defaults, ReplyFacts, ReplyJob
from byok.protocols.augment.text_reply import TextLines, WholeObject, empty_answer_error

MAX_WORDS, MAX_CHARS = 8, 60
_QUOTES = "\"'`“”„‘’«»* \t"
_LABEL = re.compile(r"(?i)^(?:title|titel|titre|título|标题)\s*[:：]\s*")
_PERIODS = ".。"
_COLONS = (":", "：")


def decode_title(body: Json, defaults: Defaults) -> ReplyJob["TitleObject"]:
    """Decode /generate-conversation-title; an empty conversation gets no title."""
    turn = read_turn(body, first_text(body, "message", "prompt"))
    newest = f"User: {turn.words[:4000]}" if turn.words else ""
    blocks = [block for block in (conversation(body), newest) if block]
    if not blocks:
        return ReplyJob(NOTHING, TitleObject)
    note = unknown_note(turn)
    chat = question(body, defaults, "title", blocks, whole=True, note=note)
    return ReplyJob(chat, TitleObject)


class TitleObject(WholeObject):
    """An ObjectReply with the title as `text` and as `title`: clients differ."""

    def __init__(self, facts: ReplyFacts) -> None:
        super().__init__(Trimmer(), facts)

    def flush(self) -> Iterator[Json]:
        """Return the title.

        Raises:
            UpstreamGarbled: the model wrote no title.
        """
        title = tidy(self.so_far())
        if self._facts.is_asked and not title:
            raise self._reported_failure() or empty_answer_error()
        yield {"text": title, "title": title}


def tidy(answer: str) -> str:
    """Return the first line with words, without marks around the title."""
    label = ""  # a line that ends in a colon
    for line in answer.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            continue
        bare = _LABEL.sub("", line.lstrip("# ").strip(_QUOTES)).strip(_QUOTES)
        bare = bare.rstrip(_PERIODS + _QUOTES)
        if bare.endswith(_COLONS):  # it announces the title, if more follows
            label = label or bare.rstrip("".join(_COLONS))
        elif bare:
            return _shorten(" ".join(bare.split()))
    return _shorten(" ".join(label.split()))


def _shorten(title: str) -> str:
    words = title.split(" ")
    title = " ".join(words[:MAX_WORDS])
    if len(title) <= MAX_CHARS:
        return title
    cut = title[:MAX_CHARS]
    return cut.rpartition(" ")[0] or cut


def decode_chat_input(body: Json, defaults: Defaults) -> ReplyJob[CompletionObject]:
    """Decode /chat-input-completion: the text around the cursor, the conversation."""
    cursor = cursor_of(body)
    typed = f"[what is being typed]\n{marked(cursor)}"
    blocks = (conversation(body), typed)
    chat = ask_for_rest(body, defaults, "chat_input", cursor, blocks)

    def reply(facts: ReplyFacts) -> CompletionObject:
        clean = chain(LeadRemover(), FenceRemover(MARKDOWN))
        return CompletionObject(Cutter(cursor, clean, one_line=True), cursor, facts)

    return ReplyJob(chat, reply)


def decode_enhancer(body: Json, defaults: Defaults) -> ReplyJob[TextLines]:
    """Decode /prompt-enhancer; if it fails, the user's prompt is the answer."""
    turn = read_turn(body, first_text(body, "message", "prompt", "instruction"))

    def reply(facts: ReplyFacts) -> TextLines:
        clean = chain(FenceRemover(MARKDOWN), Trimmer())
        return TextLines(clean, facts, instead=turn.words)

    if not turn.words:
        return ReplyJob(NOTHING, reply)
    blocks = (conversation(body), f"[prompt to rewrite]\n{turn.words}")
    note = unknown_note(turn)
    chat = question(body, defaults, "enhance", blocks, whole=True, note=note)
    return ReplyJob(chat, reply)
