"""Common parts of all requests that change code."""

from byok.augment import positions
from byok.augment.blocks import one_line
from byok.augment.body import first_text, integer, text, value
from byok.augment.endings import Endings
from byok.augment.fences import MARKDOWN, Unfenced, has_fence
from byok.augment.positions import Region
from byok.augment.prompts.prompt_parts import code
from byok.augment.remarks import OnlyBlock, WithoutTalk
from byok.augment.talk import Holds
from byok.chat import Json
from byok.errors import BadRequest
from byok.stage import Stage, chain

# File names' suffixes and languages of editors.
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


def wish(body: Json) -> str:
    """Return the user's instruction.

    Raises:
        BadRequest: 422, there is none.
    """
    found = first_text(body, "instruction", "edit_instruction", "message")
    if not found.strip():
        raise missing("instruction", "what to do with the code")
    return found


def missing(name: str, meaning: str) -> BadRequest:
    """Return the error for a required field that is missing."""
    return BadRequest(f"{name} is missing: {meaning}.", code="bad_field", status=422)


def selected_text(body: Json) -> str:
    """Return the selection, which may be empty."""
    return text(body, "selected_text", "selected_code")


def file_of(body: Json, name: str = "target_file_content") -> str | None:
    """Return a file's content; None (unlike "") if the client sent none."""
    found = value(body, name)
    return found if isinstance(found, str) else None


def cut_file(body: Json) -> str:
    """Return the blob name of the file if the prefix does not begin at its start."""
    if integer(body, "prefix_begin") <= 0 or file_of(body) is not None:
        return ""
    return text(body, "blob_name")


def selection_region(body: Json) -> Region:
    """Return the lines of the whole file that are selected.

    Raises:
        BadRequest: 422, the beginning of the file is unknown.
    """
    prefix, old = text(body, "prefix"), selected_text(body)
    seen = prefix + old + text(body, "suffix")
    if integer(body, "prefix_begin") <= 0:
        return positions.region(seen, len(prefix), old)
    file = file_of(body)
    if file is not None:
        start = positions.find(file, seen)
        if start is not None:
            return positions.region(file[:start] + seen, start + len(prefix), old)
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
    """Return the stage that makes a streamed text fit in the place of `old`.

    It removes remarks and the fence, and converts line ends.
    """
    return chain(_talk(body, old, streams=True), _fitting(body, old, *around))


def cleaning_whole(
    body: Json, old: str, *around: str, file: bool = False
) -> Stage[str, str]:
    """Return the same for a text that is used only as a whole; it may be a `file`."""
    block = OnlyBlock(old, describe_file(body), file=file)
    return chain(chain(block, _talk(body, old)), _fitting(body, old, *around))


def _talk(body: Json, old: str, *, streams: bool = False) -> WithoutTalk:
    return WithoutTalk(old, describe_file(body), _outer(body), streams=streams)


def _fitting(body: Json, old: str, *around: str) -> Stage[str, str]:
    last = old.endswith(("\n", "\r")) if old else None
    endings = Endings(positions.line_ending(old, *around), last)
    return chain(without_fence(body, old, *around), endings)


def without_fence(body: Json, *file: str) -> Unfenced:
    """Return the stage that removes a fence around the text.

    In Markdown some fences belong to the text. `file` is what is known of the file's
    content.
    """
    code = describe_file(body) is not Holds.WORDS
    return Unfenced(_outer(body), code=code, fenced=any(map(has_fence, file)))


def describe_file(body: Json) -> Holds:
    """Return the kind of content of a file, by its name and language."""
    suffix, language = _path(body).lower().rpartition(".")[2], text(body, "lang")
    kinds = {suffix, language.lower()}
    if kinds & _WORDS:
        return Holds.WORDS
    return Holds.DATA if kinds & _DATA else Holds.CODE


def _outer(body: Json) -> frozenset[str] | None:
    """Return the languages whose fence is not part of the text, None for all."""
    markdown = text(body, "lang").lower() in MARKDOWN
    markdown = markdown or _path(body).lower().endswith((".md", ".mdx"))
    return MARKDOWN if markdown else None


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
