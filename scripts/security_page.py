"""docs/reference/security.md: the threat model and the table of tested cases."""

from pathlib import Path

from scripts.case_tests import Case, all_cases

_SOURCE = Path(__file__).with_name("security_head.md")
_KINDS = {"B": ("Bad input", "input"), "F": ("Faults", "fault")}


def page() -> str:
    """Return the whole page."""
    return write_page(_SOURCE.read_text(encoding="utf-8"), all_cases())


def write_page(head: str, cases: list[Case]) -> str:
    """Write the page about these cases."""
    parts = [head.rstrip(), "", "## Tested cases", "", _count(cases), ""]
    for letter, (title, given) in _KINDS.items():
        parts += [f"### {title}", "", f"| case | {given} | expected | tests |"]
        parts += ["|---|---|---|---|"]
        parts += [_row(case) for case in cases if case.id.startswith(letter)] + [""]
    return "\n".join(parts)


def _count(cases: list[Case]) -> str:
    gaps = [case for case in cases if case.gaps]
    text = f"{len(cases) - len(gaps)} of {len(cases)} cases pass, "
    if not gaps:
        return f"{text}no known gaps."
    reasons = "; ".join(f"{case.id}: {', '.join(case.gaps)}" for case in gaps)
    return f"{text}{len(gaps)} known gap{'s' * (len(gaps) > 1)} ({reasons})."


def _row(case: Case) -> str:
    expected = case.expected + "".join(f". **Known gap:** {gap}" for gap in case.gaps)
    names = dict.fromkeys(f"[{test.name}](../../{test.file})" for test in case.tests)
    cells = (case.id, case.given, expected, "<br>".join(names))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
