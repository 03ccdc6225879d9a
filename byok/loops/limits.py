"""The limits of a turn: when the model is warned of a loop, and when the turn ends."""

from dataclasses import dataclass

# Tools whose answer may stay the same while something else goes on.
POLLING = frozenset({"read-process", "list-processes", "read-terminal"})


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """How often is too often; 0 means never.

    From `..._warn` on, the model is warned; at `..._end`, the turn is ended. `failing`
    counts an equal call that fails, `repeated` one that succeeds with an equal result,
    `steps` the answers with tool calls since the user's own words. `polling` are tools
    that may give an equal result for ever.
    """

    on: bool = True
    failing_warn: int = 3
    failing_end: int = 6
    repeated_warn: int = 5
    repeated_end: int = 10
    steps_warn: int = 150
    steps_end: int = 400
    polling: frozenset[str] = POLLING
