"""Turns a file version into chunks and terms; pure, the same in every process.

Terms are stems, so `Context` and `contexts` are one. Exact names stand in the index as
marks, which say that a chunk defines or uses this name:

    :t:RouterGroup   a type of this name is defined here
    :T:routergroup   the same in lower case, for queries in another spelling
    :u:RouterGroup   it is called here, or used as a type
    :b:RouterGroup   something here extends or implements it
"""

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

_MAX_NAME_CHARS = 64
_MIN_REFERENCE_CHARS = 2
_LETTER = r"A-Za-z_\u00c0-\u167f\u1681-\u1fff"
# Lisp and PowerShell have hyphens in names; Ruby and Lisp end some with `?` or `!`.
_NAME = re.compile(rf"[{_LETTER}][{_LETTER}0-9$]*(?:-[{_LETTER}0-9$]+)*")
_SEPARATOR = re.compile(r"::|->|[.:#\\/]")
_SIGILS, _ENDINGS = "$@&*", "?!'"
_MARKDOWN = "markdown"
_PROSE = (_MARKDOWN, None)
_LOCK_FILES = """
bun.lock cargo.lock composer.lock deno.lock flake.lock gemfile.lock go.sum go.work.sum
mix.lock npm-shrinkwrap.json package-lock.json package.resolved packages.lock.json
pdm.lock pipfile.lock pixi.lock pnpm-lock.yaml podfile.lock poetry.lock pubspec.lock
uv.lock yarn.lock .pnp.cjs .terraform.lock.hcl
"""
_BINARY_EXTENSIONS = """
7z a aab apk avi avif avro bin bmp br bz2 class dat db deb dll dmg doc docx dylib egg
eot exe flac gif gz heic icns ico idx iso jar jpeg jpg keystore lib lz4 mkv mov mp3 mp4
msi npy npz o obj odt ogg onnx otf pack parquet pb pdf pickle pkl png ppt pptx psd pyc
pyd pyo rar rlib rpm so sqlite sqlite3 tar tflite tgz tif tiff ttf war wasm wav webm
webp whl woff woff2 xls xlsx xz zip zst
"""
_LOCK_NAMES = frozenset(_LOCK_FILES.split())
_BINARY_SUFFIXES = frozenset(_BINARY_EXTENSIONS.split())
_GENERATED = re.compile(r".*\.(?:min\.(?:js|mjs|css)|map|snap|lock|sum)", re.I)


def skip_reason(path: str) -> SkipReason | None:
    """Return why a file is skipped by its name alone, or None."""
    name = path.rpartition("/")[2]
    if name.lower() in _LOCK_NAMES or _GENERATED.fullmatch(name):
        return SkipReason.GENERATED
    if "." in name and name.rpartition(".")[2].lower() in _BINARY_SUFFIXES:
        return SkipReason.BINARY
    return None


def prepare(
    path: str, content: bytes, *, plain: bool = False, deadline: float = math.inf
) -> Prepared:
    """Split a file version into chunks with their terms, or return why it has none.

    With `plain` no parser is used. `deadline` is in seconds of `time.process_time`.

    Raises:
        ParserTooSlow: the deadline has passed.
    """
    name = blob_name(path, content)
    reason = skip_reason(path)
    if reason is None and len(content) > MAX_BYTES:
        reason = SkipReason.TOO_LARGE
    text = reason or decode(content, path)
    if isinstance(text, SkipReason):
        return Prepared(name, len(content), text)
    lines = split_lines(text)
    parts = _split_into_parts(path, text)
    if isinstance(parts, SkipReason):
        return Prepared(name, len(content), parts)
    spans: list[Span] = []
    documents: list[Document] = []
    for part in parts:
        outlined = Outline([], [])
        if part.language is not None and not plain:
            raw = part.text.encode("utf-8", "replace")
            outlined = outline(raw, part.language, deadline)
        prose = part.language in _PROSE
        cuts = cut(split_lines(part.text), outlined.definitions, prose=prose)
        documents += _documents(part.text, cuts, outlined)
        spans += (_move_span(span, part.first, lines) for span in cuts)
    terms = " ".join(tokens.path_terms(path))
    return Prepared(name, len(content), None, tuple(spans), tuple(documents), terms)


