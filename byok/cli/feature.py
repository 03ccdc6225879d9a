"""Commands that show the status of a feature: `byok` and the feature's name."""

from collections.abc import Callable

from byok.cli.command_context import JsonOption
from byok.cli.control import require_answer
from byok.cli.terminal import say, say_json
from byok.features import ROWS, FeatureRow


def __getattr__(name: str) -> Callable[[JsonOption], None]:
    for row in ROWS:
        if row.name == name and row.command:
            return _make_command(row)
    raise AttributeError(f"no feature has the command {name}")


def _make_command(row: FeatureRow) -> Callable[[JsonOption], None]:
    def command(json: JsonOption = False) -> None:
        answer = require_answer(row.name)
        if json:
            say_json(answer)
            return
        from byok.features.status import write_rows

        for line in write_rows(answer["rows"]):
            say(line)

    command.__doc__ = row.command
    return command
