"""/edit: rewrite the selection as the user asks."""

from functools import partial

from byok.augment.body import text
from byok.augment.prompts.editing import (
    around,
    cleaning,
    cleaning_whole,
    selected_text,
    wish,
)
from byok.augment.prompts.prompt_parts import code, conversation, question
from byok.augment.reply_job import DecodeState, Defaults, ReplyJob
from byok.augment.text_reply import WholeObject
from byok.chat import ChatRequest, Json
from byok.stage import Stage


def decode(body: Json, defaults: Defaults, state: DecodeState) -> ReplyJob[WholeObject]:
    """Read the selection and the instruction."""
    del state
    beside = text(body, "prefix"), text(body, "suffix")
    whole = cleaning_whole(body, selected_text(body), *beside)
    chat = build_question(body, defaults, whole=True)
    return ReplyJob(chat, partial(WholeObject, whole))


def build_question(
    body: Json, defaults: Defaults, *, whole: bool = False
) -> ChatRequest:
    """Return the request for the new selection; `whole`: see ChatRequest."""
    name, before, after = around(body)
    blocks = (
        conversation(body),
        name,
        before,
        code("the selection", selected_text(body), text(body, "lang")),
        after,
        f"[what to do]\n{wish(body)}",
    )
    return question(body, defaults, "edit", blocks, whole=whole)


def clean(body: Json) -> Stage[str, str]:
    """Return the stage that makes the answer fit the selection."""
    return cleaning(
        body, selected_text(body), text(body, "prefix"), text(body, "suffix")
    )
