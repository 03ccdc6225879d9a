"""/prompt-enhancer: improve the wording of the user's prompt."""

from functools import partial

from byok.augment.body import first_text
from byok.augment.endings import Trimmed
from byok.augment.fences import MARKDOWN, Unfenced
from byok.augment.nodes import read_turn
from byok.augment.prompts.prompt_parts import NOTHING, conversation, question
from byok.augment.reply_job import DecodeState, Defaults, ReplyFacts, ReplyJob
from byok.augment.text_reply import TextLines
from byok.chat import Json
from byok.stage import chain


def decode(body: Json, defaults: Defaults, state: DecodeState) -> ReplyJob[TextLines]:
    """Read the prompt and the conversation so far."""
    turn = read_turn(body, first_text(body, "message", "prompt", "instruction"))
    for kind in turn.unknown_types:
        state.note_unknown(kind)
    words = turn.words
    if not words:
        return ReplyJob(NOTHING, partial(_reply, ""))
    blocks = (conversation(body), f"[prompt to rewrite]\n{words}")
    chat = question(body, defaults, "enhance", blocks, whole=True)
    return ReplyJob(chat, partial(_reply, words))


def _reply(words: str, facts: ReplyFacts) -> TextLines:
    """Clean the answer; after a failure the user's own prompt is returned."""
    clean = chain(Unfenced(MARKDOWN), Trimmed())
    return TextLines(clean, facts, asked=bool(words), instead=words)
