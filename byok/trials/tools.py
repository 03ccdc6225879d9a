"""The tools of a client, played on the repository of a task.

Names and parameters are those of the editor clients; descriptions are byok's own. The
clients also want a reminder of how long edits may be in each call, which is left out.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from byok.chat import Json
from byok.trials.tool_actions import edit, retrieve, save, view
from byok.trials.trial_files import BadArguments, TrialFiles
from byok.wire.json_body import write_json

_LONGEST_RESULT = 20_000  # characters
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": list,
}


class PlayedTool(NamedTuple):
    """A tool: what the model is told of it, and what it does."""

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
    tool: PlayedTool, workspace: TrialFiles, arguments: Mapping[str, Any]
) -> str:
    """Return the result of a call.

    Raises:
        BadArguments: the arguments lack something, or have another type.
        ToolFailed: the tool cannot do it.
    """
    for name in tool.required:
        if name not in arguments:
            raise BadArguments(f"The parameter {name} is missing.")
    for name, value in arguments.items():
        wanted = tool.properties.get(name, {}).get("type")
        if wanted and not isinstance(value, _TYPES[wanted]):
            raise BadArguments(f"The parameter {name} must be of the type {wanted}.")
    result = tool.run(workspace, arguments)
    if len(result) > _LONGEST_RESULT:
        return f"{result[:_LONGEST_RESULT]}\n(the rest is cut)\n"
    return result


def _text(description: str) -> Json:
    return {"type": "string", "description": description}


def _number(description: str) -> Json:
    return {"type": "integer", "description": description}


_PATH = _text("The path of the file, relative to the workspace.")
TOOLS: Mapping[str, PlayedTool] = {
    tool.name: tool
    for tool in (
        PlayedTool(
            "codebase-retrieval",
            "Finds code of the workspace by a description of what it does, or by names "
            "that it uses. Returns the most fitting parts of files with line numbers.",
            {"information_request": _text("What to find.")},
            ("information_request",),
            retrieve,
        ),
        PlayedTool(
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
        PlayedTool(
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
        PlayedTool(
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
