"""docs/TROUBLESHOOTING.md: what to do, by what a user sees and by the code."""

from collections.abc import Iterable
from pathlib import Path

from byok.core.error_table import GROUPS, ErrorRow, error_rows

_SOURCE = Path(__file__).with_name("troubleshooting_head.md")


def page() -> str:
    """Return the whole page."""
    return written(_SOURCE.read_text(encoding="utf-8"), error_rows().values())


def written(head: str, rows: Iterable[ErrorRow]) -> str:
    """Write the page about these rows, by groups."""
    listed = [*rows]
    parts = [head.rstrip(), ""]
    for group, title in GROUPS.items():
        parts += [f"### {title}", ""]
        for row in listed:
            if row.group == group:
                parts += [*_lines(row), ""]
    return "\n".join(parts)


def _lines(row: ErrorRow) -> list[str]:
    return [
        f"#### `{row.code}`",
        "",
        row.what,
        "",
        f"- **Likely causes:** {'; '.join(row.causes)}.",
        f"- **What to do:** {' '.join(row.cures)}",
    ]
