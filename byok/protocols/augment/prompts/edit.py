"""Requests that change code: /edit, /instruction-stream, /smart-paste-stream."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from byok.core.chat import ChatRequest, Json
from byok.core.errors import BadRequest, ByokError
from byok.core.stage import Stage, chain
from byok.protocols.augment import positions
from byok.protocols.augment.body import first_text, integer, text, value
from byok.protocols.augment.nodes import one_line
from byok.protocols.augment.positions import Endings, Region
from byok.protocols.augment.prompts.prompt_parts import (
    NOTHING,
    code,
    conversation,
    question,
)
from byok.protocols.augment.remarks import (
    MARKDOWN,
    ContentKind,
    FenceRemover,
    RemarkFilter,
    RemarkRemover,
    has_fence,
)
from byok.protocols.augment.reply_job import Defaults, ReplyFacts, ReplyJob
from byok.protocols.augment.text_reply import ReplacementLines, WholeObject, WholeText

# Suffixes of file names, and names of languages in editors.
_WORDS = MARKDOWN | frozenset(
    (
        *("mdx", "mdc", "txt", "text", "plaintext", "rst", "restructuredtext", "adoc"),
        *("asciidoc", "org", "tex", "latex", "feature", "eml"),
    )
)
_DATA = frozenset(
    (
        *("html", "htm", "xhtml", "xml", "svg", "vue", "svelte", "astro", "json"),
        *("jsonc", "yaml", "yml", "toml", "ini", "properties", "po", "csv", "tsv"),
        *("srt", "ipynb", "bib"),
    )
)
MAX_PREFIX, MAX_SUFFIX = 20_000, 10_000


def decode_edit(body: Json, defaults: Defaults) -> ReplyJob[WholeObject]:
    """Decode the selection and the instruction of /edit."""
    context = text(body, "prefix"), text(body, "suffix")
    clean = cleaning_whole(body, selected_text(body), *context)
    chat = build_question(body, defaults, whole=True)
    return ReplyJob(chat, partial(WholeObject, clean))


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
        f"[what to do]\n{instruction(body)}",
    )
    return question(body, defaults, "edit", blocks, whole=whole)


class EditedFile(WholeText):
    """An ObjectReply with the new contents, or the old ones and an error flag."""

    def __init__(self, body: Json, problem: str, facts: ReplyFacts) -> None:
        self._contents = file_of(body, "file_contents") or ""
        super().__init__(cleaning_whole(body, self._contents, file=True), facts)
        self._problem = problem

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

    def _unchanged_file(self, reason: str) -> dict[str, Any]:
        return {
            "modified_file_contents": self._contents,
            "is_error": True,
            "error_message": reason,
        }


def decode_edit_file(body: Json, defaults: Defaults) -> ReplyJob[EditedFile]:
    """Decode the file and the change of /agents/edit-file."""
    contents = file_of(body, "file_contents")
    summary = text(body, "edit_summary").strip()
    details = first_text(body, "detailed_edit_description", "instruction").strip()
    if contents is None:
        return _refuse_edit(body, "file_contents is missing: the file to change.")
    if not (summary or details):
        return _refuse_edit(body, "detailed_edit_description is missing: what to do.")
    blocks = (
        path_line(body, "file_path", "path"),
        code("the file", contents, text(body, "lang")),
        f"[summary of the change]\n{summary}" if summary else "",
        f"[the change]\n{details}" if details else "",
    )
    chat = question(body, defaults, "edit_file", blocks, whole=True)
    return ReplyJob(chat, partial(EditedFile, body, ""))


def _refuse_edit(body: Json, problem: str) -> ReplyJob[EditedFile]:
    return ReplyJob(NOTHING, partial(EditedFile, body, problem))


def decode_instruction(body: Json, defaults: Defaults) -> ReplyJob[ReplacementLines]:
    """Decode the selection, its lines, and the instruction of /instruction-stream."""
    chat = build_question(body, defaults)
    region = selection_region(body)
    context = text(body, "prefix"), text(body, "suffix")
    clean = cleaning(body, selected_text(body), *context)
    if region.head and not region.old:  # an insertion inside of a line
        clean = chain(clean, Endings("", last=False))
    return ReplyJob(chat, partial(ReplacementLines, clean, region))


def decode_smart_paste(body: Json, defaults: Defaults) -> ReplyJob[ReplacementLines]:
    """Decode /smart-paste-stream: a code block of a chat, and its target.

    The target is the selection, or else the file.
    """
    block = first_text(body, "code_block", "clipboard_text")
    if not block.strip():
        raise missing("code_block", "the code to work into the file")
    language, words = text(body, "lang"), text(body, "instruction").strip()
    task = (
        code("the code from the chat", block, language),
        f"[what to do]\n{words}" if words else "",
    )
    if selection := _selection(body):
        name, before, after = around(body)
        old = code("the selection", selected_text(body), language)
        parts = (conversation(body), name, before, old, after, *task)
        chat = question(body, defaults, "smart_paste", parts, conditions=["selection"])
        file = file_of(body) or text(body, "prefix") + text(body, "suffix")
        clean = cleaning(body, selection.old, file)
        return ReplyJob(chat, partial(ReplacementLines, clean, selection))
    file = _whole_file(body)
    name = path_line(body, "target_file_path", "path")
    blocks = (conversation(body), name, code("the file", file, language), *task)
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


# --- Parts of all these requests ---


def instruction(body: Json) -> str:
    """Return the user's instruction.

    Raises:
        BadRequest: 422, there is none.
    """
    words = first_text(body, "instruction", "edit_instruction", "message")
    if not words.strip():
        raise missing("instruction", "what to do with the code")
    return words


def missing(name: str, meaning: str) -> BadRequest:
    """Return the error for a required field that is missing."""
    return BadRequest(f"{name} is missing: {meaning}.", code="bad_field", status=422)


def selected_text(body: Json) -> str:
    """Return the selection, which may be empty."""
    return text(body, "selected_text", "selected_code")


def file_of(body: Json, name: str = "target_file_content") -> str | None:
    """Return a file's content; None (unlike "") if the client sent none."""
    content = value(body, name)
    return content if isinstance(content, str) else None


