"""The sections of config.toml as types, one field per key."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from byok.code_query import DEFAULT_LENGTH, RerankMode, SearchMode
from byok.config import values
from byok.config.fact_settings import FactSettings
from byok.config.section import LONG, MODEL, FieldEntry, SettingsSection
from byok.dialects.presets import OPENAI_COMPATIBLE
from byok.toolcalls.repair import RepairMode

DEFAULT_PORT = 8317
_PORTS = FieldEntry(limits=(0, 65_535))
_EFFORTS = FieldEntry(choices=lambda: ("", *values.EFFORTS))
_TYPES = FieldEntry(choices=values.upstream_types)
_DIALECTS = FieldEntry(choices=lambda: ("", *values.dialect_names()))
_WAYS = FieldEntry(choices=lambda: values.FIM_MODES)
_LEVELS = FieldEntry(choices=lambda: ("debug", "info", "warning", "error"))
_Proxy = Annotated[str, AfterValidator(values.proxy)]


class ServerSettings(SettingsSection):
    """Where clients connect. The host is fixed: byok listens on loopback only."""

    port: Annotated[int, AfterValidator(values.port), _PORTS] = Field(
        DEFAULT_PORT,
        description="Port on 127.0.0.1 and ::1, from 1024 to 65535; 0 takes any free "
        "port.",
    )


class NetworkSettings(SettingsSection):
    """Network access to upstreams on other machines."""

    proxy: _Proxy = Field(
        "",
        description='Proxy, such as "http://proxy.example.com:3128"; never used for '
        "local upstreams.",
    )
    ca_file: str = Field(
        "",
        description="PEM file with certificate authorities to trust in addition to "
        "the system's.",
    )


class _RequestDefaults(SettingsSection):
    """Defaults of requests; an upstream's own value overrides them."""

    system_prompt: Annotated[str, LONG] = Field(
        "",
        description="Text at the start of the system message, unless the client sends "
        "its own.",
    )
    temperature: float | None = Field(
        None,
        ge=0,
        le=2,
        description="Sampling temperature, from 0 to 2. Not sent unless set.",
    )
    top_p: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Nucleus sampling (top_p): the share of probability to sample "
        "from, above 0 and up to 1. Not sent unless set.",
    )
    max_tokens: int | None = Field(
        None, gt=0, description="Longest response in tokens. Not sent unless set."
    )
    effort: Annotated[str, AfterValidator(values.effort), _EFFORTS] = Field(
        "",
        description="How much the model should reason: none, minimal, low, medium, "
        "high, xhigh or max. A model that does not know a value gets the nearest one. "
        "Empty means the model's own default.",
    )
    headers: Annotated[dict[str, str], AfterValidator(values.headers)] = Field(
        {}, description='Additional request headers, such as { X-Team = "7" }.'
    )
    extra_body: dict[str, Any] = Field(
        {},
        description="Additional fields for each request body, such as { "
        'reasoning_effort = "low" }.',
    )


