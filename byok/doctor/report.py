"""The report of all checks as JSON, of a stable shape (docs/DOCTOR.md)."""

from collections import Counter
from collections.abc import Sequence

from byok import __version__
from byok.chat import Json
from byok.doctor.results import CheckRow, CheckState

SCHEMA = 1
_WORST = (CheckState.FAILURE, CheckState.WARNING, CheckState.OK)


def count_states(rows: Sequence[CheckRow]) -> dict[CheckState, int]:
    """Return how many rows are in each state."""
    found = Counter(row.result.state for row in rows)
    return {state: found[state] for state in CheckState}


def worst_state(rows: Sequence[CheckRow]) -> CheckState:
    """Return the state of the whole; what was not checked does not count."""
    found = {row.result.state for row in rows}
    return next((state for state in _WORST if state in found), CheckState.OK)


def write_report(rows: Sequence[CheckRow]) -> Json:
    """Return the report as JSON."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "state": worst_state(rows).value,
        "counts": {state.value: count for state, count in count_states(rows).items()},
        "checks": [
            {
                "check": row.check,
                "about": row.about,
                "state": row.result.state.value,
                "found": row.result.found,
                "cure": row.result.cure,
            }
            for row in rows
        ],
    }
