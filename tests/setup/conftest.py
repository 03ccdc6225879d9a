"""Presets whose local servers are where a test has them."""

from collections.abc import Callable

import pytest

from byok.dialects.presets import OPENAI_CHAT, PRESETS, Preset
from tests.fakes.upstream import dead_url


@pytest.fixture
def local_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Move the local presets: `local_at(vllm=url)`; nobody listens at the others."""
    for name in [n for n, preset in PRESETS.items() if preset.local]:
        dialect = PRESETS[name].dialect
        monkeypatch.setitem(PRESETS, name, Preset({dialect: dead_url()}, local=True))

    def move(**urls: str) -> None:
        for name, url in urls.items():
            dialect = PRESETS[name].dialect
            address = url.removesuffix("/v1") if dialect != OPENAI_CHAT else url
            monkeypatch.setitem(PRESETS, name, Preset({dialect: address}, local=True))

    return move
