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
_TYPES = FieldEntry(choices=lambda: values.UPSTREAM_TYPES)
_DIALECTS = FieldEntry(choices=lambda: ("", *values.dialect_names()))
_WAYS = FieldEntry(choices=lambda: values.FIM_MODES)
_LEVELS = FieldEntry(choices=lambda: ("debug", "info", "warning", "error"))
_Proxy = Annotated[str, AfterValidator(values.proxy)]


class ServerSettings(SettingsSection):
    """Where clients connect. The host is fixed: byok listens on loopback only."""

    port: Annotated[int, AfterValidator(values.port), _PORTS] = Field(
        DEFAULT_PORT, description="TCP port on 127.0.0.1 and ::1; 0: any free port."
    )


class NetworkSettings(SettingsSection):
    """Network access to upstreams on other machines."""

    proxy: _Proxy = Field(
        "", description="http:// proxy for upstreams; not used for local ones."
    )
    ca_file: str = Field("", description="PEM file of additional CA certificates.")


class _RequestDefaults(SettingsSection):
    """Defaults of requests; an upstream's own value overrides them."""

    system_prompt: Annotated[str, LONG] = Field(
        "", description="Start of the system message, unless the client sends its own."
    )
    temperature: float | None = Field(
        None, ge=0, le=2, description="Sampling temperature, 0 to 2."
    )
    top_p: float | None = Field(None, gt=0, le=1, description="Nucleus sampling.")
    max_tokens: int | None = Field(
        None, gt=0, description="Longest response in tokens."
    )
    effort: Annotated[str, AfterValidator(values.effort), _EFFORTS] = Field(
        "",
        description="How much to reason: none, minimal, low, medium, high, xhigh, max.",
    )
    headers: Annotated[dict[str, str], AfterValidator(values.headers)] = Field(
        {}, description="Additional request headers."
    )
    extra_body: dict[str, Any] = Field(
        {}, description="Additional fields of every request body."
    )


class UpstreamSettings(_RequestDefaults):
    """One model API."""

    type: Annotated[str, AfterValidator(values.upstream_type), _TYPES] = Field(
        OPENAI_COMPATIBLE, description="A preset's name, or openai_compatible."
    )
    dialect: Annotated[str, AfterValidator(values.dialect), _DIALECTS] = Field(
        "", description="API protocol; empty: the default of the type."
    )
    base_url: Annotated[
        str, AfterValidator(lambda u: values.base_url(u) if u else u)
    ] = Field("", description="Base URL of the API; empty: the preset's address.")
    query: Annotated[dict[str, str], AfterValidator(values.query)] = Field(
        {}, description="Query parameters of every request."
    )
    models: list[str] = Field(
        [], description="Models to offer in addition to those that the upstream lists."
    )
    model: Annotated[str, MODEL] = Field(
        "", description="The model to use when a client names none."
    )
    api_key_env: str = Field(
        "", description="Read the key from this environment variable only."
    )
    key_names: Annotated[list[str], AfterValidator(values.key_labels)] = Field(
        [],
        description="Several keys, by the names under which they are stored, or as "
        "env:VARIABLE.",
    )
    api_key_cmd: list[str] = Field(
        [],
        description="Run this program without a shell; its first line is the key.",
    )
    timeout: float = Field(
        0,
        ge=0,
        description="Idle timeout in seconds; 0: default, longer for local servers "
        "and models that reason.",
    )
    patience: float = Field(
        300,
        ge=0,
        description="Seconds that a chat waits in all while the upstream is overloaded "
        "or limits requests; background jobs at most 60, completions 0.",
    )
    context_window: int = Field(
        0, ge=0, description="Context window in tokens, output included; 0: detect it."
    )
    facts: dict[str, FactSettings] = Field(
        {}, description="What models take, by their names."
    )
    num_ctx: int = Field(
        0,
        ge=0,
        description="Context window with which Ollama loads models, in tokens; 0: as "
        "needed.",
    )
    cache: bool = Field(True, description="Ask the API to cache the prompt.")
    long_cache: bool = Field(
        False,
        description="Ask it to keep the prompt for as long as it can: Claude an hour, "
        "at twice the price of a write; OpenAI a day.",
    )
    ca_file: str = Field("", description="As in [network], for this upstream.")
    proxy: _Proxy = Field("", description="As in [network], for this upstream.")
    allow_insecure_http: bool = Field(
        False, description="Allow plain http to other machines; the key is readable."
    )


