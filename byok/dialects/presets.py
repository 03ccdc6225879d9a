"""Presets of well-known upstreams: base URLs, and the variable with the API key."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

OPENAI_CHAT = "openai_chat"
OPENAI_RESPONSES = "openai_responses"
GEMINI = "gemini"
OLLAMA = "ollama"
SUGGESTED_MODEL = "qwen3-coder:30b"  # of Ollama: it calls tools well
_OLLAMA_PLACES = ("127.0.0.1:11434", "localhost:11434", "[::1]:11434")
ANTHROPIC = "anthropic"
# The path that is added to a base URL without one.
DEFAULT_PATHS = {
    OPENAI_CHAT: "/v1",
    OPENAI_RESPONSES: "/v1",
    ANTHROPIC: "/v1",
    GEMINI: "/v1beta",
}

# The two types that are no preset.
OPENAI_COMPATIBLE = "openai_compatible"
DEMO = "demo"


@dataclass(frozen=True, slots=True)
class Preset:
    """A well-known upstream, usable without a section in the settings.

    Attributes:
        addresses: base URL by dialect, all of one origin; the first is the default.
            "" where each user has another one.
        key_env: the vendor's environment variable for the API key, "" without a key.
        local: a server on this machine; byok looks for it when nothing is configured.
        hosts: the suffix of the vendor's host names, where they vary.
        vendor: the preset of the same vendor with which this one shares its behaviour
            and its models, "" if there is none.
        only_by_name: byok does not choose it by itself where it finds its key, because
            the key serves other purposes too.
    """

    addresses: Mapping[str, str]
    key_env: str = ""
    local: bool = False
    hosts: str = ""
    vendor: str = ""
    only_by_name: bool = False

    @property
    def dialect(self) -> str:
        """The dialect that is used unless the user chooses another one."""
        return next(iter(self.addresses))

    @property
    def base_url(self) -> str:
        """The base URL for that dialect."""
        return self.addresses[self.dialect]

    def is_at(self, base_url: str) -> bool:
        """Tell whether a base URL belongs to the vendor."""
        given, own = urlsplit(base_url), urlsplit(self.base_url)
        if self.hosts:
            return given.scheme == "https" and (given.hostname or "").endswith(
                self.hosts
            )
        return (given.scheme, given.netloc) == (own.scheme, own.netloc)


def _compatible(base_url: str, key_env: str = "", **more: Any) -> Preset:
    return Preset({OPENAI_CHAT: base_url}, key_env, **more)


def _other(vendor: str, base_url: str, key_env: str) -> Preset:
    """Return the preset of another address of a vendor: a region, or a plan."""
    return _compatible(base_url, key_env, vendor=vendor, only_by_name=True)


def _with_responses(base_url: str, key_env: str, *, hosts: str = "") -> Preset:
    """Return a preset of a vendor whose better API is Responses."""
    addresses = {OPENAI_RESPONSES: base_url, OPENAI_CHAT: base_url}
    return Preset(addresses, key_env, hosts=hosts)


PRESETS: dict[str, Preset] = {
    # local servers, in the order in which they are looked for
    "ollama": Preset(
        {OLLAMA: "http://127.0.0.1:11434", OPENAI_CHAT: "http://127.0.0.1:11434/v1"},
        local=True,
    ),
    "lmstudio": _compatible("http://127.0.0.1:1234/v1", local=True),
    "llamacpp": _compatible("http://127.0.0.1:8080/v1", local=True),
    "vllm": _compatible("http://127.0.0.1:8000/v1", local=True),
    "sglang": _compatible("http://127.0.0.1:30000/v1", local=True),
    # hosted APIs
    "anthropic": Preset(
        {
            ANTHROPIC: "https://api.anthropic.com/v1",
            OPENAI_CHAT: "https://api.anthropic.com/v1",
        },
        "ANTHROPIC_API_KEY",
    ),
    "openai": _with_responses("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": _compatible("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "gemini": Preset(
        {
            GEMINI: "https://generativelanguage.googleapis.com/v1beta",
            OPENAI_CHAT: "https://generativelanguage.googleapis.com/v1beta/openai",
        },
        "GEMINI_API_KEY",
    ),
    "deepseek": _compatible("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "groq": _compatible("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": _compatible("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "together": _compatible("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": _with_responses("https://api.x.ai/v1", "XAI_API_KEY"),
    "moonshot": _compatible("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "zai": _compatible("https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
    "dashscope": _compatible(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"
    ),
    "cerebras": _compatible("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "fireworks": _compatible(
        "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"
    ),
    "deepinfra": _compatible(
        "https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"
    ),
    "nebius": _compatible("https://api.tokenfactory.nebius.com/v1", "NEBIUS_API_KEY"),
    "novita": _compatible("https://api.novita.ai/openai/v1", "NOVITA_API_KEY"),
    "sambanova": _compatible("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    "siliconflow": _compatible("https://api.siliconflow.com/v1", "SILICONFLOW_API_KEY"),
    "chutes": _compatible("https://llm.chutes.ai/v1", "CHUTES_API_KEY"),
    "nvidia": _compatible("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
    "vercel": _compatible("https://ai-gateway.vercel.sh/v1", "AI_GATEWAY_API_KEY"),
    "perplexity": Preset(
        {OPENAI_RESPONSES: "https://api.perplexity.ai/v1"}, "PERPLEXITY_API_KEY"
    ),
    "minimax": _compatible("https://api.minimax.io/v1", "MINIMAX_API_KEY"),
    "mimo": _compatible("https://api.xiaomimimo.com/v1", "MIMO_API_KEY"),
    "stepfun": _compatible("https://api.stepfun.com/v1", "STEPFUN_API_KEY"),
    "volcengine": _compatible(
        "https://ark.cn-beijing.volces.com/api/v3", "ARK_API_KEY"
    ),
    "bigmodel": _compatible(
        "https://open.bigmodel.cn/api/paas/v4", "ZHIPU_API_KEY", vendor="zai"
    ),
    "ollama_cloud": Preset(
        {OPENAI_CHAT: "https://ollama.com/v1", OLLAMA: "https://ollama.com"},
        "OLLAMA_API_KEY",
    ),
    # used only by name
    "huggingface": _compatible(
        "https://router.huggingface.co/v1", "HF_TOKEN", only_by_name=True
    ),
    "bedrock": Preset(
        {
            OPENAI_CHAT: "https://bedrock-mantle.us-east-1.api.aws/v1",
            ANTHROPIC: "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1",
        },
        "AWS_BEARER_TOKEN_BEDROCK",
        hosts=".api.aws",
        only_by_name=True,
    ),
    "zai_coding": _other("zai", "https://api.z.ai/api/coding/paas/v4", "ZAI_API_KEY"),
    "bigmodel_coding": _other(
        "zai", "https://open.bigmodel.cn/api/coding/paas/v4", "ZHIPU_API_KEY"
    ),
    "moonshot_cn": _other("moonshot", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY"),
    "dashscope_cn": _other(
        "dashscope",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
    ),
    # has no common address: base_url is the user's own resource
    "azure": _with_responses("", "AZURE_OPENAI_API_KEY", hosts=".azure.com"),
}
# Some models behind such a URL can be asked by Responses only.
_COMPATIBLE = Preset({OPENAI_CHAT: "", OPENAI_RESPONSES: ""})


def preset_of(kind: str) -> Preset:
    """Return the preset of a type; other types get one without a base URL."""
    return PRESETS.get(kind, _COMPATIBLE)


def find_preset(kind: str, base_url: str) -> str:
    """Return the name of an upstream's preset, found by type or by base URL.

    Of several presets on one host it is the one whose address the base URL begins with.
    """
    if kind != OPENAI_COMPATIBLE:
        return kind
    at = [n for n, p in PRESETS.items() if not p.local and p.is_at(base_url)]
    below = (n for n in at if base_url.startswith(PRESETS[n].base_url or "-"))
    # The ports of other local servers are common to many programs.
    is_ollama = is_ollama_here(base_url)
    return next(iter((*below, *at, OLLAMA if is_ollama else kind)))


def is_ollama_here(url: str) -> bool:
    """Tell the address at which Ollama listens on its own machine."""
    return urlsplit(url).netloc in _OLLAMA_PLACES


def vendor_of(kind: str, base_url: str) -> str:
    """Return the name of the vendor's preset, which says how its API behaves."""
    name = find_preset(kind, base_url)
    return preset_of(name).vendor or name


# The end of a base URL's path, where several APIs of a server are side by side.


def path_ends_with(base_url: str, ending: str) -> bool:
    """Tell whether the path of a URL has an ending such as `/v1`; its host has none."""
    return urlsplit(base_url).path.endswith(ending)


def without_ending(base_url: str, ending: str) -> str:
    """Return a base URL without an ending of its path, where it has that one."""
    if not path_ends_with(base_url, ending):
        return base_url
    return base_url.removesuffix(ending)
