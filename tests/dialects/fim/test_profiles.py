"""Which FIM modes are tried for which vendor."""

from byok.dialects.fim.templates import fim_profile_of
from byok.dialects.presets import OPENAI_COMPATIBLE, PRESETS


def test_fim_modes_are_those_that_a_vendor_has() -> None:
    modes = {
        vendor: ", ".join(fim_profile_of(vendor).modes)
        for vendor in (*PRESETS, OPENAI_COMPATIBLE)
    }
    assert {vendor: mode for vendor, mode in modes.items() if mode != "chat"} == {
        "ollama": "suffix, chat",
        "deepseek": "suffix, chat",
        "mistral": "fim, chat",
        "llamacpp": "infill, template, chat",
        **dict.fromkeys(
            ("lmstudio", "vllm", "sglang", "together", OPENAI_COMPATIBLE),
            "template, chat",
        ),
    }
