"""What each tool of `tools.py` does with the repository; it returns the result.

Each raises ToolFailed with a sentence for the model, BadArguments if it is the call.
"""

from collections.abc import Mapping
from typing import Any

import re2

from byok.trials.editing import TextEdit, insert_lines, replace_texts, show_lines
from byok.trials.search import find_code
from byok.trials.trial_files import BadArguments, ToolFailed, TrialFiles

_MOST_EDITS = 10


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
    shown = show_lines(text, first, last, around=0)
    return f"{path}, lines {first} to {last} of {len(lines)}:\n{shown}"


def _range(given: Any, length: int) -> tuple[int, int]:
    """Return the lines to show; the last one may be -1 for the end of the file."""
    if given is None or not length:
        return min(1, length), length
    if len(given) != 2 or not all(isinstance(n, int) for n in given):
        raise BadArguments("The parameter view_range must hold two numbers of lines.")
    first, last = given
    last = length if last == -1 else min(last, length)
    if not 1 <= first <= last:
        raise ToolFailed(f"There are no such lines: the file has {length} lines.")
    return first, last


def _search(
    path: str, lines: list[str], pattern: str, arguments: Mapping[str, Any]
) -> str:
    """Show the lines that match; the pattern is a model's, so time must be linear."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = arguments.get("case_sensitive") is True
    try:
        wanted = re2.compile(pattern[:1000], options)
    except (re2.error, UnicodeError) as error:
        raise ToolFailed("The regular expression is invalid.") from error
    found = [n for n, line in enumerate(lines, 1) if wanted.search(line)]
    shown = "".join(f"{n:6}\t{lines[n - 1]}\n" for n in found)
    return f"{path}, {len(found)} matching lines:\n{shown}"


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
    shown = "...\n".join(show_lines(edited.text, *place) for place in edited.places)
    return f"{path} was edited. The lines now:\n{shown}"


def _edits(arguments: Mapping[str, Any]) -> list[TextEdit]:
    numbers = [n for n in range(1, _MOST_EDITS + 1) if f"old_str_{n}" in arguments]
    if not numbers or any(f"new_str_{n}" not in arguments for n in numbers):
        raise BadArguments("str_replace needs old_str_1 and new_str_1.")
    edits: list[TextEdit] = []
    for n in numbers:
        old, new = arguments[f"old_str_{n}"], arguments[f"new_str_{n}"]
        first = arguments.get(f"old_str_start_line_number_{n}", 0)
        last = arguments.get(f"old_str_end_line_number_{n}", first)
        texts, lines = isinstance(old, str) and isinstance(new, str), (first, last)
        if not (texts and all(isinstance(line, int) for line in lines)):
            raise BadArguments(f"The replacement {n} has parameters of another type.")
        edits.append(TextEdit(old, new, first, last))
    return edits


def save(workspace: TrialFiles, arguments: Mapping[str, Any]) -> str:
    """Make a new file."""
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
