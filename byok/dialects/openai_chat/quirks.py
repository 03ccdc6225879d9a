"""Quirks: how vendors' Chat Completions APIs differ from OpenAI's, as data.

A row lists only the differences from the default, which most servers accept.
"""

from dataclasses import dataclass

from byok.dialects.safe_names import ANY_ID, IdRule


@dataclass(frozen=True, slots=True)
class Quirks:
    """The differences of one vendor's API.

    Attributes:
        output_cap: the body field that limits the answer's tokens.
        null_content: `content: null` is accepted beside tool calls; else it is "".
        stream_options: `stream_options.include_usage` is accepted and needed.
        tool_choice: send `"auto"`; False where that is the default or refused.
        parallel_tool_calls: the field of that name is accepted.
        tool_ids: which ids of tool calls are accepted.
        most_tools: the maximum number of tools in a request, 0 for no limit.
        narrow_schemas: tool schemas must use Gemini's subset of JSON Schema.
        signed_calls: the first tool call of each message needs its signature.
        plain_keys: a tool's parameters have letters, digits, _, . and - in their names.
        auth_header: the header for the key; `Authorization` takes `Bearer <key>`.
        strict_roles: a user message may not follow a tool message directly.
        wants_reasoning: `reasoning_content` must come back beside tool calls;
            `empty_reasoning` means: even where nothing is known of it.
        loaded: the path that describes the loaded models, "" where there is none.
    """

    output_cap: str = "max_tokens"
    null_content: bool = True
    stream_options: bool = True
    tool_choice: bool = True
    parallel_tool_calls: bool = True
    tool_ids: IdRule = ANY_ID
    most_tools: int = 0
    narrow_schemas: bool = False
    plain_keys: bool = False
    signed_calls: bool = False
    auth_header: str = "Authorization"
    strict_roles: bool = False
    wants_reasoning: bool = False
    empty_reasoning: bool = False
    loaded: str = ""


DEFAULT = Quirks()

# Sources: the vendors' public API references and the issue threads of other bridges.
QUIRKS: dict[str, Quirks] = {
    "openai": Quirks(
        output_cap="max_completion_tokens", tool_ids=IdRule(40), most_tools=128
    ),
    "azure": Quirks(
        output_cap="max_completion_tokens",
        tool_ids=IdRule(40),
        most_tools=128,
        auth_header="api-key",
    ),
    "xai": Quirks(output_cap="max_completion_tokens", most_tools=200),
    "groq": Quirks(output_cap="max_completion_tokens", most_tools=128),
    "mistral": Quirks(
        stream_options=False,  # it counts unasked
        tool_ids=IdRule(9, is_exact=True),
        strict_roles=True,
    ),
    "deepseek": Quirks(
        null_content=False,
        most_tools=128,
        wants_reasoning=True,
        empty_reasoning=True,
    ),
    "zai": Quirks(
        null_content=False,
        tool_choice=False,
        parallel_tool_calls=False,
        wants_reasoning=True,
    ),
    "moonshot": Quirks(wants_reasoning=True),
    "ollama": Quirks(tool_choice=False, parallel_tool_calls=False, loaded="/api/ps"),
    # llama-cpp-python, whose server is its relative, answers nothing to `auto`.
    "llamacpp": Quirks(null_content=False, tool_choice=False, loaded="/props"),
    "lmstudio": Quirks(loaded="/api/v0/models"),
    "anthropic": Quirks(
        parallel_tool_calls=False,
        tool_ids=IdRule(64, is_plain=True),
        plain_keys=True,
    ),
    "gemini": Quirks(
        parallel_tool_calls=False,
        most_tools=512,
        narrow_schemas=True,
        signed_calls=True,
    ),
}


def quirks_of(vendor: str) -> Quirks:
    """Return a vendor's quirks, by the name of its preset."""
    return QUIRKS.get(vendor, DEFAULT)
