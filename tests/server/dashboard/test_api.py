"""What the page may ask for: what commands ask for too, under names of its own."""

import pytest

from tests.fakes.daemon import running
from tests.fakes.dashboard import signed_in


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("daemon", "model"),
        ("official", "base_url"),
        ("catalog", "models"),
        ("keys", "keys"),
        ("index", "workspaces"),
    ],
)
async def test_what_commands_ask_for_has_a_name(name: str, field: str) -> None:
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        assert field in await page.call(name)
