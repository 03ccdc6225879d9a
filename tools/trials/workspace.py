"""The repository of a task, in memory, and simulated client tools that work on it.

Nothing that a model does reaches the disk. A path that leads out of the repository is
an error for the model. Names and parameters of the tools are those of the editor
clients; descriptions are byok's own.
"""

import itertools
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import re2

from byok.core.chat import Json
from byok.core.wire.json_body import write_json
from byok.search.retrieval.pack import PackedFile, Section
from byok.search.retrieval.render import HEADING, write_block

ROOT = "/workspace/project"
"""The folder of the repository, as the model sees it."""
LARGEST_FILE = 64 * 1024  # characters
_MAX_FILES, _MAX_PATH_CHARS = 50, 300
_CONTEXT_LINES = 3  # that are shown before and behind an edit
_MAX_MATCHES = 100
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+")
_STEM_LETTERS = 5  # by which words are compared
_MAX_RETRIEVED_FILES, _MAX_RETRIEVED_CHARS = 4, 8000
_MAX_EDITS = 10
_MAX_RESULT_CHARS = 20_000
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": list,
}


class ToolFailed(ValueError):
    """A tool call failed; the message is for the model."""


class BadArguments(ToolFailed):
    """The arguments of a call are incomplete or of a wrong type."""


class TrialFiles:
    """The files of a repository by path; `revision` counts the changes."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)
        self.revision = 0

    @property
    def files(self) -> Mapping[str, str]:
        """The texts of the files by their paths."""
        return dict(self._files)

    def resolve(self, path: str) -> str:
        """Return a path relative to the repository, "" for the repository itself.

        Raises:
            ToolFailed: it leads out of the repository, or is no valid path.
        """
        if len(path) > _MAX_PATH_CHARS or not path.isprintable():
            raise ToolFailed("This is no path of a file.")
        clean = posixpath.normpath(posixpath.join(ROOT, path.strip()))
        if clean == ROOT:
            return ""
        if not clean.startswith(f"{ROOT}/"):
            raise ToolFailed(f"{path} is outside of the workspace.")
        return clean.removeprefix(f"{ROOT}/")

    def read(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            ToolFailed: there is no such file.
        """
        name = self.resolve(path)
        if name in self._files:
            return self._files[name]
        if self.is_folder(path):
            raise ToolFailed(f"{path} is a directory.")
        raise ToolFailed(f"There is no file {path} in the workspace.")

    def write(self, path: str, text: str) -> None:
        """Write a file.

        Raises:
            ToolFailed: the path is that of a folder or below a file, the text is too
                large, or there are too many files.
        """
        name = self.resolve(path)
        if not name or self.is_folder(path):
            raise ToolFailed(f"{path} is a directory.")
        if any(name.startswith(f"{file}/") for file in self._files):
            raise ToolFailed(f"{path} is below a file.")
        if len(text) > LARGEST_FILE:
            raise ToolFailed(f"{path} would have more than {LARGEST_FILE} characters.")
        if name not in self._files and len(self._files) >= _MAX_FILES:
            raise ToolFailed("There are too many files in the workspace.")
        self._files[name] = text
        self.revision += 1

    def has_file(self, path: str) -> bool:
        """Tell whether there is a file of this path."""
        return self.resolve(path) in self._files

    def is_folder(self, path: str) -> bool:
        """Tell whether a path is that of a folder with files."""
        name = self.resolve(path)
        return not name or any(file.startswith(f"{name}/") for file in self._files)

    def list_folder(self, path: str) -> list[str]:
        """Return the paths of all files in a folder and below it.

        Raises:
            ToolFailed: there is no such folder.
        """
        name = self.resolve(path)
        if not self.is_folder(path):
            raise ToolFailed(f"There is no directory {path} in the workspace.")
        inside = f"{name}/" if name else ""
        return sorted(file for file in self._files if file.startswith(inside))


class TextEdit(NamedTuple):
    """A replacement of `old`; `first` to `last` are its lines from 1, 0 if unknown."""

    old: str
    new: str
    first: int = 0
    last: int = 0


