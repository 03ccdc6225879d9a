"""What a stream of the mock upstream looks like, as words in the user's message."""

import re
from dataclasses import asdict, dataclass
from typing import Self

_WORDS = re.compile(rb"bench((?: [a-z_]+=[\w.]+)+)")


@dataclass(frozen=True, slots=True)
class Spec:
    """One answer: `chunks` records of text, then `calls` tool calls in `fragments`.

    `per_write` chunks share a write, `pause` seconds lie between two writes. The
    `fault` strikes at the first `times` attempts, in the middle after `at` chunks.
    """

    stream: str = "00000000"  # eight characters, the same for no two streams
    chunks: int = 1
    per_write: int = 1
    pause: float = 0.0
    calls: int = 0
    fragments: int = 120
    fault: str = "none"
    at: int = 0
    times: int = 1
    stall: float = 2.0

    @property
    def message(self) -> str:
        """The words that ask the mock for this answer."""
        words = (f"{name}={value}" for name, value in asdict(self).items())
        return "bench " + " ".join(words)

    @classmethod
    def found_in(cls, body: bytes) -> Self:
        """Read the last such words of a request, in whatever JSON they stand."""
        found = _WORDS.findall(body)
        if not found:
            return cls()
        given = dict(word.split("=") for word in found[-1].decode().split())
        usual = asdict(cls())
        return cls(**{name: type(usual[name])(given[name]) for name in given})
