"""Vendors: a row for each says where its APIs are and how they differ from others.

Sources: the vendors' public API references and the issue threads of other bridges.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from byok.dialects.model_facts import Replay
from byok.dialects.safe_names import ANY_ID, IdRule

OPENAI_CHAT = "openai_chat"
OPENAI_RESPONSES = "openai_responses"
GEMINI = "gemini"
OLLAMA = "ollama"
ANTHROPIC = "anthropic"
# The path that is added to a base URL without one.
DEFAULT_PATHS = {
    OPENAI_CHAT: "/v1",
    OPENAI_RESPONSES: "/v1",
    ANTHROPIC: "/v1",
    GEMINI: "/v1beta",
}
# The two types of upstreams that are no presets.
OPENAI_COMPATIBLE = "openai_compatible"
DEMO = "demo"
SUGGESTED_MODEL = "qwen3-coder:30b"  # of Ollama: it calls tools well
_OLLAMA_HOSTS = ("127.0.0.1:11434", "localhost:11434", "[::1]:11434")
FREE_CHOICE = ("forced", "forbidden")  # a `tool_choice` other than `auto` is refused
_NO_SCHEMA = ("json:schema",)  # `response_format` accepts no schema


class EffortForm(StrEnum):
    """The field by which a vendor's API sets how much a model reasons."""

    NONE = "none"  # there is none
    FIELD = "reasoning_effort"
    OBJECT = "reasoning"  # {"effort"}, as OpenRouter
    SWITCH = "thinking"  # {"type": "enabled"}, and `reasoning_effort` if it has values
    BUDGET = "enable_thinking"  # a flag, and `thinking_budget` in tokens
    TEMPLATE = "chat_template_kwargs"  # for the chat template of a local server


class CacheForm(StrEnum):
    """How prompt caching is requested from a vendor's API, if it must be requested.

    CLAUDE: with `cache_control`, for the models of Anthropic only. PARTS: with
    `cache_control` in the content of messages.
    """

    NONE = "none"
    CLAUDE = "claude"
    PARTS = "parts"


@dataclass(frozen=True, slots=True)
class Quirks:
    """The differences of a vendor's Chat Completions API from OpenAI's.

    A row lists only differences from these defaults, which most servers accept.

    Attributes:
        output_cap: the body field that limits the answer's tokens.
        null_content: `content: null` is accepted beside tool calls; else it is "".
        stream_options: `stream_options.include_usage` is accepted and needed.
        tool_choice: send `"auto"`; False if it is the default or refused.
        parallel_tool_calls: the field of that name is accepted.
        tool_ids: which ids of tool calls are accepted.
        narrow_schemas: tool schemas must use Gemini's subset of JSON Schema.
        plain_keys: a tool's parameters have letters, digits, _, . and - in their names.
        auth_header: the header for the key; `Authorization` takes `Bearer <key>`.
        replay: which earlier reasoning is sent back, if a model's facts do not tell;
            reasoning without data is sent as text.
        empty_reasoning: "" is sent if reasoning must be sent back, but is lost.
        details: `reasoning_details` are sent back, also for models of Google.
        effort: the form of the effort.
        tools_without_effort: models that belong to another API take tools here only
            with the effort `none`.
        cache: how prompt caching is requested.
        cache_key: a key of the conversation is sent, which routes it to the server
            that has its prefix in the cache; `cache_header` is a header for it.
        preserve_thinking: the path of the flag with which models that were trained for
            it (Qwen 3.6 and later) use the reasoning of earlier turns; "" for none.
        with_tools: further body fields of a request with tools to a model that reasons.
        needs: the remedies that its models need; see `Codec.needs`.
        stands_in: the vendor has an API of its own that does more: it caches, keeps
            reasoning, or has a field for the window.
        loaded: the paths that describe the loaded models; the first answer counts.
    """

    output_cap: str = "max_tokens"
    null_content: bool = True
    stream_options: bool = True
    tool_choice: bool = True
    parallel_tool_calls: bool = True
    tool_ids: IdRule = ANY_ID
    narrow_schemas: bool = False
    plain_keys: bool = False
    auth_header: str = "Authorization"
    replay: Replay | None = None
    empty_reasoning: bool = False
    details: bool = False
    effort: EffortForm = EffortForm.FIELD
    tools_without_effort: bool = False
    cache: CacheForm = CacheForm.NONE
    cache_key: bool = False
    cache_header: str = ""
    preserve_thinking: str = ""
    with_tools: Mapping[str, Any] = field(default_factory=dict, hash=False)
    needs: tuple[str, ...] = ()
    stands_in: bool = False
    loaded: tuple[str, ...] = ()


