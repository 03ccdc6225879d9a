"""The part of `byok status` about caps: what is used of each."""

from byok.chat import Json
from byok.cli.output import say


def show_caps(answer: Json) -> None:
    """Print the caps, if there are any."""
    rows = answer.get("caps") or []
    for row in rows:
        say(f"cap: {row['name']}: {_write(row)}")
    if rows and not answer["journal"]:
        say("cap: counted since the start of byok only, as the journal is off")
    if answer.get("unpriced") and any(row["name"].startswith("usd") for row in rows):
        say(
            f"cap: {answer['unpriced']:,} requests of today do not count in US "
            "dollars: their cost is unknown (byok usage)"
        )


def _write(row: Json) -> str:
    def write(value: float) -> str:
        return f"${value:,.2f}" if row["name"].startswith("usd") else f"{value:,}"

    if row["used"] is None:
        return f"{write(row['most'])} at most"
    return f"{write(row['used'])} of {write(row['most'])} used"
