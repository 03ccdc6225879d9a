"""What a vendor's imitation of OpenAI cannot do, as data.

A row names only what differs from the default, which is what most servers accept.
"""

from dataclasses import dataclass

from byok.dialects.fim_mode import FimMode
from byok.dialects.presets import OPENAI_COMPATIBLE, PRESETS


@dataclass(frozen=True, slots=True)
class Quirks:
    """How an OpenAI-compatible upstream differs.

    Attributes:
        output_cap: the body field that limits the answer's tokens.
        null_content: `content: null` is accepted beside tool calls; else it is "".
        stream_options: `stream_options.include_usage` is accepted and needed.
        tool_choice: it wants to be told `auto`; else that is what it does anyway.
        parallel_tool_calls: the field of that name is accepted.
        tool_id_length: longest tool call id, of ASCII only; 0 takes any id as it is.
            `exact_tool_ids` means just this length, letters and digits only;
            `plain_tool_ids` letters, digits, _ and - only.
        most_tools: how many tools a request may offer, 0 for any number.
        narrow_schemas: tools are described in Gemini's part of JSON Schema.
        signed_calls: the first tool call of each message wants its signature back.
        plain_keys: a tool's parameters have letters, digits, _, . and - in their names.
        auth_header: the header for the key; `Authorization` takes `Bearer <key>`.
        strict_roles: a user message may not follow a tool message directly.
        wants_reasoning: `reasoning_content` must come back beside tool calls;
            `empty_reasoning` means: even where nothing is known of it.
        loaded: where the server tells of the models that it has loaded, if it does.
        fim_modes: the ways to fill a gap in code, the best first.
        suffix_path: where the way `suffix` is served.
    """

    output_cap: str = "max_tokens"
    null_content: bool = True
    stream_options: bool = True
    tool_choice: bool = True
    parallel_tool_calls: bool = True
    tool_id_length: int = 0
    exact_tool_ids: bool = False
    plain_tool_ids: bool = False
    most_tools: int = 0
    narrow_schemas: bool = False
    plain_keys: bool = False
    signed_calls: bool = False
    auth_header: str = "Authorization"
    strict_roles: bool = False
    wants_reasoning: bool = False
    empty_reasoning: bool = False
    loaded: str = ""
    fim_modes: tuple[FimMode, ...] = (FimMode.CHAT,)
    suffix_path: str = "completions"


DEFAULT = Quirks()
# Raw prompts reach the model as they are. The way `suffix` is left out where a server
# is not known to have it: several ignore the field without a word.
_RAW = (FimMode.TEMPLATE, FimMode.CHAT)

# Sources: the vendors' public API references and the issue threads of other bridges.
QUIRKS: dict[str, Quirks] = {
    "openai": Quirks(
        output_cap="max_completion_tokens", tool_id_length=40, most_tools=128
    ),
    "azure": Quirks(
        output_cap="max_completion_tokens",
        tool_id_length=40,
        most_tools=128,
        auth_header="api-key",
    ),
    "xai": Quirks(output_cap="max_completion_tokens", most_tools=200),
    "groq": Quirks(output_cap="max_completion_tokens", most_tools=128),
    "mistral": Quirks(
        stream_options=False,  # it counts unasked
        tool_id_length=9,
        exact_tool_ids=True,
        strict_roles=True,
        fim_modes=(FimMode.FIM, FimMode.CHAT),
    ),
    "deepseek": Quirks(
        null_content=False,
        most_tools=128,
        wants_reasoning=True,
        empty_reasoning=True,
        fim_modes=(FimMode.SUFFIX, FimMode.CHAT),
        suffix_path="/beta/completions",
    ),
    "zai": Quirks(
        null_content=False,
        tool_choice=False,
        parallel_tool_calls=False,
        wants_reasoning=True,
    ),
    "moonshot": Quirks(wants_reasoning=True),
    "ollama": Quirks(
        tool_choice=False,
        parallel_tool_calls=False,
        loaded="/api/ps",
        # it puts a raw prompt into the chat template, but knows how models fill
        fim_modes=(FimMode.SUFFIX, FimMode.CHAT),
    ),
    # llama-cpp-python, whose server is its relative, answers nothing to `auto`.
    "llamacpp": Quirks(
        null_content=False,
        tool_choice=False,
        loaded="/props",
        fim_modes=(FimMode.INFILL, *_RAW),
    ),
    "vllm": Quirks(fim_modes=_RAW),
    "sglang": Quirks(fim_modes=_RAW),
    "lmstudio": Quirks(loaded="/api/v0/models", fim_modes=_RAW),
    "together": Quirks(fim_modes=_RAW),
    OPENAI_COMPATIBLE: Quirks(fim_modes=_RAW),
    "anthropic": Quirks(
        parallel_tool_calls=False,
        tool_id_length=64,
        plain_tool_ids=True,
        plain_keys=True,
    ),
    "gemini": Quirks(
        parallel_tool_calls=False,
        most_tools=512,
        narrow_schemas=True,
        signed_calls=True,
    ),
}


def quirks_of(kind: str, base_url: str) -> Quirks:
    """Return a vendor's quirks, also where only its address was given."""
    at = (n for n, p in PRESETS.items() if not p.local and p.is_at(base_url))
    name = next(at, kind) if kind == OPENAI_COMPATIBLE else kind
    return QUIRKS.get(name, DEFAULT)
