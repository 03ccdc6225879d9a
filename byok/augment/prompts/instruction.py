"""/instruction-stream: rewrite the selection while the user watches."""

from functools import partial

from byok.augment.endings import Endings
from byok.augment.prompts.edit import build_question, clean
from byok.augment.prompts.editing import selection_region
from byok.augment.replacement import ReplacementLines
from byok.augment.reply_job import DecodeState, Defaults, ReplyJob
from byok.chat import Json
from byok.stage import chain


def decode(
    body: Json, defaults: Defaults, state: DecodeState
) -> ReplyJob[ReplacementLines]:
    """Read the selection, its lines, and the instruction."""
    del state
    chat = build_question(body, defaults)
    region = selection_region(body)
    stage = clean(body)
    if region.head and not region.old:  # a place inside a line: no line ends there
        stage = chain(stage, Endings("", last=False))
    return ReplyJob(chat, partial(ReplacementLines, stage, region))
