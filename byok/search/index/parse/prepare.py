"""Turns a file version into chunks and terms; pure, the same in every process."""

import math
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from byok.search.index.files.languages import language_of
from byok.search.index.files.text import decode, is_notebook, read_notebook, split_lines
from byok.search.index.parse import tokens
from byok.search.index.parse.chunking import BASE, Outline, cut, outline
from byok.search.index.types import (
    MAX_BYTES,
    Document,
    Prepared,
    SkipReason,
    Span,
    blob_name,
)

# Exact names of definitions, and the marks that stand for them in the index.
#
# Terms are stems, so `Context` and `contexts` are one. A mark says that a chunk defines
# or uses exactly this name:
#
#     :t:RouterGroup   a type of this name is defined here
#     :T:routergroup   the same in lower case, for whoever writes it otherwise
#     :u:RouterGroup   it is called here, or used as a type
#     :b:RouterGroup   something here extends or implements it


_LONGEST = 64
_LETTER = r"A-Za-z_\u00c0-\u167f\u1681-\u1fff"
# Lisp and PowerShell have hyphens in names; Ruby and Lisp end some with `?` or `!`.
_NAME = re.compile(rf"[{_LETTER}][{_LETTER}0-9$]*(?:-[{_LETTER}0-9$]+)*")
_SEPARATOR = re.compile(r"::|->|[.:#\\/]")
_SIGILS, _ENDINGS = "$@&*", "?!'"


class NameKind(StrEnum):
    """What a name stands for; the value is the letter of its marks."""

    TYPE = "t"
    FUNCTION = "f"
    OTHER = "o"


# Kinds of nodes, the first row that matches: `method_declaration`, `class_specifier`.
_KINDS = (
    (None, re.compile(r"impl_item|foreign_mod_item|rule_set")),  # they define no name
    (
        NameKind.FUNCTION,
        re.compile(
            r"func|FnProto|method|constructor|subroutine|fun_decl|signature|defun|macro"
            r"|getter|setter|init_|deinit|rpc|bind|modifier|operator"
        ),
    ),
    (
        NameKind.TYPE,
        re.compile(
            r"class|struct|interface|enum|union|trait|type|record|object|protocol"
            r"|message|service|contract|library|mixin|extension|exception|delegate"
            r"|concept|table|view"
        ),
    ),
)


def name_kind(node: str) -> NameKind | None:
    """Return what a kind of node defines, None if it only repeats a name."""
    for kind, pattern in _KINDS:
        if pattern.search(node):
            return kind
    return NameKind.OTHER


def plain_name(name: str) -> str:
    """Return the last part of a name, without sigils; "" if that is no name."""
    last = _SEPARATOR.split(name[-4 * _LONGEST :])[-1]
    last = last.strip().lstrip(_SIGILS).rstrip(_ENDINGS)
    return last if len(last) <= _LONGEST and _NAME.fullmatch(last) else ""


def exact_mark(kind: NameKind, name: str) -> str:
    """Return the mark of a name as it is written."""
    return f":{kind}:{name}"


def folded_mark(kind: NameKind, name: str) -> str:
    """Return the mark of a name of which only the lower-case form is known."""
    return f":{kind.upper()}:{name.lower()}"


def name_marks(node: str, name: str) -> list[str]:
    """Return the marks of a definition: its kind of node and its name."""
    kind, plain = name_kind(node), plain_name(name)
    if kind is None or not plain:
        return []
    marks = [exact_mark(kind, plain)]
    if plain != plain.lower():
        marks.append(folded_mark(kind, plain))
    return marks


def use_mark(name: str) -> str:
    """Return the mark of chunks that call a name, or use it as a type."""
    return f":u:{name}"


def base_mark(name: str) -> str:
    """Return the mark of chunks in which something extends or implements a name."""
    return f":b:{name}"


@lru_cache(maxsize=20_000)
def _reference_mark(reference: bytes) -> str:
    """Return the mark of a reference; "" for what is no name, or of one letter."""
    plain = plain_name(reference[1:].decode("utf-8", "replace"))
    if len(plain) < _SHORTEST_USED:
        return ""
    return base_mark(plain) if reference.startswith(BASE) else use_mark(plain)


