"""Efforts: how much a model should reason, and the nearest value that it accepts."""

from collections.abc import Iterable

# From the least to the most; `none` switches the reasoning off.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_RANK = {effort: rank for rank, effort in enumerate(EFFORTS)}


def nearest_effort(wanted: str, accepted: Iterable[str]) -> str:
    """Return the accepted effort that is nearest to the wanted one.

    Of two that are equally near it is the lower one, which costs less. `none` stands
    only for itself, unless nothing else is accepted. "" where no effort is wanted or
    accepted.
    """
    known = [effort for effort in accepted if effort in _RANK]
    if wanted in known or wanted not in _RANK:
        return wanted if wanted in known else ""
    graded = [effort for effort in known if effort != "none"] or known
    rank = _RANK[wanted]
    return min(graded, key=lambda e: (abs(_RANK[e] - rank), _RANK[e]), default="")


def unsent_effort(wanted: str) -> str:
    """Return the sentence for an effort that cannot be sent in any form."""
    return f"This model has no setting for effort, so `{wanted}` was not sent."
