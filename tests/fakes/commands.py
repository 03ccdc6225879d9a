"""How a command ended that ran inside the test."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Cli: TypeAlias = Callable[..., Done]