class EditedText(NamedTuple):
    """The new text, and the ranges of new lines, from 1, both ends inclusive."""

    text: str
    places: tuple[tuple[int, int], ...]


class _Span(NamedTuple):
    start: int
    end: int
    new: str


def replace_texts(text: str, edits: Sequence[TextEdit]) -> EditedText:
    """Make replacements; their line numbers refer to the original text.

    Raises:
        ToolFailed: a text is missing or ambiguous, or two replacements overlap.
    """
    spans = sorted(_find_span(text, edit) for edit in edits)
    for span, following in itertools.pairwise(spans):
        if span.end > following.start:
            raise ToolFailed("Two of the replacements overlap. Nothing was changed.")
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    offset, line = 0, 1
    for span in spans:
        pieces += [text[offset : span.start], span.new]
        line += text.count("\n", offset, span.start)
        line_breaks = span.new.removesuffix("\n").count("\n")
        places.append((line, line + line_breaks))
        line += span.new.count("\n")
        offset = span.end
    return EditedText("".join([*pieces, text[offset:]]), tuple(places))


def insert_lines(text: str, line: int, new: str) -> EditedText:
    """Insert lines behind a line, counted from 1; 0 is the start of the text.

    Raises:
        ToolFailed: there is no such line.
    """
    lines = text.splitlines(keepends=True)
    if not 0 <= line <= len(lines):
        raise ToolFailed(f"There is no line {line}: the file has {len(lines)} lines.")
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    new = new if new.endswith("\n") else f"{new}\n"
    edited = "".join([*lines[:line], new, *lines[line:]])
    return EditedText(edited, ((line + 1, line + new.count("\n")),))


def _find_span(text: str, edit: TextEdit) -> _Span:
    """Find the span of a replacement; an empty text matches an empty file."""
    if not edit.old:
        if text.strip():
            raise ToolFailed("The text to replace is empty, but the file is not.")
        return _Span(0, len(text), edit.new)
    starts = _find_all(text, edit.old)
    if not starts:
        raise ToolFailed(
            "The text to replace is not in the file. It must be exactly as in the "
            "file, with all spaces. View the file again."
        )
    if len(starts) > 1 and edit.first:
        starts = [s for s in starts if _is_within(text, s, edit)] or starts
    if len(starts) > 1:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
        raise ToolFailed(
            f"The text to replace begins in several lines: {lines}. Give more lines of "
            "it, or the numbers of its lines."
        )
    return _Span(starts[0], starts[0] + len(edit.old), edit.new)


def _find_all(text: str, old: str) -> list[int]:
    offsets: list[int] = []
    offset = text.find(old)
    while offset >= 0 and len(offsets) < _MAX_MATCHES:
        offsets.append(offset)
        offset = text.find(old, offset + len(old))
    return offsets


def _is_within(text: str, start: int, edit: TextEdit) -> bool:
    line = text.count("\n", 0, start) + 1
    return edit.first <= line <= max(edit.first, edit.last)


def show_lines(text: str, first: int, last: int, context: int = _CONTEXT_LINES) -> str:
    """Return lines with their numbers in the format of `cat -n`."""
    lines = text.splitlines()
    start, end = max(1, first - context), min(len(lines), last + context)
    return "".join(f"{n:6}\t{lines[n - 1]}\n" for n in range(start, end + 1))


def find_code(files: Mapping[str, str], question: str) -> str:
    """Return the files that match a question best, formatted as byok's retrieval."""
    query = _words(question)
    ranked = sorted(files, key=lambda p: (-_score(p, files[p], query), p))
    blocks: list[str] = []
    budget = _MAX_RETRIEVED_CHARS
    for path in ranked[:_MAX_RETRIEVED_FILES]:
        lines = files[path].splitlines()
        if lines and budget > 0:
            packed = PackedFile(0, path, (Section(0, len(lines) - 1),))
            block = write_block(packed, lines, budget).text
            budget -= len(block)
            blocks.append(block)
    return HEADING + "".join(blocks)


def _score(path: str, text: str, query: set[str]) -> int:
    """Count shared words of text and path; a word in both counts twice."""
    return len(query & _words(text)) + len(query & _words(path))


