"""The figures of a load run, and the goals it missed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """One run; printed as one line."""

    case: str
    figures: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a figure that is no goal."""
        self.figures.append(text)

    def goal(self, what: str, value: float, most: float, unit: str = "") -> None:
        """Add a figure that must not exceed `most`; NaN is not known, and no miss."""
        told = "unknown" if math.isnan(value) else f"{value:.4g}{unit}"
        self.figures.append(f"{what} {told} (goal {most:g})")
        if value > most:
            self.missed.append(what)

    def line(self) -> str:
        """Write the run as one line."""
        verdict = f"MISSED {', '.join(self.missed)}" if self.missed else "ok"
        return f"{self.case}: {verdict}: {'; '.join(self.figures)}"


def slope_per_hour(samples: Sequence[tuple[float, float]]) -> float:
    """Fit a line through (seconds, value); NaN for fewer than three samples."""
    if len(samples) < 3:
        return math.nan
    middle = sum(time for time, _ in samples) / len(samples)
    level = sum(value for _, value in samples) / len(samples)
    over = sum((time - middle) * (value - level) for time, value in samples)
    under = sum((time - middle) ** 2 for time, _ in samples)
    return 3600 * over / under if under else math.nan


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of all lie; NaN for none."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
