"""A file version becomes chunks and their terms. Pure: the same in every process."""

import re
from collections.abc import Iterator, Sequence

from byok.context import tokens
from byok.context.chunking import cut
from byok.context.definitions import Definition, definitions
from byok.context.languages import language_of
from byok.context.text import decode, split_lines
from byok.context.types import Document, Prepared, SkipReason, Span
from byok.context.versions import MAX_BYTES, blob_name

_LONGEST_NAME = 64
_PROSE = ("markdown", None)
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
_GENERATED = re.compile(r".*\.(?:min\.(?:js|mjs|css)|map|snap|lock|sum|ipynb)", re.I)


def skip_reason(path: str) -> SkipReason | None:
    """Return why a path is not worth reading, whatever it holds."""
    name = path.rpartition("/")[2]
    if name.lower() in _LOCK_NAMES or _GENERATED.fullmatch(name):
        return SkipReason.GENERATED
    if "." in name and name.rpartition(".")[2].lower() in _BINARY_ENDS:
        return SkipReason.BINARY
    return None


def prepare(path: str, content: bytes, *, plain: bool = False) -> Prepared:
    """Cut a file version and return the terms of its chunks, or why there are none.

    `plain` leaves the parser out.
    """
    name = blob_name(path, content)
    text = _text(path, content)
    if isinstance(text, SkipReason):
        return Prepared(name, len(content), text)
    language = language_of(path)
    found: list[Definition] = []
    if language is not None and not plain:
        found = definitions(text.encode("utf-8", "replace"), language)
    spans = tuple(cut(split_lines(text), found, prose=language in _PROSE))
    documents = tuple(_documents(text, spans, found))
    terms = " ".join(tokens.path_terms(path))
    return Prepared(name, len(content), None, spans, documents, terms)


def _text(path: str, content: bytes) -> str | SkipReason:
    if reason := skip_reason(path):
        return reason
    if len(content) > MAX_BYTES:
        return SkipReason.TOO_LARGE
    return decode(content)


def _documents(
    text: str, spans: Sequence[Span], found: Sequence[Definition]
) -> Iterator[Document]:
    start = at = 0
    for span in spans:
        body = text[start : start + span.chars]
        start += span.chars
        symbols = []
        while at < len(found) and found[at].first_line <= span.last:
            if name := found[at].name:
                symbols.append(tokens.joined(name[:_LONGEST_NAME].rpartition(":")[2]))
            at += 1
        yield Document(tokens.joined(body), " ".join(filter(None, symbols)))
