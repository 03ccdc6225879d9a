"""/agents/edit-file: change a file as an agent describes."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from byok.augment.body import first_text, text
from byok.augment.prompts.editing import cleaning_whole, file_of, path_line
from byok.augment.prompts.prompt_parts import NOTHING, code, question
from byok.augment.reply_job import DecodeState, Defaults, ReplyFacts, ReplyJob
from byok.augment.text_reply import WholeText
from byok.chat import Json
from byok.errors import ByokError


class EditedFile(WholeText):
    """ObjectReply with the new contents, or the old ones and an error flag."""

    def __init__(self, body: Json, problem: str, facts: ReplyFacts) -> None:
        self._contents = file_of(body, "file_contents") or ""
        super().__init__(cleaning_whole(body, self._contents, file=True))
        self._problem = problem
        del facts

    def flush(self) -> Iterator[Json]:
        """Return the new contents.

        Raises:
            UpstreamGarbled: the text is cut or empty.
        """
        if self._problem:
            yield self._unchanged_file(self._problem)
        else:
            yield {"modified_file_contents": self.whole(), "is_error": False}

    def fail_whole(self, error: ByokError, /) -> Json:
        """Return the old contents."""
        return self._unchanged_file(error.sentence)

    def _unchanged_file(self, why: str) -> dict[str, Any]:
        return {
            "modified_file_contents": self._contents,
            "is_error": True,
            "error_message": why,
        }


def decode(body: Json, defaults: Defaults, state: DecodeState) -> ReplyJob[EditedFile]:
    """Read the file and the change."""
    del state
    contents = file_of(body, "file_contents")
    summary = text(body, "edit_summary").strip()
    details = first_text(body, "detailed_edit_description", "instruction").strip()
    if contents is None:
        return _not_asked(body, "file_contents is missing: the file to change.")
    if not (summary or details):
        return _not_asked(body, "detailed_edit_description is missing: what to do.")
    blocks = (
        path_line(body, "file_path", "path"),
        code("the file", contents, text(body, "lang")),
        f"[summary of the change]\n{summary}" if summary else "",
        f"[the change]\n{details}" if details else "",
    )
    chat = question(body, defaults, "edit_file", blocks, whole=True)
    return ReplyJob(chat, partial(EditedFile, body, ""))


def _not_asked(body: Json, problem: str) -> ReplyJob[EditedFile]:
    return ReplyJob(NOTHING, partial(EditedFile, body, problem))
