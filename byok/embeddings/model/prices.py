"""What vendors ask for embeddings, in dollars per million tokens, as of November 2026.

For estimates only, so few rows will do; the setting `embeddings.price` outranks them.
A price belongs to a vendor's own address: another host may ask for another one.
"""

from collections.abc import Mapping

# By the vendor's host, then by model.
_PRICES: Mapping[str, Mapping[str, float]] = {
    "api.openai.com": {
        "text-embedding-3-small": 0.02,
        "text-embedding-3-large": 0.13,
        "text-embedding-ada-002": 0.10,
    },
    "api.mistral.ai": {"mistral-embed": 0.10, "codestral-embed": 0.15},
    "api.voyageai.com": {"voyage-code-3": 0.18},
    "generativelanguage.googleapis.com": {"gemini-embedding-001": 0.15},
}


def dollars_per_million(host: str, model: str) -> float | None:
    """Return the price of a model at a host (with or without a port), if known."""
    rows = _PRICES.get(host.partition(":")[0], {})
    return rows.get(model.lower().removeprefix("models/"))
