"""Which FIM modes are tried for which vendor."""

from byok.dialects.fim.templates import PROFILES, fim_profile_of
from byok.dialects.presets import OPENAI_COMPATIBLE, PRESETS, vendor_of


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


def test_fim_modes_follow_the_vendors_address() -> None:
    vendor = vendor_of(OPENAI_COMPATIBLE, PRESETS["mistral"].base_url)
    assert fim_profile_of(vendor).modes[0] == "fim"


def test_every_fim_profile_is_of_a_vendor_and_ends_with_a_chat() -> None:
    assert PROFILES.keys() <= {*PRESETS, OPENAI_COMPATIBLE}
    assert all(profile.modes[-1] == "chat" for profile in PROFILES.values())
