"""The streams of the mock upstream: how they are specified, and how they are checked.

Words in the user's message specify a stream. Its text consists of records of equal
length: stream, number, time of sending, padding. So a reader can check that the text is
complete and in order, and knows when each record was sent. The padding has characters
that careless code damages: quotes, line ends, wide characters, raw U+0085, U+2028.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Self

_WORDS = re.compile(rb"bench((?: [a-z_]+=[\w.]+)+)")
PADDING = ' "a\\b"\r\n\té€😀\x85\u2028\u2029<|'
_STREAM, _NUMBER, _TIME = 8, 6, 16  # characters of each part of a record
SIZE = _STREAM + _NUMBER + _TIME + len(PADDING)


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
    def from_request(cls, body: bytes) -> Self:
        """Read the last specification in a request, wherever in the JSON it is."""
        matches = _WORDS.findall(body)
        if not matches:
            return cls()
        words = dict(word.split("=") for word in matches[-1].decode().split())
        defaults = asdict(cls())
        return cls(**{name: type(defaults[name])(words[name]) for name in words})


class Damaged(Exception):
    """What arrived is not what was sent."""


def record(stream: str, number: int, sent: int) -> str:
    """Write one record; `sent` is the monotonic clock in nanoseconds."""
    return f"{stream:0>{_STREAM}}{number:0{_NUMBER}}{sent:0{_TIME}}{PADDING}"


def check(text: str, stream: str, count: int) -> list[int]:
    """Return when each record was sent.

    Raises:
        Damaged: one is lost, foreign, doubled, out of order or changed.
    """
    if len(text) != count * SIZE:
        raise Damaged(f"{len(text)} characters arrived of {count * SIZE}")
    sent = []
    for number in range(count):
        part = text[number * SIZE : (number + 1) * SIZE]
        time = part[_STREAM + _NUMBER : -len(PADDING)]
        if not time.isdecimal() or part != record(stream, number, int(time)):
            raise Damaged(f"record {number} of {stream} arrived as {part!r}")
        sent.append(int(time))
    return sent


def arguments(stream: str, call: int, fragments: int) -> list[str]:
    """Write the arguments of a tool call, cut into fragments."""
    words = "".join(f"{stream}-{call}-{number}{PADDING[:9]}" for number in range(60))
    whole = json.dumps({"text": words}, ensure_ascii=False)
    step = -(-len(whole) // fragments)
    return [whole[offset : offset + step] for offset in range(0, len(whole), step)]


def check_calls(arrived_calls: list[tuple[str, str]], stream: str, calls: int) -> None:
    """Compare tool calls, as pairs of id and arguments, with what was sent.

    Raises:
        Damaged: a call is lost, doubled or changed.
    """
    if (
        len({call_id for call_id, _ in arrived_calls}) != len(arrived_calls)
        or len(arrived_calls) != calls
    ):
        raise Damaged(f"{len(arrived_calls)} tool calls arrived of {calls}")
    for number, (_, arrived) in enumerate(arrived_calls):
        if _object(arrived) != _object("".join(arguments(stream, number, 1))):
            raise Damaged(f"the arguments of call {number} arrived as {arrived!r}")


def arrival_times(pieces: Iterator[tuple[float, str]], count: int) -> list[float]:
    """Return when each record was complete at the client; pieces are (time, text)."""
    times: list[float] = []
    length = 0
    for time, text in pieces:
        length += len(text)
        times += [time] * (min(count, length // SIZE) - len(times))
    return times


def _object(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