class UpstreamSettings(_RequestDefaults):
    """One model API."""

    type: Annotated[str, AfterValidator(values.upstream_type), _TYPES] = Field(
        OPENAI_COMPATIBLE,
        description="The preset whose behaviour applies, or openai_compatible.",
    )
    dialect: Annotated[str, AfterValidator(values.dialect), _DIALECTS] = Field(
        "",
        description="The API protocol (openai_chat, openai_responses, anthropic, "
        "gemini or ollama); empty means the default of the type.",
    )
    base_url: Annotated[
        str, AfterValidator(lambda u: values.base_url(u) if u else u)
    ] = Field(
        "",
        description="Base URL of the API. Presets have one; azure and "
        "openai_compatible require it. If it has no path, /v1 is appended.",
    )
    query: Annotated[dict[str, str], AfterValidator(values.query)] = Field(
        {},
        description="Query parameters for every request, such as { api-version = "
        '"2024-10-21" } for a classic Azure deployment, whose base_url ends in '
        "/openai/deployments/NAME.",
    )
    models: list[str] = Field(
        [], description="Models to offer in addition to those that the upstream lists."
    )
    model: Annotated[str, MODEL] = Field(
        "",
        description="The model used when a client names none. Empty means a good one "
        "from the upstream's list, and a small one for commit messages, titles and "
        "completions.",
    )
    api_key_env: str = Field(
        "",
        description="Read the key from this environment variable, and from nowhere "
        "else.",
    )
    key_names: Annotated[list[str], AfterValidator(values.key_labels)] = Field(
        [],
        description="Several keys, for accounts with separate limits: byok uses the "
        "first one, and another one while the first is rejected or rate-limited. A "
        "conversation stays with its key. Each entry is a name under which you store "
        'a key (byok keys set UPSTREAM/NAME), or env:VARIABLE, such as ["work", '
        '"env:OPENAI_KEY_B"]. Keys themselves do not belong here.',
    )
    api_key_cmd: list[str] = Field(
        [],
        description="Run this program without a shell and use the first line of its "
        "output as the key. It has 5 seconds and runs in your home folder, with an "
        "environment from which keys (BYOK_* and *_API_KEY) are removed. For example "
        '["pass", "show", "openai"].',
    )
    timeout: float = Field(
        0,
        ge=0,
        description="Idle timeout in seconds. 0 means 120 before the first byte and "
        "90 between bytes; 600 and 300 for a server on this machine and for a model "
        "that is known to reason.",
    )
    patience: float = Field(
        300,
        ge=0,
        description="For how many seconds in all a chat waits while the upstream is "
        "overloaded or limits requests. Background jobs wait for 60 at most, "
        "completions not at all.",
    )
    context_window: int = Field(
        0,
        ge=0,
        description="Context window of its models in tokens, output included. 0 means "
        "what the server reports (Ollama, LM Studio and llama.cpp for a loaded model, "
        "others in their model list), else what its error messages reveal. Longer "
        "conversations are shortened to fit. Set this for llama-cpp-python, which "
        "sends no error for a prompt that is too long.",
    )
    facts: dict[str, FactSettings] = Field(
        {}, description="What models take, by their names."
    )
    num_ctx: int = Field(
        0,
        ge=0,
        description="Context window in tokens with which Ollama loads models (only "
        "with Ollama's own API). 0 means as large as the conversation needs, in steps "
        "from 8,192 (agents: 32,768) up to the model's maximum, within 8 GiB of "
        "memory. A change reloads the model, so byok never lowers it.",
    )
    cache: bool = Field(
        True,
        description="Ask the API to cache the beginning of the prompt, where it has a "
        "field for that.",
    )
    long_cache: bool = Field(
        False,
        description="Ask the API to keep the prompt for as long as it can: Claude "
        "keeps it for an hour instead of five minutes, at twice the price of a write; "
        "OpenAI for a day.",
    )
    ca_file: str = Field(
        "", description="Trust this PEM file instead of the one in [network]."
    )
    proxy: _Proxy = Field(
        "", description="Use this proxy instead of the one in [network]."
    )
    allow_insecure_http: bool = Field(
        False,
        description="Allow plain http to another machine. Anyone on the network path "
        "can read the key.",
    )


class ChatSettings(_RequestDefaults):
    """Defaults of chat requests; an upstream's own value overrides them."""

    retrieval: bool = Field(
        True,
        description="Add code to chat messages: attached files, then matching code "
        "from the files that the client has uploaded. Agents search by themselves, "
        "regardless of this setting.",
    )
    context_chars: int = Field(
        DEFAULT_LENGTH,
        ge=1000,
        le=400_000,
        description="Maximum characters of code added to a message, from 1000 to "
        "400000.",
    )

    compact_tools: bool = Field(
        False,
        description="For small local models and small context windows, shorten the "
        "descriptions of tools to their first sentences. Names, types and required "
        "fields stay.",
    )