DEFAULT = Quirks()


class DefaultModels(Struct, frozen=True):
    """Patterns of whole names, as `family_name` returns them; the best ones first.

    `small` is for commit messages, titles and completions, `completion` for models
    that can fill gaps in code.
    """

    chat: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    completion: tuple[str, ...] = ()


class Preset(Struct, frozen=True):
    """A well-known upstream, usable without a section in the settings.

    Attributes:
        addresses: base URL by dialect, all of one origin; the first is the default.
            "" if each user has another one.
        title: its name for people, unless that is the preset's name with a capital.
        key_env: the vendor's environment variable for the API key, "" without a key.
        local: a server on this machine; byok looks for it when nothing is configured.
        hosts: the suffix of the vendor's host names, if they vary.
        vendor: the preset of the same vendor with which this one shares its behaviour
            and its models, "" if there is none.
        only_by_name: byok does not choose it just because it finds the key, which
            serves other purposes too.
        quirks: how its Chat Completions differ from OpenAI's.
        models: patterns of its good models; None for those of any host.
        fim: the FIM modes of its servers besides CHAT, the best first. Raw prompts
            (`template`) reach the model unchanged. `suffix` is listed only if the
            servers are known to support it: some ignore the field silently.
        suffix_path: the path of the mode `suffix`.
        edit_path: the path for next edits, "" if there is none.
        window_cure: a hint for the user about a window that is too small.
        makes_models: the abilities that it lists for its models hold on other hosts.
        lists: its name in LiteLLM's list of models and in that of models.dev.
        otel: its name in the conventions of OpenTelemetry, if it is another one.
    """

    addresses: Mapping[str, str]
    key_env: str = ""
    local: bool = False
    hosts: str = ""
    vendor: str = ""
    only_by_name: bool = False
    quirks: Quirks = DEFAULT
    models: DefaultModels | None = None
    fim: tuple[str, ...] = ()
    suffix_path: str = "completions"
    edit_path: str = ""
    window_cure: str = ""
    makes_models: bool = False
    lists: tuple[str, str] = ("", "")
    otel: str = ""
    title: str = ""

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
        url, own = urlsplit(base_url), urlsplit(self.base_url)
        if self.hosts:
            return url.scheme == "https" and (url.hostname or "").endswith(self.hosts)
        return (url.scheme, url.netloc) == (own.scheme, own.netloc)


