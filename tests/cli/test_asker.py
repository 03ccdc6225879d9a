"""Who answers the questions of a command."""

import io
import sys

import pytest

from byok.cli.terminal import Asker, confirm
from byok.core.errors import ConfigError


class Terminal(io.StringIO):
    """Input that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_person_may_take_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("\n\n no\n mine \n"))
    asker = Asker(is_person=True)
    assert asker.confirm("Yes?") is True
    assert asker.text("Which?", "1") == "1"
    assert asker.confirm("Yes?") is False
    assert asker.text("Which?", "1") == "mine"


def test_yes_takes_what_is_proposed_and_nothing_else() -> None:
    asker = Asker(takes_best=True)
    assert asker.confirm("Sure?") is True
    assert asker.confirm("Sure?", default=False) is False
    assert asker.text("Which?", "1") == "1"
    with pytest.raises(ConfigError, match="Which"):
        asker.text("Which?", "")
    with pytest.raises(ConfigError, match="Key"):
        asker.secret("Key?")


@pytest.mark.parametrize("ask", ["confirm", "text", "secret"])
def test_nobody_answers_nothing(ask: str) -> None:
    asker = Asker("byok init --yes")
    arguments = ("Which?", "1") if ask == "text" else ("Which?",)
    with pytest.raises(ConfigError, match="Which") as caught:
        getattr(asker, ask)(*arguments)
    assert caught.value.hint == "In a script: byok init --yes"


@pytest.mark.parametrize(
    ("typed", "said"), [("y\n", True), ("n\n", False), ("\n", False)]
)
def test_confirm_asks_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, typed: str, said: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    assert confirm("Sure?", "byok embed clear") is said
