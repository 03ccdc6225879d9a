"""Runs the tool calls of a model, and counts those that are wrong."""

from collections.abc import Callable
from typing import Any, NamedTuple

from byok.trials.outcome import WrongCall
from byok.trials.tools import TOOLS, run_tool
from byok.trials.trial_files import BadArguments, ToolFailed, TrialFiles
from byok.wire.json_body import parse_json, write_json

MOST_CALLS = 32
"""How many calls of one answer are run."""


class CallResult(NamedTuple):
    """What the model is told of its call."""

    content: str
    is_error: bool = False


class CallRunner:
    """The tools of one task; `count` is told of each wrong call, once."""

    def __init__(
        self, workspace: TrialFiles, count: Callable[[WrongCall], None]
    ) -> None:
        self._workspace = workspace
        self._count = count
        self._made: set[bytes] = set()  # the calls so far, with the revision

    def refuse(self) -> CallResult:
        """Return what is said of a call beyond MOST_CALLS."""
        self._count(WrongCall.FAILED)
        return CallResult("Too many calls at once: this one was not run.", True)

    def run(self, name: str, raw: str) -> CallResult:
        """Run a call; `raw` are its arguments as JSON."""
        tool = TOOLS.get(name)
        if tool is None:
            self._count(WrongCall.UNKNOWN_TOOL)
            return CallResult(f"There is no tool of the name {name[:60]}.", True)
        try:
            arguments = parse_json(raw.encode("utf-8", "replace"))
            is_repeated = self._is_repeated(name, arguments)
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            self._count(WrongCall.BROKEN_ARGUMENTS)
            return CallResult("The arguments are no JSON object.", True)
        if is_repeated:
            self._count(WrongCall.REPEATED)
        try:
            return CallResult(run_tool(tool, self._workspace, arguments))
        except ToolFailed as error:
            if not is_repeated:
                bad = isinstance(error, BadArguments)
                self._count(WrongCall.BROKEN_ARGUMENTS if bad else WrongCall.FAILED)
            return CallResult(str(error), True)

    def _is_repeated(self, name: str, arguments: Any) -> bool:
        """Tell whether an equal call was made and no file has changed since."""
        call = write_json([self._workspace.revision, name, _in_order(arguments)])
        is_repeated = call in self._made
        self._made.add(call)
        return is_repeated


def _in_order(arguments: Any) -> Any:
    if not isinstance(arguments, dict):
        return arguments
    return {name: arguments[name] for name in sorted(arguments)}
