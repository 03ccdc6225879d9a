"""Which FIM modes each vendor's servers have, as data.

Sources: the vendors' public API references and the issue threads of other bridges.
"""

from dataclasses import dataclass

from byok.dialects.fim.modes import FimMode
from byok.dialects.presets import OPENAI_COMPATIBLE


@dataclass(frozen=True, slots=True)
class FimProfile:
    """The modes of one vendor, the best first.

    `suffix_path` is where the mode `suffix` is served.
    """

    modes: tuple[FimMode, ...] = (FimMode.CHAT,)
    suffix_path: str = "completions"


# of Ollama's own API
OLLAMA_MODES: tuple[FimMode, ...] = (FimMode.SUFFIX, FimMode.TEMPLATE, FimMode.CHAT)
# Raw prompts reach the model as they are. The mode `suffix` is left out where a server
# is not known to have it: several ignore the field without a word.
_RAW = FimProfile((FimMode.TEMPLATE, FimMode.CHAT))
_DEFAULT = FimProfile()

PROFILES: dict[str, FimProfile] = {
    "mistral": FimProfile((FimMode.FIM, FimMode.CHAT)),
    "deepseek": FimProfile((FimMode.SUFFIX, FimMode.CHAT), "/beta/completions"),
    # it puts a raw prompt into the chat template, but knows the marks of its models
    "ollama": FimProfile((FimMode.SUFFIX, FimMode.CHAT)),
    "llamacpp": FimProfile((FimMode.INFILL, FimMode.TEMPLATE, FimMode.CHAT)),
    "vllm": _RAW,
    "sglang": _RAW,
    "lmstudio": _RAW,
    "together": _RAW,
    OPENAI_COMPATIBLE: _RAW,
}


def fim_profile_of(vendor: str) -> FimProfile:
    """Return a vendor's profile; others complete code by a chat."""
    return PROFILES.get(vendor, _DEFAULT)
