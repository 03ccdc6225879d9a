"""What was spent: requests, tokens, dollars, as far as they are known."""

from typing import NamedTuple

from byok.journal.entry import JournalEntry


class Spent(NamedTuple):
    """Sums of requests; `unpriced` are those whose cost is not among the `dollars`."""

    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0

    def plus(self, other: "Spent") -> "Spent":
        """Return both together."""
        return Spent(
            self.requests + other.requests,
            self.tokens + other.tokens,
            self.dollars + other.dollars,
            self.unpriced + other.unpriced,
        )


def spending_of(entry: JournalEntry) -> Spent:
    """Return what one request spent; the same rules as `journal/sums.py`."""
    return Spent(
        1 if entry.model and entry.attempts else 0,
        (entry.input_tokens or 0) + (entry.output_tokens or 0),
        entry.cost or 0.0,
        1 if entry.model and entry.cost is None else 0,
    )