def _words(text: str) -> set[str]:
    return {word.lower()[:_STEM_LETTERS] for word in _WORD.findall(text)}


def view(workspace: TrialFiles, arguments: Mapping[str, Any]) -> str:
    """Show a file, or list a directory."""
    path = arguments["path"]
    if arguments["type"] == "directory":
        return "".join(f"{file}\n" for file in workspace.list_folder(path))
    if arguments["type"] != "file":
        raise BadArguments("The parameter type must be file or directory.")
    text = workspace.read(path)
    lines = text.splitlines()
    first, last = _range(arguments.get("view_range"), len(lines))
    if pattern := arguments.get("search_query_regex"):
        return _search(path, lines, pattern, arguments)
    numbered = show_lines(text, first, last, context=0)
    return f"{path}, lines {first} to {last} of {len(lines)}:\n{numbered}"


def _range(view_range: Any, length: int) -> tuple[int, int]:
    """Return the lines to show; the last one may be -1 for the end of the file."""
    if view_range is None or not length:
        return min(1, length), length
    if len(view_range) != 2 or not all(isinstance(n, int) for n in view_range):
        raise BadArguments("The parameter view_range must hold two numbers of lines.")
    first, last = view_range
    last = length if last == -1 else min(last, length)
    if not 1 <= first <= last:
        raise ToolFailed(f"There are no such lines: the file has {length} lines.")
    return first, last