_V = r"(\d[\d.]*)"  # a version; of several models the highest one counts
_CLAUDE_V = r"(\d[\d.-]*?)(?:-20\d{6})?"
_CLAUDE = DefaultModels(
    (f"claude-sonnet-{_CLAUDE_V}", f"claude-opus-{_CLAUDE_V}", "claude-.*sonnet.*"),
    (f"claude-haiku-{_CLAUDE_V}", "claude-.*haiku.*"),
)
_GPT = DefaultModels(
    (f"gpt-{_V}(?:-sol)?", f"gpt-{_V}-terra", "gpt-4o", "gpt-3.5-turbo"),
    (f"gpt-{_V}-(?:luna|mini)", f"gpt-{_V}-nano", "gpt-4o-mini"),
)
_GEMINI = DefaultModels(
    (f"gemini-{_V}-flash(?:-preview)?", f"gemini-{_V}-pro.*", "gemini-flash-latest"),
    (f"gemini-{_V}-flash-lite(?:-preview)?", f"gemini-{_V}-flash(?:-preview)?"),
)
_OPEN = DefaultModels(
    (
        rf"glm-{_V}(?:-fp8|-tee)?",
        rf"kimi-k{_V}(?:-instruct|-code)?(?:-tee|-0905)?",
        rf"deepseek[.-]v{_V}(?:-pro)?(?:-\d+)?(?:-tee)?",
        rf"minimax-m{_V}(?:-tee)?",
        rf"qwen{_V}-(?:397b|coder-480b|235b|max|plus).*",
        r"gpt-oss-120b",
        rf"qwen{_V}-(?!.*(?:vl|guard)).*",
        r"(?:meta-)?llama-?3[.-]3-70b.*",
    ),
    (
        rf"glm-{_V}-(?:flash|air).*",
        rf"deepseek-v{_V}-flash.*",
        r"gpt-oss-20b",
        rf"gemma-{_V}-(?:31b|27b|26b).*",
        r"(?:meta-)?llama-?3[.-]1-8b.*",
    ),
)
# On this machine, two models may not fit into memory at once: small jobs use the model
# of the chat.
LOCAL_MODELS = DefaultModels(
    (
        r"(?:qwen-?3.*-coder|devstral).*",
        r"(?:gpt-oss|glm-[4-9]|qwen-?3\.\d|qwen-?3[:-]|gemma-?4"
        r"|kimi|minimax|deepseek-v|mistral-small|magistral|ministral|granite-?[4-9]).*",
        r"(?:qwen-?2\.5|llama-?3\.[1-9]|mistral|granite|gemma-?3|phi-?4).*",
    )
)
# A gateway may have models of all vendors.
ANY_MODELS = DefaultModels(
    (*_CLAUDE.chat, *_GPT.chat, *_GEMINI.chat, *_OPEN.chat, *LOCAL_MODELS.chat),
    (*_CLAUDE.small, *_GPT.small, *_GEMINI.small),
)
HOST_MODELS = DefaultModels(_OPEN.chat + _GPT.chat, _OPEN.small)
_IN_TEMPLATE = "chat_template_kwargs.preserve_thinking"

