"""Questions before something is done."""

import io
import sys

import pytest

from byok.cli.confirm import confirm
from byok.errors import ConfigError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "said"), [("y\n", True), ("n\n", False), ("\n", False)]
)
def test_confirm_asks_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, typed: str, said: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    assert confirm("Sure?", "byok embed clear") is said


def test_confirm_without_a_terminal_names_the_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(ConfigError, match="no terminal") as caught:
        confirm("Sure?", "byok embed clear")
    assert caught.value.hint == "In a script: byok embed clear --yes"
