"""/generate-conversation-title: one short line for a thread.

Some clients read a stream, others an object: `text` and `title` are the same.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from byok.augment.body import first_text
from byok.augment.endings import Trimmed
from byok.augment.nodes import read_turn
from byok.augment.prompts.prompt_parts import NOTHING, conversation, question
from byok.augment.reply_job import DecodeState, Defaults, ReplyFacts, ReplyJob
from byok.augment.text_reply import WholeText, empty_answer_error
from byok.chat import Json
from byok.errors import ByokError

MAX_WORDS, MAX_CHARS = 8, 60
_QUOTES = "\"'`“”„‘’«»* \t"
_LABEL = re.compile(r"(?i)^(?:title|titel|titre|título|标题)\s*[:：]\s*")
_PERIODS = ".。"
_COLONS = (":", "：")


def decode(
    body: Json, defaults: Defaults, state: DecodeState
) -> ReplyJob["TitleObject"]:
    """Read the conversation; an empty one gets no title."""
    turn = read_turn(body, first_text(body, "message", "prompt"))
    for kind in turn.unknown_types:
        state.note_unknown(kind)
    newest = f"User: {turn.words[:4000]}" if turn.words else ""
    blocks = [block for block in (conversation(body), newest) if block]
    if not blocks:
        return ReplyJob(NOTHING, partial(TitleObject, False))
    chat = question(body, defaults, "title", blocks, whole=True)
    return ReplyJob(chat, partial(TitleObject, True))


class TitleObject(WholeText):
    """ObjectReply with the title, under both of its names."""

    def __init__(self, asked: bool, facts: ReplyFacts) -> None:
        super().__init__(Trimmed())
        self._asked = asked
        del facts

    def flush(self) -> Iterator[Json]:
        """Return the title.

        Raises:
            UpstreamGarbled: the model gave none.
        """
        title = tidy(self.so_far())
        if self._asked and not title:
            raise empty_answer_error()
        yield self._write(title)

    def fail_whole(self, error: ByokError, /) -> Json:
        """Raise the error: the client has a title of its own."""
        raise error

    def _write(self, title: str) -> dict[str, Any]:
        return {"text": title, "title": title}


def tidy(answer: str) -> str:
    """Return the first line with words, without decoration around the title."""
    announced = ""
    for line in answer.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            continue
        bare = _LABEL.sub("", line.lstrip("# ").strip(_QUOTES)).strip(_QUOTES)
        bare = bare.rstrip(_PERIODS + _QUOTES)
        if bare.endswith(_COLONS):  # it announces the title, if more follows
            announced = announced or bare.rstrip("".join(_COLONS))
        elif bare:
            return _short(" ".join(bare.split()))
    return _short(" ".join(announced.split()))


def _short(title: str) -> str:
    words = title.split(" ")
    title = " ".join(words[:MAX_WORDS])
    if len(title) <= MAX_CHARS:
        return title
    cut = title[:MAX_CHARS]
    return cut.rpartition(" ")[0] or cut
