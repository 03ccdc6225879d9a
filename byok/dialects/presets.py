"""Well-known upstreams: where they are and where their key usually is."""

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Preset:
    """One upstream that needs no section in the user's configuration.

    `key_env` is the vendor's own environment variable, empty where no key is needed.
    A local one is looked for when the user chose nothing.
    """

    base_url: str
    key_env: str = ""
    local: bool = False
    hosts: str = ""  # the end of the vendor's host names, where they vary

    def is_at(self, base_url: str) -> bool:
        """Tell whether an address is the vendor's own."""
        given, own = urlsplit(base_url), urlsplit(self.base_url)
        if self.hosts:
            return given.scheme == "https" and (given.hostname or "").endswith(
                self.hosts
            )
        return (given.scheme, given.netloc) == (own.scheme, own.netloc)


PRESETS: dict[str, Preset] = {
    # local servers, in the order in which they are looked for
    "ollama": Preset("http://127.0.0.1:11434/v1", local=True),
    "lmstudio": Preset("http://127.0.0.1:1234/v1", local=True),
    "llamacpp": Preset("http://127.0.0.1:8080/v1", local=True),
    "vllm": Preset("http://127.0.0.1:8000/v1", local=True),
    "sglang": Preset("http://127.0.0.1:30000/v1", local=True),
    # hosted APIs
    "anthropic": Preset("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "openai": Preset("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": Preset("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "gemini": Preset(
        "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"
    ),
    "deepseek": Preset("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "groq": Preset("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Preset("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "together": Preset("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": Preset("https://api.x.ai/v1", "XAI_API_KEY"),
    "moonshot": Preset("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "zai": Preset("https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
    "dashscope": Preset(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"
    ),
    # has no common address: base_url is the user's own resource
    "azure": Preset("", "AZURE_OPENAI_API_KEY", hosts=".azure.com"),
}

# The two types that are no preset.
OPENAI_COMPATIBLE = "openai_compatible"
DEMO = "demo"
