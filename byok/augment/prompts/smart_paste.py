"""/smart-paste-stream: insert a code block of a chat into a file."""

from functools import partial

from byok.augment import positions
from byok.augment.body import first_text, integer, text
from byok.augment.positions import Region
from byok.augment.prompts.editing import (
    around,
    cleaning,
    file_of,
    missing,
    path_line,
    selected_text,
    selection_region,
)
from byok.augment.prompts.prompt_parts import code, conversation, question
from byok.augment.replacement import ReplacementLines
from byok.augment.reply_job import DecodeState, Defaults, ReplyJob
from byok.chat import Json


def decode(
    body: Json, defaults: Defaults, state: DecodeState
) -> ReplyJob[ReplacementLines]:
    """Read the code block and its target: the selection, or else the file."""
    del state
    block = first_text(body, "code_block", "clipboard_text")
    if not block.strip():
        raise missing("code_block", "the code to work into the file")
    language, wish = text(body, "lang"), text(body, "instruction").strip()
    last = (
        code("the code from the chat", block, language),
        f"[what to do]\n{wish}" if wish else "",
    )
    if part := _selection(body):
        name, before, after = around(body)
        shown = code("the selection", selected_text(body), language)
        parts = (conversation(body), name, before, shown, after, *last)
        chat = question(body, defaults, "smart_paste", parts, conditions=["selection"])
        file = file_of(body) or text(body, "prefix") + text(body, "suffix")
        clean = cleaning(body, part.old, file)
        return ReplyJob(chat, partial(ReplacementLines, clean, part))
    file = _whole_file(body)
    name = path_line(body, "target_file_path", "path")
    blocks = (conversation(body), name, code("the file", file, language), *last)
    chat = question(body, defaults, "smart_paste", blocks)
    region = positions.region(file, 0, file)
    return ReplyJob(chat, partial(ReplacementLines, cleaning(body, file), region))


def _selection(body: Json) -> Region | None:
    """Return the selection; None if it is empty or in another file."""
    old, file = selected_text(body), file_of(body)
    if not old:
        return None
    if file is None:
        return selection_region(body)
    begin = positions.find(file, old, text(body, "prefix"), text(body, "suffix"))
    if begin is None:
        return None
    length = positions.original(file[begin:], len(positions.normal(old)))
    return positions.region(file, begin, file[begin : begin + length])


def _whole_file(body: Json) -> str:
    file = file_of(body)
    if file is not None:
        return file
    if integer(body, "prefix_begin") > 0:
        raise missing("target_file_content", "the file to work the code into")
    return text(body, "prefix") + selected_text(body) + text(body, "suffix")
