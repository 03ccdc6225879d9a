"""What all sections of the settings have in common."""

import pytest
from pydantic import ValidationError

from byok.settings.section import SettingsSection

CANARY = "sk-canary-000"


class Box(SettingsSection):
    """A section with one key."""

    size: int = 1


def test_a_section_never_changes() -> None:
    box = Box()
    with pytest.raises(ValidationError):
        setattr(box, "size", 2)  # noqa: B010 - mypy knows it


def test_a_section_refuses_unknown_keys_without_showing_values() -> None:
    for given in ({"color": CANARY}, {"size": CANARY}):
        with pytest.raises(ValidationError) as caught:
            Box.model_validate(given)
        assert CANARY not in str(caught.value)