def cut_file(body: Json) -> str:
    """Return the blob name of the file if its beginning was not sent, else ""."""
    if integer(body, "prefix_begin") <= 0 or file_of(body) is not None:
        return ""
    return text(body, "blob_name")


def selection_region(body: Json) -> Region:
    """Return the lines of the whole file that are selected.

    Raises:
        BadRequest: 422, the beginning of the file is unknown.
    """
    prefix, old = text(body, "prefix"), selected_text(body)
    excerpt = prefix + old + text(body, "suffix")
    if integer(body, "prefix_begin") <= 0:
        return positions.region(excerpt, len(prefix), old)
    file = file_of(body)
    if file is not None:
        start = positions.find(file, excerpt)
        if start is not None:
            return positions.region(file[:start] + excerpt, start + len(prefix), old)
        begin = positions.find(file, old, prefix, text(body, "suffix"))
        if begin is not None:
            stop = begin + positions.original(file[begin:], len(positions.normal(old)))
            return positions.region(file[:begin] + old + file[stop:], begin, old)
    raise BadRequest(
        "The beginning of the file was not sent, so its line numbers are unknown.",
        code="file_start_unknown",
        hint="Save the file, so that the client uploads it, and try again.",
        status=422,
    )


def cleaning(body: Json, old: str, *around: str) -> Stage[str, str]:
    """Return the stage that makes a streamed text a replacement of `old`.

    It removes remarks and the fence, and converts line endings. `around` is other text
    of the file.
    """
    return chain(_without_remark(body, old, streams=True), _fitted(body, old, *around))


def cleaning_whole(
    body: Json, old: str, *around: str, file: bool = False
) -> Stage[str, str]:
    """Return such a stage for a text that is used only if complete.

    `file`: the text is a whole file.
    """
    block = RemarkFilter(old, describe_file(body), file=file)
    bare = chain(block, _without_remark(body, old))
    return chain(bare, _fitted(body, old, *around))


def _without_remark(body: Json, old: str, *, streams: bool = False) -> RemarkRemover:
    return RemarkRemover(
        old, describe_file(body), _fence_languages(body), streams=streams
    )


def _fitted(body: Json, old: str, *around: str) -> Stage[str, str]:
    last = old.endswith(("\n", "\r")) if old else None
    endings = Endings(positions.line_ending(old, *around), last)
    return chain(without_fence(body, old, *around), endings)


def without_fence(body: Json, *file: str) -> FenceRemover:
    """Return the stage that removes a fence around the text.

    In Markdown some fences belong to the text. `file` are known parts of the file.
    """
    code = describe_file(body) is not ContentKind.WORDS
    return FenceRemover(
        _fence_languages(body), code=code, fenced=any(map(has_fence, file))
    )


def describe_file(body: Json) -> ContentKind:
    """Return the kind of content of a file, by its name and language."""
    suffix, language = _path(body).lower().rpartition(".")[2], text(body, "lang")
    kinds = {suffix, language.lower()}
    if kinds & _WORDS:
        return ContentKind.WORDS
    return ContentKind.DATA if kinds & _DATA else ContentKind.CODE


def _fence_languages(body: Json) -> frozenset[str] | None:
    """Return the languages whose fence is not part of the text, None for all."""
    is_markdown = text(body, "lang").lower() in MARKDOWN
    is_markdown = is_markdown or _path(body).lower().endswith((".md", ".mdx"))
    return MARKDOWN if is_markdown else None


def _path(body: Json) -> str:
    return first_text(body, "target_file_path", "path", "file_path")


def around(body: Json) -> tuple[str, str, str]:
    """Render the file's name and the text before and after the selection."""
    language = text(body, "lang")
    prefix, suffix = text(body, "prefix"), text(body, "suffix")
    return (
        path_line(body),
        code("before it", prefix[-MAX_PREFIX:], language) if prefix else "",
        code("after it", suffix[:MAX_SUFFIX], language) if suffix else "",
    )


def path_line(body: Json, *names: str) -> str:
    """Render the path of the file; "" if the client sent none."""
    path = first_text(body, *(names or ("path",)))
    return f"[file: {one_line(path)}]" if path else ""