PRESETS: dict[str, Preset] = {
    # Local servers, in the order in which byok looks for them.
    "ollama": Preset(
        {OLLAMA: "http://127.0.0.1:11434", OPENAI_CHAT: "http://127.0.0.1:11434/v1"},
        local=True,
        quirks=Quirks(
            stands_in=True,
            tool_choice=False,
            parallel_tool_calls=False,
            loaded=("/api/ps",),
            needs=FREE_CHOICE,
        ),
        fim=("suffix",),
        window_cure=(
            'Set type = "ollama" and no dialect for this upstream, so that byok '
            "chooses the window, or start Ollama with OLLAMA_CONTEXT_LENGTH=32768."
        ),
    ),
    "lmstudio": Preset(
        {OPENAI_CHAT: "http://127.0.0.1:1234/v1"},
        local=True,
        quirks=Quirks(
            null_content=False,
            preserve_thinking=_IN_TEMPLATE,
            loaded=("/api/v1/models", "/api/v0/models"),
        ),
        fim=("template",),
        window_cure="Load the model with a longer context length in LM Studio.",
        title="LM Studio",
    ),
    # The similar server of llama-cpp-python answers nothing to `auto`.
    "llamacpp": Preset(
        {OPENAI_CHAT: "http://127.0.0.1:8080/v1"},
        local=True,
        quirks=Quirks(
            null_content=False,
            tool_choice=False,
            effort=EffortForm.TEMPLATE,
            preserve_thinking=_IN_TEMPLATE,
            loaded=("/props",),
        ),
        fim=("infill", "template"),
        window_cure="Start llama-server with a larger --ctx-size.",
        title="llama.cpp",
    ),
    "vllm": Preset(
        {OPENAI_CHAT: "http://127.0.0.1:8000/v1"},
        local=True,
        quirks=Quirks(effort=EffortForm.TEMPLATE, preserve_thinking=_IN_TEMPLATE),
        fim=("template",),
        window_cure="Start vLLM with a larger --max-model-len.",
        title="vLLM",
    ),
    "sglang": Preset(
        {OPENAI_CHAT: "http://127.0.0.1:30000/v1"},
        local=True,
        quirks=Quirks(effort=EffortForm.TEMPLATE, preserve_thinking=_IN_TEMPLATE),
        fim=("template",),
        window_cure="Start SGLang with a larger --context-length.",
        title="SGLang",
    ),
    # Hosted APIs.
    "anthropic": Preset(
        {
            ANTHROPIC: "https://api.anthropic.com/v1",
            OPENAI_CHAT: "https://api.anthropic.com/v1",
        },
        "ANTHROPIC_API_KEY",
        quirks=Quirks(
            stands_in=True,
            parallel_tool_calls=False,
            tool_ids=IdRule(64, is_plain=True),
            plain_keys=True,
            effort=EffortForm.NONE,
            needs=("json",),
        ),
        models=_CLAUDE,
        makes_models=True,
        lists=("anthropic", "anthropic"),
        title="Anthropic (Claude)",
    ),
    "openai": Preset(
        {
            OPENAI_RESPONSES: "https://api.openai.com/v1",
            OPENAI_CHAT: "https://api.openai.com/v1",
        },
        "OPENAI_API_KEY",
        quirks=Quirks(
            output_cap="max_completion_tokens",
            tool_ids=IdRule(40),
            tools_without_effort=True,
            cache_key=True,
            needs=("most tools:128",),
        ),
        models=_GPT,
        makes_models=True,
        lists=("openai", "openai"),
        title="OpenAI",
    ),
    "openrouter": Preset(
        {OPENAI_CHAT: "https://openrouter.ai/api/v1"},
        "OPENROUTER_API_KEY",
        quirks=Quirks(
            details=True,
            effort=EffortForm.OBJECT,
            cache=CacheForm.CLAUDE,
        ),
        models=DefaultModels(
            (*_CLAUDE.chat, *_GPT.chat, *_GEMINI.chat, *_OPEN.chat),
            (*_CLAUDE.small, *_GPT.small, *_GEMINI.small, *_OPEN.small),
        ),
        title="OpenRouter",
    ),
    "gemini": Preset(
        {
            GEMINI: "https://generativelanguage.googleapis.com/v1beta",
            OPENAI_CHAT: "https://generativelanguage.googleapis.com/v1beta/openai",
        },
        "GEMINI_API_KEY",
        quirks=Quirks(
            stands_in=True,
            parallel_tool_calls=False,
            narrow_schemas=True,
            needs=("most tools:512",),
        ),
        models=_GEMINI,
        makes_models=True,
        lists=("gemini", "google"),
        otel="gcp.gemini",
        title="Google (Gemini)",
    ),
    "deepseek": Preset(
        {OPENAI_CHAT: "https://api.deepseek.com/v1"},
        "DEEPSEEK_API_KEY",
        quirks=Quirks(
            null_content=False,
            replay=Replay.EVERY_TURN,
            empty_reasoning=True,
            effort=EffortForm.SWITCH,
            needs=("most tools:128", *FREE_CHOICE, *_NO_SCHEMA),
        ),
        models=DefaultModels(
            (
                rf"deepseek-v{_V}-pro",
                rf"deepseek-v{_V}.*",
                r"deepseek-(?:chat|reasoner)",
            ),
            (rf"deepseek-v{_V}-flash", r"deepseek-chat"),
            (rf"deepseek-v{_V}-flash", r"deepseek-chat"),
        ),
        fim=("suffix",),
        suffix_path="/beta/completions",
        makes_models=True,
        lists=("deepseek", "deepseek"),
        title="DeepSeek",
    ),
    "groq": Preset(
        {OPENAI_CHAT: "https://api.groq.com/openai/v1"},
        "GROQ_API_KEY",
        quirks=Quirks(output_cap="max_completion_tokens", needs=("most tools:128",)),
        models=DefaultModels(
            (r"kimi-k.*", r"gpt-oss-120b", rf"qwen{_V}-.*", r"llama-3\.3-70b.*"),
            (r"gpt-oss-20b", r"llama-3\.1-8b-instant"),
        ),
        lists=("groq", "groq"),
    ),
    "mistral": Preset(
        {OPENAI_CHAT: "https://api.mistral.ai/v1"},
        "MISTRAL_API_KEY",
        quirks=Quirks(
            stream_options=False,  # it always sends counts
            tool_ids=IdRule(9, is_exact=True),
            needs=("roles",),
        ),
        models=DefaultModels(
            (
                "mistral-medium-latest",
                "devstral-(?:medium-)?latest",
                "mistral-large-.*",
            ),
            ("mistral-small-latest", "ministral-.*"),
            ("codestral-latest", r"codestral-\d+"),
        ),
        fim=("fim",),
        makes_models=True,
        lists=("mistral", "mistral"),
        otel="mistral_ai",
        title="Mistral AI",
    ),
    "together": Preset(
        {OPENAI_CHAT: "https://api.together.xyz/v1"},
        "TOGETHER_API_KEY",
        fim=("template",),
        lists=("together_ai", "togetherai"),
        title="Together AI",
    ),
    "xai": Preset(
        {OPENAI_RESPONSES: "https://api.x.ai/v1", OPENAI_CHAT: "https://api.x.ai/v1"},
        "XAI_API_KEY",
        quirks=Quirks(
            output_cap="max_completion_tokens",
            cache_header="x-grok-conv-id",
            needs=("most tools:200",),
        ),
        models=DefaultModels(
            (r"grok-(\d\.\d)(?:-latest)?", r"grok-code.*", r"grok-\d.*"),
            (r"grok-code-fast.*", r"grok-\d.*-fast-non-reasoning"),
        ),
        makes_models=True,
        lists=("xai", "xai"),
        otel="x_ai",
        title="xAI (Grok)",
    ),
    "moonshot": Preset(
        {OPENAI_CHAT: "https://api.moonshot.ai/v1"},
        "MOONSHOT_API_KEY",
        quirks=Quirks(
            replay=Replay.TOOL_TURNS,
            empty_reasoning=True,
            effort=EffortForm.SWITCH,
            cache_key=True,
            needs=FREE_CHOICE,
        ),
        models=DefaultModels(
            (rf"kimi-k{_V}", rf"kimi-k{_V}-(?:code|pro|turbo-preview|\d+-preview)"),
            (rf"kimi-k2\.{_V}", r"moonshot-v1-auto"),
        ),
        makes_models=True,
        lists=("moonshot", "moonshotai"),
        title="Moonshot AI (Kimi)",
    ),
    "zai": Preset(
        {OPENAI_CHAT: "https://api.z.ai/api/paas/v4"},
        "ZAI_API_KEY",
        quirks=Quirks(
            null_content=False,
            tool_choice=False,
            parallel_tool_calls=False,
            replay=Replay.TOOL_TURNS,
            effort=EffortForm.SWITCH,
            # The reasoning of earlier turns is kept.
            with_tools={
                "tool_stream": True,
                "thinking": {"type": "enabled", "clear_thinking": False},
            },
            needs=(*FREE_CHOICE, *_NO_SCHEMA),
        ),
        makes_models=True,
        lists=("zai", "zai"),
        title="Z.ai (GLM)",
    ),
    "dashscope": Preset(
        {OPENAI_CHAT: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"},
        "DASHSCOPE_API_KEY",
        quirks=Quirks(
            null_content=False,
            effort=EffortForm.BUDGET,
            cache=CacheForm.PARTS,
            preserve_thinking="preserve_thinking",
            needs=(*FREE_CHOICE, *_NO_SCHEMA),
        ),
        models=DefaultModels(
            (rf"qwen{_V}-plus", rf"qwen{_V}-max", r"qwen3-coder-plus", r"qwen-plus.*"),
            (rf"qwen{_V}-flash", r"qwen-(?:flash|turbo)(?:-latest)?"),
        ),
        makes_models=True,
        lists=("dashscope", "alibaba"),
        title="Alibaba DashScope (Qwen)",
    ),
    "cerebras": Preset(
        {OPENAI_CHAT: "https://api.cerebras.ai/v1"},
        "CEREBRAS_API_KEY",
        quirks=Quirks(parallel_tool_calls=False),
        lists=("cerebras", "cerebras"),
    ),
    "fireworks": Preset(
        {OPENAI_CHAT: "https://api.fireworks.ai/inference/v1"},
        "FIREWORKS_API_KEY",
        lists=("fireworks_ai", "fireworks-ai"),
        title="Fireworks AI",
    ),
    "deepinfra": Preset(
        {OPENAI_CHAT: "https://api.deepinfra.com/v1/openai"},
        "DEEPINFRA_API_KEY",
        lists=("deepinfra", "deepinfra"),
        title="DeepInfra",
    ),
    "nebius": Preset(
        {OPENAI_CHAT: "https://api.tokenfactory.nebius.com/v1"},
        "NEBIUS_API_KEY",
        lists=("nebius", "nebius"),
    ),
    "novita": Preset(
        {OPENAI_CHAT: "https://api.novita.ai/openai/v1"},
        "NOVITA_API_KEY",
        lists=("novita", "novita-ai"),
        title="Novita AI",
    ),
    "sambanova": Preset(
        {OPENAI_CHAT: "https://api.sambanova.ai/v1"},
        "SAMBANOVA_API_KEY",
        lists=("sambanova", ""),
        title="SambaNova",
    ),
    "siliconflow": Preset(
        {OPENAI_CHAT: "https://api.siliconflow.com/v1"},
        "SILICONFLOW_API_KEY",
        quirks=Quirks(null_content=False, effort=EffortForm.BUDGET),
        title="SiliconFlow",
    ),
    "chutes": Preset({OPENAI_CHAT: "https://llm.chutes.ai/v1"}, "CHUTES_API_KEY"),
    "nvidia": Preset(
        {OPENAI_CHAT: "https://integrate.api.nvidia.com/v1"},
        "NVIDIA_API_KEY",
        title="NVIDIA NIM",
    ),
    "vercel": Preset(
        {OPENAI_CHAT: "https://ai-gateway.vercel.sh/v1"},
        "AI_GATEWAY_API_KEY",
        quirks=Quirks(details=True, effort=EffortForm.OBJECT),
        models=DefaultModels(
            (*_CLAUDE.chat, *_GPT.chat, *_OPEN.chat), (*_CLAUDE.small, *_GPT.small)
        ),
        lists=("vercel_ai_gateway", "vercel"),
        title="Vercel AI Gateway",
    ),
    "perplexity": Preset(
        {OPENAI_RESPONSES: "https://api.perplexity.ai/v1"},
        "PERPLEXITY_API_KEY",
        models=DefaultModels(
            (*_CLAUDE.chat, *_GPT.chat), (*_CLAUDE.small, *_GPT.small)
        ),
        lists=("perplexity", "perplexity"),
    ),
    "minimax": Preset(
        {OPENAI_CHAT: "https://api.minimax.io/v1"},
        "MINIMAX_API_KEY",
        quirks=Quirks(
            output_cap="max_completion_tokens",
            tool_choice=False,
            parallel_tool_calls=False,
            effort=EffortForm.NONE,
            needs=(*FREE_CHOICE, "json"),
        ),
        models=DefaultModels((rf"minimax-m{_V}",), (rf"minimax-m{_V}-highspeed",)),
        makes_models=True,
        lists=("minimax", "minimax"),
        title="MiniMax",
    ),
    "mimo": Preset(
        {OPENAI_CHAT: "https://api.xiaomimimo.com/v1"},
        "MIMO_API_KEY",
        models=DefaultModels((rf"mimo-v{_V}-pro",), (rf"mimo-v{_V}-flash",)),
        lists=("xiaomi_mimo", "xiaomi"),
        title="Xiaomi MiMo",
    ),
    "stepfun": Preset(
        {OPENAI_CHAT: "https://api.stepfun.com/v1"},
        "STEPFUN_API_KEY",
        models=DefaultModels((rf"step-{_V}.*",)),
        title="StepFun",
    ),
    "volcengine": Preset(
        {OPENAI_CHAT: "https://ark.cn-beijing.volces.com/api/v3"},
        "ARK_API_KEY",
        quirks=Quirks(effort=EffortForm.SWITCH),
        lists=("volcengine", ""),
        title="Volcengine (Doubao)",
    ),
    "bigmodel": Preset(
        {OPENAI_CHAT: "https://open.bigmodel.cn/api/paas/v4"},
        "ZHIPU_API_KEY",
        vendor="zai",
        lists=("bigmodel", "zhipuai"),
        title="BigModel (GLM)",
    ),
    "ollama_cloud": Preset(
        {OPENAI_CHAT: "https://ollama.com/v1", OLLAMA: "https://ollama.com"},
        "OLLAMA_API_KEY",
    ),
    # It is used only by name.
    "inception": Preset(
        {OPENAI_CHAT: "https://api.inceptionlabs.ai/v1"},
        "INCEPTION_API_KEY",
        models=DefaultModels((rf"mercury-{_V}", "mercury", "mercury-coder.*"), ()),
        edit_path="edit/completions",
        lists=("", "inception"),
        title="Inception (Mercury)",
    ),
    "huggingface": Preset(
        {OPENAI_CHAT: "https://router.huggingface.co/v1"},
        "HF_TOKEN",
        only_by_name=True,
        title="Hugging Face",
    ),
    "bedrock": Preset(
        {
            OPENAI_CHAT: "https://bedrock-mantle.us-east-1.api.aws/v1",
            ANTHROPIC: "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1",
        },
        "AWS_BEARER_TOKEN_BEDROCK",
        only_by_name=True,
        hosts=".api.aws",
        lists=("bedrock_mantle", ""),
        otel="aws.bedrock",
        title="Amazon Bedrock",
    ),
    "zai_coding": Preset(
        {OPENAI_CHAT: "https://api.z.ai/api/coding/paas/v4"},
        "ZAI_API_KEY",
        only_by_name=True,
        vendor="zai",
        title="Z.ai Coding Plan",
    ),
    "bigmodel_coding": Preset(
        {OPENAI_CHAT: "https://open.bigmodel.cn/api/coding/paas/v4"},
        "ZHIPU_API_KEY",
        only_by_name=True,
        vendor="zai",
        title="BigModel Coding Plan",
    ),
    "moonshot_cn": Preset(
        {OPENAI_CHAT: "https://api.moonshot.cn/v1"},
        "MOONSHOT_API_KEY",
        only_by_name=True,
        vendor="moonshot",
        title="Moonshot AI CN (Kimi)",
    ),
    "dashscope_cn": Preset(
        {OPENAI_CHAT: "https://dashscope.aliyuncs.com/compatible-mode/v1"},
        "DASHSCOPE_API_KEY",
        only_by_name=True,
        vendor="dashscope",
        title="Alibaba DashScope CN (Qwen)",
    ),
    # There is no common address: base_url is the user's own resource.
    "azure": Preset(
        {OPENAI_RESPONSES: "", OPENAI_CHAT: ""},
        "AZURE_OPENAI_API_KEY",
        hosts=".azure.com",
        quirks=Quirks(
            output_cap="max_completion_tokens",
            tool_ids=IdRule(40),
            auth_header="api-key",
            tools_without_effort=True,
            cache_key=True,
            needs=("most tools:128",),
        ),
        models=_GPT,
        lists=("azure", "azure"),
        otel="azure.ai.openai",
        title="Azure OpenAI",
    ),
}
# Some models behind such a URL accept Responses only.
_COMPATIBLE = Preset({OPENAI_CHAT: "", OPENAI_RESPONSES: ""})


def preset_of(kind: str) -> Preset:
    """Return the preset of a type; other types get one without a base URL."""
    return PRESETS.get(kind, _COMPATIBLE)


def find_preset(kind: str, base_url: str) -> str:
    """Return the name of an upstream's preset, found by type or by base URL.

    If several presets share the host, the base URL must begin with the preset's.
    """
    if kind != OPENAI_COMPATIBLE:
        return kind
    on_host = [n for n, p in PRESETS.items() if not p.local and p.is_at(base_url)]
    below = (n for n in on_host if base_url.startswith(PRESETS[n].base_url or "-"))
    # Other local servers cannot be told by their ports, which many programs use.
    is_ollama = is_ollama_here(base_url)
    return next(iter((*below, *on_host, OLLAMA if is_ollama else kind)))


def is_ollama_here(url: str) -> bool:
    """Tell whether a URL is the default one of Ollama on this machine."""
    return urlsplit(url).netloc in _OLLAMA_HOSTS


def vendor_of(kind: str, base_url: str) -> str:
    """Return the name of the preset that describes the behaviour of an upstream."""
    name = find_preset(kind, base_url)
    return preset_of(name).vendor or name


def quirks_of(vendor: str) -> Quirks:
    """Return a vendor's quirks, by the name of its preset."""
    preset = preset_of(vendor)
    return preset_of(preset.vendor or vendor).quirks


def path_ends_with(base_url: str, ending: str) -> bool:
    """Tell whether the path of a URL has an ending such as `/v1`."""
    return urlsplit(base_url).path.endswith(ending)


def without_ending(base_url: str, ending: str) -> str:
    """Return a base URL without an ending of its path, if it has that ending."""
    if not path_ends_with(base_url, ending):
        return base_url
    return base_url.removesuffix(ending)
