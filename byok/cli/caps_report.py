"""The part of `byok status` about caps: what is used of each."""

from byok.chat import Json
from byok.cli.output import say


def show_caps(answer: Json) -> None:
    """Print the caps, if there are any."""
    rows = answer.get("caps") or []
    for row in rows:
        say(f"cap: {row['name']}: {_write(row, answer.get('unpriced', 0))}")
    if rows and not answer["journal"]:
        say("cap: counted since the start of byok only, as the journal is off")


def _write(row: Json, unpriced: int) -> str:
    from byok.journal.cost import write_cost

    in_dollars = row["name"].startswith("usd")
    most = f"${row['most']:,.2f}" if in_dollars else f"{row['most']:,}"
    if row["used"] is None:
        return f"{most} at most"
    if not in_dollars:
        return f"{row['used']:,} of {most} used"
    comma = "," if unpriced else ""
    return f"{write_cost(row['used'], unpriced)}{comma} of {most} used"
