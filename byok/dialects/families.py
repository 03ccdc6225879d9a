"""Model families: facts that hold for their models on any host, by the model's name.

Sources: the vendors' public API references, and the issue threads of other bridges. A
window or a price belongs to a host, so no row has one.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from byok.core.late import compile_late
from byok.dialects.model_facts import ModelFacts, Replay
from byok.dialects.presets import ANTHROPIC, OPENAI_RESPONSES

# Prefixes of hosts: folders, Bedrock's regions and vendors, and names with a hyphen.
# "deepseek." stays, because Bedrock writes deepseek.v3.2.
_PREFIXES = re.compile(
    r"(?:.*/)?(?:(?!deepseek)[a-z]+\.)*"
    r"(?:(?:zai|openai|anthropic|databricks|google|labs|azure|meta)-)?"
)
_FIREWORKS_POINT = re.compile(r"(?<=\d)p(?=\d)")  # kimi-k2p5 is Kimi K2.5

_LOW_HIGH = ("low", "medium", "high")
_TO_MAX = (*_LOW_HIGH, "xhigh", "max")


class Family(Struct, frozen=True):
    """Models whose names begin with a match of a pattern, and facts about them."""

    names: re.Pattern[str]
    facts: Mapping[str, Any]


def _row(names: str, **facts: Any) -> Family:
    """Return a row; patterns are compiled late, because all would take 10 ms."""
    return Family(compile_late(names), facts)


# Of several rows that match a name, the first one with a fact counts.
_GPT = (
    _row(r"gpt-5(?:\.3)?-chat", sampling=True, thinking=False, images=True),
    _row(r"(?:gpt-5\.[124-9]-)?chat-latest", efforts=("medium",)),
    _row(r"gpt-5-pro", efforts=("high",)),
    _row(r"gpt-\d(?:\.\d)?-pro", efforts=("medium", "high", "xhigh")),
    _row(r"gpt-5(?:\.1)?-codex(?!-max)", efforts=_LOW_HIGH),
    _row(r"gpt-5\.[12]-codex", efforts=(*_LOW_HIGH, "xhigh")),
    _row(r"gpt-5\.1", efforts=("none", *_LOW_HIGH)),
    _row(r"gpt-5\.[2-5](?!-chat)", efforts=("none", *_LOW_HIGH, "xhigh")),
    _row(r"gpt-5\.[6-9]", efforts=("none", *_TO_MAX)),
    _row(r"gpt-[6-9]", efforts=_TO_MAX),
    _row(r"gpt-5(?!(?:\.3)?-chat)", efforts=("minimal", *_LOW_HIGH)),
    # Chat Completions refuses tools of these unless they do not reason at all.
    _row(r"gpt-(?:5\.[4-9]|[6-9])(?!.*-chat)", dialect=OPENAI_RESPONSES),
    _row(
        r"(?:gpt-\d|o\d).*-(?:codex|pro\b|deep-research)|codex-mini|computer-use",
        dialect=OPENAI_RESPONSES,
    ),
    _row(r"o\d.*-deep-research", efforts=("medium",)),
    _row(r"o1-(?:mini|preview)|o3-mini", images=False),
    _row(r"o1-(?:mini|preview)", tools=False, thinking=True, sampling=False),
    _row(r"o[1-9](?![a-z\d])", efforts=_LOW_HIGH),
    _row(
        r"gpt-[5-9]|o[1-9](?![a-z\d])|codex-mini",
        tools=True,
        images=True,
        thinking=True,
        sampling=False,
        replay=Replay.EVERY_TURN,  # as encrypted items, if the API sends them
    ),
    _row(r"gpt-oss", tools=True, images=False, thinking=True, efforts=_LOW_HIGH),
    _row(r"gpt-4(?:\.1|o)(?!.*(?:audio|realtime|search))", tools=True, images=True),
    _row(r"gpt-4(?:\.|o|-)|chatgpt-4o", thinking=False, sampling=True),
    _row(r"gpt-3\.5|gpt-4(?:-0\d+|$)", images=False, thinking=False, sampling=True),
)
_CLAUDE = (
    _row(r"claude-opus-4[.-]5", efforts=_LOW_HIGH),
    _row(r"claude-[a-z]+-4[.-]6", efforts=(*_LOW_HIGH, "max")),
    _row(
        r"claude-(?:opus-4[.-][789]|[a-z]+-[5-9](?!\d))|claude-mythos",
        efforts=_TO_MAX,
        sampling=False,
    ),
    _row(
        r"claude-(?:[a-z]+-4[.-][6-9]|[a-z]+-[5-9](?!\d))|claude-mythos",
        adaptive_thinking=True,
    ),
    _row(
        r"claude-(?:[a-z]+-4[.-][6-9]|[a-z]+-[5-9](?!\d))|claude-mythos",
        max_output=128_000,
    ),
    _row(r"claude-(?:(?:opus|sonnet|haiku)-4[.-]5|sonnet-4|3[.-]7)", max_output=64_000),
    _row(r"claude-opus-4", max_output=32_000),
    _row(r"claude-3[.-]5", max_output=8192),
    _row(r"claude-3", max_output=4096),
    _row(r"claude-3(?![.-]7)", thinking=False),
    _row(
        r"claude",
        tools=True,
        images=True,
        thinking=True,
        sampling=True,
        adaptive_thinking=False,
        replay=Replay.EVERY_TURN,  # unchanged, with its signatures
    ),
)
_GEMINI = (
    _row(r"gemini-3-pro", efforts=("low", "high")),
    _row(r"gemini-3\.\d+-pro|gemini-3\.[7-9]", efforts=_LOW_HIGH),
    _row(r"gemini-3", efforts=("minimal", *_LOW_HIGH)),
    _row(r"gemini-3\.(?:5-flash-lite|[6-9])", sampling=False),
    _row(r"gemini-2\.0|gemini-1", thinking=False, replay=Replay.NEVER),
    _row(r"gemini.*-(?:image|tts)", tools=False),
    _row(r"gemini-", tools=True, images=True, thinking=True, replay=Replay.TOOL_TURNS),
    _row(r"gemma-?[34](?!.*-(?:1b|270m))", images=True),
    _row(r"gemma-?[23]", thinking=False),
)
_DEEPSEEK = (
    _row(r"deepseek.*(?:vl|ocr|vision)", images=True),
    _row(r"deepseek-v4.*pro", images=False),
    _row(
        r"deepseek-(?:v[4-9]|reasoner|flash)",
        tools=True,
        thinking=True,
        efforts=("none", "low", "high", "max"),
        replay=Replay.EVERY_TURN,
        empty_reasoning=True,
    ),
    _row(
        r"deepseek[.-]v3\.2",
        tools=True,
        images=False,
        thinking=True,
        replay=Replay.TOOL_TURNS,
        empty_reasoning=True,
    ),
    # it refuses a conversation with reasoning
    _row(r"deepseek[.-]r1", images=False, thinking=True, replay=Replay.NEVER),
    _row(r"deepseek[.-](?:v[23]|chat|coder)", images=False, replay=Replay.NEVER),
)
_KIMI = (
    _row(r"kimi-k3", efforts=("low", "high", "max"), replay=Replay.EVERY_TURN),
    _row(r"kimi-k(?:2\.[5-9]|[3-9])", images=True, thinking=True, sampling=False),
    _row(r"kimi-k2-thinking|kimi-(?:thinking|for-coding)", thinking=True),
    _row(
        r"kimi-(?:k(?:2\.[5-9]|2-thinking|[3-9])|thinking|for-coding)",
        replay=Replay.TOOL_TURNS,
        empty_reasoning=True,
    ),
    _row(r"kimi-k2(?!\.)", images=False),
    _row(r"kimi", tools=True),
)
_GLM = (
    _row(r"glm-(?:\d(?:\.\d)?v|5[.-]3-flash)", images=True),
    _row(r"glm-5\.2", efforts=("none", "high", "max")),
    # it always thinks
    _row(r"glm-5\.[3-9]", efforts=("low", "high", "max")),
    _row(r"glm-(?:4\.[7-9]|[5-9])", replay=Replay.EVERY_TURN),
    _row(
        r"glm-(?:4\.[5-9]|[5-9])",
        tools=True,
        images=False,
        thinking=True,
        replay=Replay.TOOL_TURNS,
    ),
)
# Their reasoning is in the text.
_MINIMAX = (
    _row(r"minimax-m3", images=True),
    _row(r"minimax-m2", images=False),
    _row(r"minimax-m[2-9]", tools=True, thinking=True, replay=Replay.EVERY_TURN),
)
_MIMO = (
    _row(
        r"mimo-v[2-9]",
        tools=True,
        thinking=True,
        replay=Replay.TOOL_TURNS,
        empty_reasoning=True,
    ),
)
_GROK = (
    _row(r"grok-3-mini", efforts=("low", "high"), thinking=True, images=False),
    _row(r"grok-4\.3", efforts=("none", *_LOW_HIGH)),
    _row(r"grok-4\.[5-9](?!\d)", efforts=_LOW_HIGH),
    _row(r"grok-4.*non-reasoning", thinking=False),
    _row(r"grok-[4-9](?!.*multi-agent)", tools=True, images=True, thinking=True),
)
_MISTRAL = (
    _row(r"magistral", thinking=True),
    _row(r"(?:mistral|codestral).*-embed", tools=False),
    _row(r"mistral-(?:large|medium|small)|codestral|devstral|ministral", tools=True),
    _row(
        r"pixtral|mistral-(?:medium|large-2512|large-latest)|ministral-3", images=True
    ),
    _row(r"codestral|open-mi[sx]tral|mixtral", images=False, thinking=False),
)
_QWEN = (
    _row(r"qwen.*(?:-vl|omni)|qwen-?3\.(?:[5689]|7(?!-max))|qvq", images=True),
    # trained to use the reasoning of earlier turns, with preserve_thinking
    _row(r"qwen-?3\.(?:[6-9]|\d\d)", replay=Replay.EVERY_TURN),
    _row(r"qwen.*coder|codeqwen", images=False, thinking=False),
    _row(r"qwen-?3.*-instruct", thinking=False),
    _row(r"qwen-?3|qwq|qvq", tools=True, thinking=True),
    _row(r"qwen-?(?:2\.5|3-\d|3:)", images=False),
    _row(r"qwen-?2\.5", thinking=False),
)
_LLAMA = (
    _row(r"llama-?4|llama-?3[.-]2.*(?:11b|90b|vision)", images=True),
    _row(r"(?:code-?)?llama-?[23](?!.*(?:vision|llava))", images=False),
    _row(r"(?:code-?)?llama-?[234](?!.*nemotron)", thinking=False),
    _row(r"(?:code-?)?llama-?2|code-?llama", tools=False),
)
# Bedrock serves Claude in Anthropic's API only, by names of this form.
_BEDROCK_CLAUDE = _row(r"(?:[a-z]+\.)?anthropic\.claude", dialect=ANTHROPIC)
# The rows, by the beginnings of model names. A last row names the family, if prompts
# depend on it.
FAMILIES: Mapping[tuple[str, ...], tuple[Family, ...]] = {
    ("gpt", "chat", "codex", "computer", *(f"o{n}" for n in range(1, 10))): (
        *_GPT,
        _row("", family="gpt"),
    ),
    ("claude",): (*_CLAUDE, _row("", family="claude")),
    ("gem",): (*_GEMINI, _row(r"gemini", family="gemini")),
    ("deepseek",): (*_DEEPSEEK, _row("", family="deepseek")),
    ("kimi",): (*_KIMI, _row("", family="kimi")),
    ("glm",): (*_GLM, _row("", family="glm")),
    ("minimax",): _MINIMAX,
    ("mimo",): _MIMO,
    ("grok",): _GROK,
    (
        *("mistral", "magistral", "ministral", "codestral", "devstral", "pixtral"),
        *("mixtral", "open-mi"),
    ): _MISTRAL,
    ("qwen", "qwq", "qvq", "codeqwen"): (*_QWEN, _row("", family="qwen")),
    ("llama", "codellama", "code-llama"): _LLAMA,
}


def family_name(model: str) -> str:
    """Return a model's name in lower case, without the prefix of its host."""
    name = model.lower()
    prefix = _PREFIXES.match(name)
    return _FIREWORKS_POINT.sub(".", name[prefix.end() if prefix else 0 :])


def family_facts(model: str) -> ModelFacts:
    """Return the facts about a model that hold on any host, judged by its name."""
    name = family_name(model)
    groups = (rows for begins, rows in FAMILIES.items() if name.startswith(begins))
    rows = [row for group in groups for row in group if row.names.match(name)]
    if _BEDROCK_CLAUDE.names.match(model):
        rows.append(_BEDROCK_CLAUDE)
    known: dict[str, Any] = {}
    for row in rows:
        known = {**row.facts, **known}  # the first row with a fact counts
    return ModelFacts(model, **known)
