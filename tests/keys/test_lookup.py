"""A key is looked up once, kept out of logs, and looked up anew when refused."""

import pytest

from byok.errors import KeyMissing
from byok.keys.ladder import KeyLadder, KeyWanted
from byok.keys.lookup import UpstreamKey
from byok.redact import Redactor
from tests.fakes.ring import FakeRing, store_of

KEY = "key-0123456789abcdef"
URL = "https://api.example.com/v1"


def lookup(
    environ: dict[str, str], wanted: KeyWanted, redactor: Redactor | None = None
) -> UpstreamKey:
    ladder = KeyLadder(environ=environ, keyring=store_of(FakeRing()))
    return UpstreamKey(ladder, wanted, redactor or Redactor())


async def test_a_key_is_found_once_and_kept_out_of_logs() -> None:
    environ = {"BYOK_KEY_BOX": KEY}
    redactor = Redactor()
    key = lookup(environ, KeyWanted("box", URL), redactor)
    assert await key.get() == KEY
    environ["BYOK_KEY_BOX"] = "another-0123456789"
    assert await key.get() == KEY
    assert KEY not in redactor(f"refused {KEY}")


async def test_a_refused_key_is_looked_up_anew() -> None:
    environ = {"BYOK_KEY_BOX": KEY}
    key = lookup(environ, KeyWanted("box", URL))
    await key.get()
    environ["BYOK_KEY_BOX"] = "another-0123456789"
    key.forget()
    assert await key.get() == "another-0123456789"


async def test_an_upstream_that_needs_no_key_works_without() -> None:
    assert await lookup({}, KeyWanted("box", URL)).get() == ""


@pytest.mark.parametrize("field", ["preset_env", "named_env"])
async def test_a_key_that_is_needed_and_missing_is_told(field: str) -> None:
    wanted = KeyWanted("box", URL, **{field: "BOX_API_KEY"})  # type: ignore[arg-type]
    with pytest.raises(KeyMissing, match="BOX_API_KEY"):
        await lookup({}, wanted).get()
