"""What a case of the probe finds, and what it hands on to later cases."""

from dataclasses import dataclass, field
from typing import Any

from byok.chat import Part
from byok.errors import ByokError
from byok.upstream.probe.asking import ProbeAnswer
from byok.upstream.probe.report import ProbeOutcome
from byok.upstream.reasons import reason_of


@dataclass(slots=True)
class ProbeState:
    """What earlier cases left for later ones: the answer that called a tool."""

    called: tuple[Part, ...] = ()
    thinks: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What a case found: outcome, remark, facts, and the answers that it got."""

    outcome: ProbeOutcome
    detail: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    answers: tuple[ProbeAnswer, ...] = ()


def failure(answer: ProbeAnswer, facts: dict[str, Any] | None = None) -> Finding:
    """Return what an answer that did not come means."""
    error = answer.refusal or answer.error
    assert error is not None  # noqa: S101 - the caller has seen it
    outcome = ProbeOutcome.REFUSED if answer.refusal else ProbeOutcome.FAILED
    shown = facts if answer.refusal else None
    return Finding(outcome, describe(error), shown or {}, (answer,))


def describe(error: ByokError) -> str:
    """Return an error in words of byok, with its code."""
    return f"{reason_of(error)} ({error.code})"