def _search(
    path: str, lines: list[str], pattern: str, arguments: Mapping[str, Any]
) -> str:
    """Show the matching lines; re2 takes linear time for any pattern of a model."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = arguments.get("case_sensitive") is True
    try:
        compiled = re2.compile(pattern[:1000], options)
    except (re2.error, UnicodeError) as error:
        raise ToolFailed("The regular expression is invalid.") from error
    matches = [n for n, line in enumerate(lines, 1) if compiled.search(line)]
    numbered = "".join(f"{n:6}\t{lines[n - 1]}\n" for n in matches)
    return f"{path}, {len(matches)} matching lines:\n{numbered}"


def edit(workspace: TrialFiles, arguments: Mapping[str, Any]) -> str:
    """Replace texts, or insert lines."""
    path, command = arguments["path"], arguments["command"]
    text = workspace.read(path)
    if command == "insert":
        if not {"insert_line_1", "new_str_1"} <= arguments.keys():
            raise BadArguments("insert needs insert_line_1 and new_str_1.")
        line, new = arguments["insert_line_1"], arguments["new_str_1"]
        edited = insert_lines(text, line, new)
    elif command == "str_replace":
        edited = replace_texts(text, _edits(arguments))
    else:
        raise BadArguments("The parameter command must be str_replace or insert.")
    workspace.write(path, edited.text)
    excerpts = "...\n".join(show_lines(edited.text, *place) for place in edited.places)
    return f"{path} was edited. The lines now:\n{excerpts}"


def _edits(arguments: Mapping[str, Any]) -> list[TextEdit]:
    numbers = [n for n in range(1, _MAX_EDITS + 1) if f"old_str_{n}" in arguments]
    if not numbers or any(f"new_str_{n}" not in arguments for n in numbers):
        raise BadArguments("str_replace needs old_str_1 and new_str_1.")
    edits: list[TextEdit] = []
    for n in numbers:
        old, new = arguments[f"old_str_{n}"], arguments[f"new_str_{n}"]
        first = arguments.get(f"old_str_start_line_number_{n}", 0)
        last = arguments.get(f"old_str_end_line_number_{n}", first)
        are_texts = isinstance(old, str) and isinstance(new, str)
        if not (are_texts and all(isinstance(line, int) for line in (first, last))):
            raise BadArguments(f"The replacement {n} has parameters of another type.")
        edits.append(TextEdit(old, new, first, last))
    return edits


def save(workspace: TrialFiles, arguments: Mapping[str, Any]) -> str:
    """Create a new file."""
    path, text = arguments["path"], arguments["file_content"]
    if workspace.has_file(path):
        raise ToolFailed(
            f"{path} exists. This tool makes new files; change it with "
            "str-replace-editor."
        )
    if arguments.get("add_last_line_newline", True) and not text.endswith("\n"):
        text += "\n"
    workspace.write(path, text)
    return f"{path} was saved."


def retrieve(workspace: TrialFiles, arguments: Mapping[str, Any]) -> str:
    """Find code."""
    return find_code(workspace.files, arguments["information_request"])


class SimulatedTool(NamedTuple):
    """A tool: its description for the model, and the function that runs it."""

    name: str
    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    run: Callable[[TrialFiles, Mapping[str, Any]], str]

    @property
    def definition(self) -> Json:
        """The definition as clients send it."""
        schema = {
            "type": "object",
            "properties": self.properties,
            "required": self.required,
        }
        return {
            "name": self.name,
            "description": self.description,
            "input_schema_json": write_json(schema).decode(),
            "tool_safety": 1,
        }


def run_tool(
    tool: SimulatedTool, workspace: TrialFiles, arguments: Mapping[str, Any]
) -> str:
    """Return the result of a call.

    Raises:
        BadArguments: the arguments are incomplete or of a wrong type.
        ToolFailed: the call failed.
    """
    for name in tool.required:
        if name not in arguments:
            raise BadArguments(f"The parameter {name} is missing.")
    for name, value in arguments.items():
        kind = tool.properties.get(name, {}).get("type")
        if kind and not isinstance(value, _TYPES[kind]):
            raise BadArguments(f"The parameter {name} must be of the type {kind}.")
    result = tool.run(workspace, arguments)
    if len(result) > _MAX_RESULT_CHARS:
        return f"{result[:_MAX_RESULT_CHARS]}\n(the rest is cut)\n"
    return result


def _text(description: str) -> Json:
    return {"type": "string", "description": description}


def _number(description: str) -> Json:
    return {"type": "integer", "description": description}


_PATH = _text("The path of the file, relative to the workspace.")
TOOLS: Mapping[str, SimulatedTool] = {
    tool.name: tool
    for tool in (
        SimulatedTool(
            "codebase-retrieval",
            "Finds code of the workspace by a description of what it does, or by names "
            "that it uses. Returns the most fitting parts of files with line numbers.",
            {"information_request": _text("What to find.")},
            ("information_request",),
            retrieve,
        ),
        SimulatedTool(
            "view",
            "Shows a file with line numbers, some lines of it, the lines that match a "
            "regular expression, or the files in a directory.",
            {
                "path": _text("A path, relative to the workspace."),
                "type": {
                    "type": "string",
                    "enum": ["file", "directory"],
                    "description": "What the path is.",
                },
                "view_range": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "description": "The first and the last line to show, from 1; -1 "
                    "as the last one is the end of the file.",
                },
                "search_query_regex": _text("Show only lines that match."),
                "case_sensitive": {
                    "type": "boolean",
                    "description": "Whether upper and lower case differ in the search.",
                },
            },
            ("path", "type"),
            view,
        ),
        SimulatedTool(
            "str-replace-editor",
            "Edits a file: replaces texts (str_replace) or inserts lines (insert). "
            "old_str_1 is replaced by new_str_1, old_str_2 by new_str_2, and so on. An "
            "old text must be exactly as in the file, and be there once, unless the "
            "numbers of its lines are given.",
            {
                "command": {
                    "type": "string",
                    "enum": ["str_replace", "insert"],
                    "description": "What to do.",
                },
                "path": _PATH,
                "old_str_1": _text("The text to replace, for str_replace."),
                "new_str_1": _text("The new text."),
                "old_str_start_line_number_1": _number("The first line of old_str_1."),
                "old_str_end_line_number_1": _number("The last line of old_str_1."),
                "insert_line_1": _number(
                    "The line behind which new_str_1 is inserted, for insert; 0 is the "
                    "beginning of the file."
                ),
            },
            ("command", "path"),
            edit,
        ),
        SimulatedTool(
            "save-file",
            "Makes a new file. It cannot change files that exist.",
            {
                "path": _PATH,
                "file_content": _text("The whole text of the file."),
                "add_last_line_newline": {
                    "type": "boolean",
                    "description": "Whether to end the text with a line break.",
                },
            },
            ("path", "file_content"),
            save,
        ),
    )
}