class CompletionSettings(SettingsSection):
    """Inline completions: the interface, limits and optional kinds."""

    way: Annotated[str, AfterValidator(values.fim_mode), _WAYS] = Field(
        values.AUTO,
        description='How the model receives the code around the cursor. "auto" uses '
        "the best interface of the upstream and the model, and the next one if they "
        'reject it. The others use one interface only: "infill" (llama.cpp), "fim" '
        '(Mistral), "suffix" (Ollama, DeepSeek), "template" (a raw prompt with the '
        'model\'s FIM tokens), "chat" (any model).',
    )
    timeout_ms: int = Field(
        3000,
        ge=100,
        le=60_000,
        description="Milliseconds after which the lines received so far are returned; "
        "from 100 to 60000.",
    )
    max_tokens: int = Field(
        256, ge=1, le=4096, description="Longest completion in tokens, up to 4096."
    )
    chat_input: bool = Field(
        False,
        description="Complete text in the chat input box: a request after every pause "
        "in typing, which costs tokens.",
    )
    next_edit: bool = Field(
        False,
        description="Suggest the next edit of a file: a request after every pause in "
        "typing, which costs tokens.",
    )


class ToolSettings(SettingsSection):
    """How malformed tool calls are handled."""

    repair: RepairMode = Field(
        RepairMode.LOSSLESS,
        description='"lossless" repairs only errors that have exactly one possible '
        'correction; "fill" also adds empty values for missing required fields; "off" '
        "passes calls on unchanged.",
    )
    ask_again: int = Field(
        1,
        ge=0,
        le=5,
        description="If a call is still not valid JSON, how many times per turn the "
        "model is sent the error and asked again, so that the agent can continue. It "
        "is also asked again if the connection was lost inside a call. 0 never asks "
        "again.",
    )


class ContextSettings(SettingsSection):
    """The code index, and the storage for uploaded files."""

    workspaces: list[str] = Field(
        [],
        description="Folders to index and follow, in addition to `byok index add` and "
        "`--workspace`.",
    )
    max_files: int = Field(
        250_000,
        ge=1,
        description="A folder with more files than this is not indexed; ripgrep "
        "searches it instead.",
    )
    extensions: list[str] = Field(
        [],
        description='Index only files with these extensions, such as ["py", "md"]; '
        "empty means all text files.",
    )
    allow_secret: list[str] = Field(
        [],
        description="Files that look like secrets (.env, *.pem, id_rsa, "
        "credentials.json...) are never read, whatever a repository's ignore files "
        "say. These are exceptions, as patterns like in .gitignore.",
    )
    workers: int = Field(
        2,
        ge=1,
        le=16,
        description="Number of processes that parse files while an index is built, "
        "from 1 to 16.",
    )
    parse_seconds: float = Field(
        2,
        gt=0,
        le=60,
        description="CPU seconds for parsing one file, up to 60. After that it is "
        "split by lines instead.",
    )
    store_mb: int = Field(
        2048,
        ge=16,
        description="Space in MiB for uploaded files (compressed) and for the names "
        "and checkpoints of clients; at least 16. The least recently used are removed "
        "first.",
    )


class RetrievalSettings(SettingsSection):
    """How questions about code are answered."""

    mode: SearchMode = Field(
        SearchMode.AUTO,
        description='"auto" searches the index, or uses ripgrep while the index is '
        'being built; "index" and "ripgrep" use only that one.',
    )
    rerank: RerankMode = Field(
        RerankMode.OFF,
        description='"model" lets a model rerank the best files of a search: one '
        "request of about 900 tokens per search, for up to 2 s. The model gets your "
        "question and a line of each file; it must be on this machine or at an "
        "upstream that chats go to.",
    )


class LimitSettings(SettingsSection):
    """Limits on concurrent work."""

    streams: int = Field(
        256, ge=1, le=4096, description="Concurrent responses, from 1 to 4096."
    )
    waiting: int = Field(
        64,
        ge=0,
        le=4096,
        description="Requests that may wait for one of them to finish, up to 4096.",
    )
    wait_seconds: float = Field(
        10,
        ge=0,
        le=60,
        description="Longest wait in seconds, up to 60, before a request is told to "
        "retry later.",
    )
    connections: int = Field(
        512, ge=8, le=8192, description="Open client connections, from 8 to 8192."
    )


class LogSettings(SettingsSection):
    """The log. Keys and bodies are never logged."""

    level: Annotated[str, Field(pattern="^(debug|info|warning|error)$"), _LEVELS] = (
        Field(
            "info",
            description='Lowest level to log: "debug", "info", "warning" or "error".',
        )
    )
