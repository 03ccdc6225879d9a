"""Render the client's context (folders, edits, selection, files) as labelled text."""

import base64
import binascii
import re
from typing import Any

from byok.augment.body import first_text, flag, integer, mapping, objects, text
from byok.augment.frames import LONGEST, without_tags
from byok.augment.images import data_url_type
from byok.chat import Json
from byok.escapes import escape
from byok.truncate import keep_ends, truncate_middle

MAX_FOLDERS = 8
MAX_EDITED_FILES = 6
MAX_EDITS_PER_FILE = 6
MAX_EDIT_CHARS = 200
MAX_FILE_CHARS = 20_000
LONGEST_NAME = 1000
_LANGUAGE = re.compile(r"[\w+#./-]{1,40}")
_TEXT_TYPES = ("json", "xml", "yaml", "toml", "javascript", "typescript", "x-sh")


def ide_state(node: Json) -> str:
    """Render the open folders and the terminal's directory; "" if nothing changed."""
    lines: list[str] = []
    if not flag(node, "workspace_folders_unchanged"):
        folders = [
            first_text(folder, "folder_root", "repository_root")
            for folder in objects(node, "workspace_folders")
        ]
        lines += [f"root: {one_line(root)}" for root in folders[:MAX_FOLDERS] if root]
    if cwd := text(mapping(node, "current_terminal"), "current_working_directory"):
        lines.append(f"terminal cwd: {one_line(cwd)}")
    return "\n".join(["[workspace]", *lines]) if lines else ""


def edit_events(node: Json) -> str:
    """Render the user's recent edits: the file, then `line: old → new`."""
    lines: list[str] = []
    for event in objects(node, "edit_events")[:MAX_EDITED_FILES]:
        edits = [
            f"  {integer(e, 'after_line_start')}: "
            f"{_short(text(e, 'before_text'))} → {_short(text(e, 'after_text'))}"
            for e in objects(event, "edits")[:MAX_EDITS_PER_FILE]
        ]
        if edits:
            lines += [one_line(text(event, "path")) or "(unnamed file)", *edits]
    return "\n".join(["[recent edits by the user]", *lines]) if lines else ""


def selection(body: Json, around: int = MAX_FILE_CHARS) -> str:
    """Render the selected code and its surroundings; "" without a selection.

    Of what stands before and after it, the nearest `around` characters are shown.
    """
    around = max(1, min(around, MAX_FILE_CHARS))
    selected = truncate_middle(text(body, "selected_code"), LONGEST)
    prefix, suffix = text(body, "prefix")[-around:], text(body, "suffix")[:around]
    if not (selected or prefix or suffix):
        return ""
    path = one_line(text(body, "path"))
    head = f"[code in the editor: {path}]" if path else "[code in the editor]"
    parts = [head]
    for label, code in (
        ("before the selection", prefix),
        ("selected", selected),
        ("after the selection", suffix),
    ):
        if code.strip():
            parts.append(f"{label}:\n{fence_code(code, text(body, 'lang'))}")
    return "\n".join(parts) if len(parts) > 1 else ""


def diff(patch: str) -> str:
    """Render the patch that a question refers to."""
    return (
        f"[patch]\n{fence_code(truncate_middle(patch, LONGEST), 'diff')}"
        if patch.strip()
        else ""
    )


def fence_code(code: str, language: str = "") -> str:
    """Put code into a fence with more backticks than the code has in a row.

    The code stays as it is: a model may have to write it again. A language that is no
    word is left out.
    """
    language = language if _LANGUAGE.fullmatch(language) else ""
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code.rstrip(chr(10))}\n{fence}"


def file(data: str, media_type: str) -> str:
    """Render an attached file: its text, or a line with its type and size."""
    payload = data.partition(",")[2] if data_url_type(data) else data
    media_type = media_type or data_url_type(data)
    try:
        raw = base64.b64decode("".join(payload.split()), validate=True)
    except (binascii.Error, ValueError):
        return marker("an attached file that could not be read", media_type)
    bare = media_type.partition(";")[0].strip().lower()
    if bare.startswith("text/") or bare.endswith(_TEXT_TYPES):
        content = raw.decode("utf-8", "replace")
        return (
            f"[attached file, {one_line(bare)}]\n{fence_code(content[:MAX_FILE_CHARS])}"
        )
    return marker("attached file", bare or "unknown type", f"{len(raw):,} bytes")


def marker(what: str, *details: Any) -> str:
    """Render a placeholder for something whose bytes byok does not have."""
    shown = ", ".join(one_line(str(d)[:MAX_EDIT_CHARS]) for d in details if d)
    return f"[{what}: {shown}]" if shown else f"[{what}]"


def one_line(name: str) -> str:
    """Return a name of a stranger's on one line, without characters nobody sees.

    A name such as `<rule>.../rule>` opens no frame.
    """
    return without_tags(escape(keep_ends(name, LONGEST_NAME // 2, LONGEST_NAME // 2)))


def _short(edited: str) -> str:
    return repr(edited[:MAX_EDIT_CHARS])
