"""byok explain: what the code of an error means, and what to do."""

import re
from typing import Annotated

import typer

from byok.cli.completion import complete_code
from byok.cli.terminal import say, say_table, tell
from byok.core.error_table import GROUPS, ErrorRow, error_rows
from byok.core.errors import BadRequest
from byok.core.language import language_in_force
from byok.core.suggest import did_you_mean

_STATUS = re.compile(r"[45]\d\d", re.ASCII)


def explain(
    code: Annotated[
        str,
        typer.Argument(
            help="The code, or an upstream's HTTP status; without one, all are listed.",
            autocompletion=complete_code,
        ),
    ] = "",
) -> None:
    """Explain the code of an error: what happened, likely causes, what to do.

    Error messages end with the code, and `byok log` shows it.
    """
    rows = error_rows(language_in_force())
    if _STATUS.fullmatch(code):
        from byok.dialects.refusals import class_of

        status, code = code, class_of("", int(code)).kind.value
        tell(f"An upstream's status {status} without a reason has the code {code}.")
    if code in rows:
        _say_row(rows[code])
        return
    if code:
        hint = f"{did_you_mean(code, rows)} All: byok explain".lstrip()
        raise BadRequest(f"No error has the code {code[:100]!r}.", hint=hint)
    listed = [row for group in GROUPS for row in rows.values() if row.group == group]
    say_table("code", "what happened", rows=[(row.code, row.what) for row in listed])


def _say_row(row: ErrorRow) -> None:
    say(f"{row.code}: {row.what}")
    for title, lines in (("Likely causes:", row.causes), ("What to do:", row.cures)):
        say()
        say(title)
        for line in lines:
            say(f"  - {line}")
