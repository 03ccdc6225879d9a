"""The programs of a system as a service sees them: a script of their answers."""

from collections.abc import Mapping

from byok.clients.service.base import Command, CommandResult
from byok.core.errors import CannotStart


class FakeRun:
    """Notes commands, and answers those whose words the script names."""

    def __init__(self, script: Mapping[str, CommandResult] | None = None) -> None:
        """Take results by the beginning of the command; others end well."""
        self.script = dict(script or {})
        self.commands: list[str] = []

    def __call__(self, command: Command) -> CommandResult:
        line = " ".join(command.arguments)
        self.commands.append(line)
        result = next(
            (done for begun, done in self.script.items() if line.startswith(begun)),
            CommandResult(0, ""),
        )
        if result.exit_code and not command.may_fail:
            raise CannotStart(f"{line}: {result.err}", code="service")
        return result
