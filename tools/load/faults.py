"""Random streams of a faulty upstream, and the answer that byok must give to each."""

import random
from dataclasses import dataclass

from tools.bench.answers import AUGMENT, Reading, parse_answer
from tools.bench.spec import SIZE, Damaged, Spec, check

SILENCE = 4.0  # seconds after which byok gives up an upstream in these runs
WHOLE, BROKEN, REFUSED, LEFT = "whole", "broken", "refused", "left"
_RATE = 50
_CODES = {
    "reset": "upstream_cut",
    "cut": "upstream_cut",
    "silence": "upstream_timeout",
    "429": "upstream_rate_limit",
    "500": "upstream_refused",
}
_KINDS = (
    ("none", 1, WHOLE, 60),
    ("none", 1, LEFT, 8),
    ("stall", 1, WHOLE, 4),
    ("reset", 1, BROKEN, 5),
    ("cut", 1, BROKEN, 5),
    ("silence", 1, BROKEN, 2),
    ("429", 1, WHOLE, 4),
    ("429", 9, REFUSED, 3),
    ("500", 1, WHOLE, 4),
    ("500", 9, REFUSED, 3),
    ("refuse", 1, WHOLE, 2),
)


@dataclass(frozen=True)
class Draw:
    """One stream to request; a client with the fate LEFT leaves after some reads."""

    spec: Spec
    fate: str
    leave_after: int = 0

    @property
    def kind(self) -> str:
        """The name under which such streams are counted."""
        times = f"x{self.spec.times}" if self.spec.fault.isdecimal() else ""
        return f"{self.spec.fault}{times}-{self.fate}"

    def leaves(self, reads: int) -> bool:
        """Tell whether the client hangs up now."""
        return self.fate == LEFT and reads >= self.leave_after


def draw_stream(luck: random.Random, stream: str, longest: int = 300) -> Draw:
    """Draw a stream of 20 to `longest` chunks, and its fault."""
    weights = [weight for *_, weight in _KINDS]
    fault, times, fate, _ = luck.choices(_KINDS, weights)[0]
    chunks = luck.randint(20, longest)
    spec = Spec(
        stream=stream,
        chunks=chunks,
        pause=1 / _RATE,
        per_write=1,
        calls=luck.choice((0, 0, 0, 2)),
        fragments=20,
        fault=fault,
        at=luck.randint(1, chunks - 1),
        times=times,
        stall=SILENCE / 2,
    )
    return Draw(spec, fate, luck.randint(1, chunks))


def verdict(draw: Draw, reading: Reading) -> str:
    """Return what is wrong with an answer, "" for nothing."""
    if draw.fate == LEFT:
        return reading.failure
    try:
        answer = parse_answer(reading, AUGMENT)
        if draw.fate == WHOLE:
            answer.check(draw.spec)
            return ""
        expected = _CODES[draw.spec.fault]
        if (answer.error, answer.ends) != (expected, 1):
            return f"{answer.ends} ends, error {answer.error!r}, not {expected!r}"
        count = len(answer.text) // SIZE
        check(answer.text, draw.spec.stream, count)
        if count != (draw.spec.at if draw.fate == BROKEN else 0):
            return f"{count} records came of {draw.spec.at}"
    except Damaged as error:
        return str(error)
    return ""