_SHORTEST_USED = 2
_LONGEST_NAME = 64
_MARKDOWN = "markdown"
_PROSE = (_MARKDOWN, None)
_LOCKS = """
bun.lock cargo.lock composer.lock deno.lock flake.lock gemfile.lock go.sum go.work.sum
mix.lock npm-shrinkwrap.json package-lock.json package.resolved packages.lock.json
pdm.lock pipfile.lock pixi.lock pnpm-lock.yaml podfile.lock poetry.lock pubspec.lock
uv.lock yarn.lock .pnp.cjs .terraform.lock.hcl
"""
_BINARY = """
7z a aab apk avi avif avro bin bmp br bz2 class dat db deb dll dmg doc docx dylib egg
eot exe flac gif gz heic icns ico idx iso jar jpeg jpg keystore lib lz4 mkv mov mp3 mp4
msi npy npz o obj odt ogg onnx otf pack parquet pb pdf pickle pkl png ppt pptx psd pyc
pyd pyo rar rlib rpm so sqlite sqlite3 tar tflite tgz tif tiff ttf war wasm wav webm
webp whl woff woff2 xls xlsx xz zip zst
"""
_LOCK_NAMES = frozenset(_LOCKS.split())
_BINARY_ENDS = frozenset(_BINARY.split())
_GENERATED = re.compile(r".*\.(?:min\.(?:js|mjs|css)|map|snap|lock|sum)", re.I)


def skip_reason(path: str) -> SkipReason | None:
    """Return why a file is skipped by its name alone, None if it is not."""
    name = path.rpartition("/")[2]
    if name.lower() in _LOCK_NAMES or _GENERATED.fullmatch(name):
        return SkipReason.GENERATED
    if "." in name and name.rpartition(".")[2].lower() in _BINARY_ENDS:
        return SkipReason.BINARY
    return None


def prepare(
    path: str, content: bytes, *, plain: bool = False, deadline: float = math.inf
) -> Prepared:
    """Cut a file version into chunks with their terms, or say why it has none.

    With `plain` no parser is used, else one up to a deadline of `time.process_time`.

    Raises:
        ParserTooSlow: that has passed.
    """
    name = blob_name(path, content)
    text = _text(path, content)
    if isinstance(text, SkipReason):
        return Prepared(name, len(content), text)
    lines = split_lines(text)
    parts = _parts(path, text)
    if isinstance(parts, SkipReason):
        return Prepared(name, len(content), parts)
    spans: list[Span] = []
    documents: list[Document] = []
    for part in parts:
        found = Outline([], [])
        if part.language is not None and not plain:
            raw = part.text.encode("utf-8", "replace")
            found = outline(raw, part.language, deadline)
        prose = part.language in _PROSE
        cuts = cut(split_lines(part.text), found.definitions, prose=prose)
        documents += _documents(part.text, cuts, found)
        spans += (_shift(span, part.first, lines) for span in cuts)
    terms = " ".join(tokens.path_terms(path))
    return Prepared(name, len(content), None, tuple(spans), tuple(documents), terms)


class _Part(NamedTuple):
    """A text that is cut by itself; `first` is the line of the file where it begins."""

    first: int
    text: str
    language: str | None


def _parts(path: str, text: str) -> list[_Part] | SkipReason:
    """Return what of a file is searched: of a notebook what people wrote into it."""
    if not is_notebook(path):
        language = language_of(path)
        if language == "typescript" and text.lstrip().startswith(
            ("<?xml", "<!DOCTYPE")
        ):
            language = "xml"  # texts of a program in Qt
        return [_Part(0, text, language)]
    notebook = read_notebook(text)
    if notebook is None:
        return SkipReason.BROKEN
    if "\n" not in text.strip():  # outputs would be shown with the sources
        return SkipReason.MINIFIED
    return [
        _Part(cell.first, cell.text, notebook.language if cell.is_code else _MARKDOWN)
        for cell in notebook.cells
    ]


def _shift(span: Span, by: int, lines: Sequence[str]) -> Span:
    if not by:
        return span
    first, last = span.first + by, span.last + by
    return Span(first, last, sum(len(line) + 1 for line in lines[first : last + 1]))


def _text(path: str, content: bytes) -> str | SkipReason:
    if reason := skip_reason(path):
        return reason
    if len(content) > MAX_BYTES:
        return SkipReason.TOO_LARGE
    return decode(content, path)


def _documents(
    text: str, spans: Sequence[Span], outlined: Outline
) -> Iterator[Document]:
    found, references = outlined
    start = at = used = 0
    for span in spans:
        body = text[start : start + span.chars]
        start += span.chars
        symbols, marks = [], dict[str, None]()
        while at < len(found) and found[at].first_line <= span.last:
            if name := found[at].name:
                symbols.append(
                    tokens.join_terms(name[:_LONGEST_NAME].rpartition(":")[2])
                )
                marks.update(dict.fromkeys(name_marks(found[at].kind, name)))
            at += 1
        while used < len(references) and references[used][0] <= span.last:
            marks[_reference_mark(references[used][1])] = None
            used += 1
        yield Document(
            tokens.join_terms(body),
            " ".join(filter(None, symbols)),
            " ".join(filter(None, marks)),
        )
