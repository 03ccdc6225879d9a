"""Each vendor's users are told what they can do about a small window."""

import pytest

from byok.dialects.presets import OLLAMA, OPENAI_CHAT, PRESETS
from byok.dialects.refusals import window_cure


@pytest.mark.parametrize(
    ("vendor", "dialect", "word"),
    [
        ("ollama", OLLAMA, "num_ctx"),
        ("ollama", OPENAI_CHAT, "OLLAMA_CONTEXT_LENGTH"),
        ("vllm", OPENAI_CHAT, "--max-model-len"),
        ("openai_compatible", OPENAI_CHAT, "context_window"),
    ],
)
def test_a_cure_names_the_setting(vendor: str, dialect: str, word: str) -> None:
    assert word in window_cure(vendor, dialect)


def test_every_local_server_has_a_cure_of_its_own() -> None:
    local = [name for name, preset in PRESETS.items() if preset.local]
    assert len({window_cure(name, OPENAI_CHAT) for name in local}) == len(local)
