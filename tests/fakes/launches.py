"""What services run, with paths that are hard to write, and a system's programs."""

from collections.abc import Mapping
from pathlib import Path

from byok.clients.service.base import Command, CommandResult, Launch, mark_of
from byok.core.errors import CannotStart

STATE = Path("/home/u/.local/state/byok")
# Each is a valid path somewhere; a file of a service must hold it unchanged.
HARD_NAMES = [
    "plain",
    "with space",
    "100%n %h",
    "$HOME ${HOME} $$",
    "back\\slash \\n",
    "quo\"te's",
    "<&>]]>",
    "#;:=,@-+!|",
    "ü 漢 🍞",
]


def make_launch(
    name: str = "plain", folder: Path = Path("/opt"), *, sandbox: bool = True
) -> Launch:
    """Return a launch with this name in all of its paths."""
    return Launch(
        python=str(folder / name / "python"),
        options=("--config", str(folder / name / "config.toml")),
        environment={"BYOK_HOME": str(folder / name), "PATH": "/usr/bin:/bin"},
        folders=(folder / name,),
        port=8317,
        mark=mark_of(STATE),
        sandbox=sandbox,
    )


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