class ChatSettings(_RequestDefaults):
    """Defaults of chat requests; an upstream's own value overrides them."""

    retrieval: bool = Field(True, description="Add code to chat messages.")
    context_chars: int = Field(
        DEFAULT_LENGTH, ge=1000, le=400_000, description="Maximum characters of code."
    )

    compact_tools: bool = Field(
        False, description="Describe tools to small models more briefly."
    )


class CompletionSettings(SettingsSection):
    """Inline completions: the interface, limits and optional kinds."""

    way: Annotated[str, AfterValidator(values.fim_mode), _WAYS] = Field(
        values.AUTO,
        description="auto: the upstream's best FIM interface; infill, suffix, fim, "
        "template or chat: only that one.",
    )
    timeout_ms: int = Field(
        3000,
        ge=100,
        le=60_000,
        description="Milliseconds after which the lines received so far are returned.",
    )
    max_tokens: int = Field(
        256, ge=1, le=4096, description="Longest completion in tokens."
    )
    chat_input: bool = Field(
        False,
        description="Complete text in the chat input box after every pause in typing.",
    )
    next_edit: bool = Field(
        False,
        description="Suggest the next edit of a file after every pause in typing.",
    )


class ToolSettings(SettingsSection):
    """How malformed tool calls are handled."""

    repair: RepairMode = Field(
        RepairMode.LOSSLESS,
        description="lossless: errors with one certain correction; fill: also add "
        "empty values; off: nothing.",
    )
    ask_again: int = Field(
        1,
        ge=0,
        le=5,
        description="Retries per turn for a call that is invalid JSON or was lost.",
    )


class ContextSettings(SettingsSection):
    """The code index, and the storage for uploaded files."""

    workspaces: list[str] = Field([], description="Folders to index and to follow.")
    max_files: int = Field(
        250_000, ge=1, description="Larger workspaces are searched with ripgrep."
    )
    extensions: list[str] = Field(
        [], description="Index only these extensions; empty: all text files."
    )
    allow_secret: list[str] = Field(
        [],
        description="Patterns, as in .gitignore, of files with secret names to read.",
    )
    workers: int = Field(2, ge=1, le=16, description="Processes that parse files.")
    parse_seconds: float = Field(
        2, gt=0, le=60, description="Most CPU seconds for one file."
    )
    store_mb: int = Field(
        2048, ge=16, description="Space for uploaded files in MiB, compressed."
    )


class RetrievalSettings(SettingsSection):
    """How questions about code are answered."""

    mode: SearchMode = Field(
        SearchMode.AUTO,
        description="auto, index only, or ripgrep only (a plain text search).",
    )
    rerank: RerankMode = Field(
        RerankMode.OFF,
        description="off, or model: a model reranks the best files.",
    )


class LimitSettings(SettingsSection):
    """Limits on concurrent work."""

    streams: int = Field(256, ge=1, le=4096, description="Concurrent responses.")
    waiting: int = Field(64, ge=0, le=4096, description="Requests that may wait.")
    wait_seconds: float = Field(10, ge=0, le=60, description="Longest wait in seconds.")
    connections: int = Field(512, ge=8, le=8192, description="Open connections.")


class LogSettings(SettingsSection):
    """The log. Keys and bodies are never logged."""

    level: Annotated[str, Field(pattern="^(debug|info|warning|error)$"), _LEVELS] = (
        Field("info", description="debug, info, warning or error.")
    )