class _Part(NamedTuple):
    """A part of a file that is split by itself; `first` is its first line there."""

    first: int
    text: str
    language: str | None


def _split_into_parts(path: str, text: str) -> list[_Part] | SkipReason:
    """Return the searched parts of a file: all of it, or the sources of a notebook."""
    if not is_notebook(path):
        language = language_of(path)
        if language == "typescript" and text.lstrip().startswith(
            ("<?xml", "<!DOCTYPE")
        ):
            language = "xml"  # translations of a Qt program
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


def _move_span(span: Span, offset: int, lines: Sequence[str]) -> Span:
    if not offset:
        return span
    first, last = span.first + offset, span.last + offset
    return Span(first, last, sum(len(line) + 1 for line in lines[first : last + 1]))


def _documents(
    text: str, spans: Sequence[Span], outlined: Outline
) -> Iterator[Document]:
    definitions, references = outlined
    start = next_def = next_ref = 0
    for span in spans:
        body = text[start : start + span.chars]
        start += span.chars
        symbols, marks = [], dict[str, None]()
        while (
            next_def < len(definitions)
            and definitions[next_def].first_line <= span.last
        ):
            if name := definitions[next_def].name:
                symbols.append(
                    tokens.join_terms(name[:_MAX_NAME_CHARS].rpartition(":")[2])
                )
                marks.update(
                    dict.fromkeys(name_marks(definitions[next_def].kind, name))
                )
            next_def += 1
        while next_ref < len(references) and references[next_ref][0] <= span.last:
            marks[_reference_mark(references[next_ref][1])] = None
            next_ref += 1
        yield Document(
            tokens.join_terms(body),
            " ".join(filter(None, symbols)),
            " ".join(filter(None, marks)),
        )


class NameKind(StrEnum):
    """What a name denotes, or how it is used; the value is the letter of its marks."""

    TYPE = "t"
    FUNCTION = "f"
    OTHER = "o"
    USED = "u"  # called, or used as a type
    BASE = "b"  # extended or implemented


# Patterns of kinds of nodes, such as `method_declaration` and `class_specifier`; the
# first row that matches counts.
_KIND_PATTERNS = (
    (None, re.compile(r"impl_item|foreign_mod_item|rule_set")),  # these define no name
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


def plain_name(name: str) -> str:
    """Return the last part of a qualified name, without sigils; "" if it is none."""
    last = _SEPARATOR.split(name[-4 * _MAX_NAME_CHARS :])[-1]
    last = last.strip().lstrip(_SIGILS).rstrip(_ENDINGS)
    return last if len(last) <= _MAX_NAME_CHARS and _NAME.fullmatch(last) else ""


def exact_mark(kind: NameKind, name: str) -> str:
    """Return the mark of a name in its exact spelling."""
    return f":{kind}:{name}"


def folded_mark(kind: NameKind, name: str) -> str:
    """Return the mark of a name in lower case."""
    return f":{kind.upper()}:{name.lower()}"


def name_marks(node: str, name: str) -> list[str]:
    """Return the marks of a definition by its kind of node and its name."""
    kinds = (kind for kind, pattern in _KIND_PATTERNS if pattern.search(node))
    kind, plain = next(kinds, NameKind.OTHER), plain_name(name)
    if kind is None or not plain:
        return []
    marks = [exact_mark(kind, plain)]
    if plain != plain.lower():
        marks.append(folded_mark(kind, plain))
    return marks


@lru_cache(maxsize=20_000)
def _reference_mark(reference: bytes) -> str:
    """Return the mark of a reference; "" if it has one letter, or is no name."""
    plain = plain_name(reference[1:].decode("utf-8", "replace"))
    if len(plain) < _MIN_REFERENCE_CHARS:
        return ""
    is_base = reference.startswith(BASE)
    return exact_mark(NameKind.BASE if is_base else NameKind.USED, plain)
