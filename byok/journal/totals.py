"""Sums as SQL's `total` gives them, which are floating-point numbers."""

_MOST = 2**63 - 1


def whole(total: float) -> int:
    """Return a sum as a number of 64 bits; it is infinite only in a damaged file."""
    return int(max(-_MOST, min(total, _MOST)))
