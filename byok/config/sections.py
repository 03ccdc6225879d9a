"""The sections of config.toml as types: one field a key."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from byok.code_query import DEFAULT_LENGTH, SearchMode
from byok.config import values
from byok.dialects.presets import OPENAI_COMPATIBLE
from byok.purposes import Purpose
from byok.routing import EndpointGroup, ServedBy
from byok.toolcalls.mode import RepairMode

DEFAULT_PORT = 8317
_Proxy = Annotated[str, AfterValidator(values.proxy)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class ServerSettings(_Section):
    """Where clients connect. There is no host: byok listens on loopback only."""

    port: Annotated[int, AfterValidator(values.port)] = Field(
        DEFAULT_PORT, description="TCP port on 127.0.0.1 and ::1; 0 takes a free one."
    )


class NetworkSettings(_Section):
    """How upstreams beyond this machine are reached."""

    proxy: _Proxy = Field(
        "", description="http:// proxy for upstreams; never loopback."
    )
    ca_file: str = Field("", description="PEM file of further trusted authorities.")


class _RequestDefaults(_Section):
    """What a request gets unless it says otherwise; an upstream's own value wins."""

    system_prompt: str = Field(
        "", description="Stands first in the system message, unless a client has one."
    )
    temperature: float | None = Field(
        None, ge=0, le=2, description="Sampling temperature, 0 to 2."
    )
    top_p: float | None = Field(None, gt=0, le=1, description="Nucleus sampling.")
    max_tokens: int | None = Field(
        None, gt=0, description="Longest answer, in tokens of the model."
    )
    headers: Annotated[dict[str, str], AfterValidator(values.headers)] = Field(
        {}, description="Further request headers."
    )
    extra_body: dict[str, Any] = Field(
        {}, description="Further fields of every request body."
    )


class UpstreamSettings(_RequestDefaults):
    """One model API."""

    type: Annotated[str, AfterValidator(values.upstream_type)] = Field(
        OPENAI_COMPATIBLE, description="A preset's name, or openai_compatible."
    )
    dialect: Annotated[str, AfterValidator(values.dialect)] = Field(
        "", description="Wire protocol; empty chooses by type."
    )
    base_url: Annotated[
        str, AfterValidator(lambda u: values.base_url(u) if u else u)
    ] = Field("", description="Where the API begins; empty means the preset's address.")
    query: Annotated[dict[str, str], AfterValidator(values.query)] = Field(
        {}, description="What stands behind ? in every request's address."
    )
    models: list[str] = Field([], description="Models always offered, found or not.")
    model: str = Field("", description="The model to use when a client names none.")
    api_key_env: str = Field(
        "", description="Read the key from this variable and from nowhere else."
    )
    api_key_cmd: list[str] = Field(
        [],
        description="Run this program (no shell); its first line is the key.",
    )
    timeout: float = Field(
        0, ge=0, description="Longest silence in seconds; 0 means the kind's own."
    )
    context_window: int = Field(
        0, ge=0, description="Tokens that fit, answer included; 0: find out."
    )
    ca_file: str = Field("", description="As in [network], for this upstream.")
    proxy: _Proxy = Field("", description="As in [network], for this upstream.")
    allow_insecure_http: bool = Field(
        False, description="Allow plain http beyond this machine: the key travels bare."
    )


class ModelSettings(_Section):
    """Which model does what: byok:<upstream>:<model>, or a listed model."""

    chat: str = Field("", description="Chats whose client names no model.")
    completion: str = Field("", description="Inline completions.")
    edit: str = Field("", description="Edits, smart paste, next edits.")
    commit: str = Field("", description="Commit messages.")
    title: str = Field("", description="Titles of conversations.")
    summary: str = Field("", description="Summaries and other jobs in the background.")
    enhance: str = Field("", description="Prompts said better.")
    small: str = Field(
        "", description="Whatever of commit, title, summary and enhance is not set."
    )

    def for_purpose(self, purpose: Purpose) -> str:
        """Return the user's choice for a purpose, "" for none."""
        chosen: str = getattr(self, purpose.value)
        return chosen or (self.small if purpose.is_small else "")


class OfficialSettings(_Section):
    """Which groups of endpoints the official service answers: local, official, off."""

    base_url: Annotated[str, AfterValidator(values.official_url)] = Field(
        "", description="Where it is; empty means that byok never asks it."
    )
    models: ServedBy = Field(
        ServedBy.LOCAL, description="The list of models and flags; never off."
    )
    context: ServedBy = Field(ServedBy.LOCAL, description="Uploads and code retrieval.")
    completion: ServedBy = Field(ServedBy.LOCAL, description="Inline completions.")
    edit: ServedBy = Field(
        ServedBy.LOCAL, description="Edits, next edits, commit messages."
    )
    chat: ServedBy = Field(
        ServedBy.LOCAL, description="Chats and agents, titles, prompts."
    )
    agents: ServedBy = Field(
        ServedBy.LOCAL, description="Remote tools and remote agents."
    )
    account: ServedBy = Field(
        ServedBy.LOCAL, description="Credit, notices, repositories."
    )
    telemetry: ServedBy = Field(
        ServedBy.OFF,
        description="Events, metrics, feedback; swallowed unless official.",
    )

    @field_validator("models")
    @classmethod
    def _not_off(cls, wanted: ServedBy) -> ServedBy:
        if wanted is ServedBy.OFF:
            raise ValueError("must be local or official: no client starts without it")
        return wanted

    def where(self, group: EndpointGroup) -> ServedBy:
        """Return where a group is answered."""
        wanted: ServedBy = getattr(self, group.value)
        unknown = wanted is ServedBy.OFFICIAL and not self.base_url
        return ServedBy.LOCAL if unknown else wanted

    @property
    def lacks_address(self) -> bool:
        """Whether a group is to go to a service whose address is not set."""
        wanted = any(getattr(self, g.value) is ServedBy.OFFICIAL for g in EndpointGroup)
        return wanted and not self.base_url

    @property
    def groups(self) -> tuple[EndpointGroup, ...]:
        """The groups that the service answers."""
        return tuple(g for g in EndpointGroup if self.where(g) is ServedBy.OFFICIAL)


class RoutingSettings(_Section):
    """Which model answers, and what the official service does."""

    default: str = Field(
        "", description="Default model: byok:<upstream>:<model>, or a listed model."
    )
    models: ModelSettings = Field(
        default_factory=lambda: ModelSettings(), description="A model for a purpose."
    )
    official: OfficialSettings = Field(
        default_factory=lambda: OfficialSettings(),
        description="What the official service answers.",
    )


class ChatSettings(_RequestDefaults):
    """Defaults of every chat request, where the upstream sets none."""

    retrieval: bool = Field(
        True, description="Add code that a client names to its questions."
    )
    context_chars: int = Field(
        DEFAULT_LENGTH, ge=1000, le=400_000, description="How much code, in characters."
    )


class CompletionSettings(_Section):
    """How inline completions are made."""

    way: Annotated[str, AfterValidator(values.fill_way)] = Field(
        values.AUTO,
        description="auto takes the upstream's best; else infill, suffix, fim, "
        "template or chat alone.",
    )
    timeout_ms: int = Field(
        3000, ge=100, le=60_000, description="What came until then is given."
    )
    max_tokens: int = Field(
        256, ge=1, le=4096, description="Longest completion, in tokens of the model."
    )
    chat_input: bool = Field(
        False, description="Complete what is typed into the chat box, at every pause."
    )
    next_edit: bool = Field(
        False, description="Suggest the next edit of a file, at every pause."
    )


class ToolSettings(_Section):
    """What happens to a model's tool calls."""

    repair: RepairMode = Field(
        RepairMode.LOSSLESS,
        description="lossless; fill also invents empty values; off passes through.",
    )
    ask_again: int = Field(
        1,
        ge=0,
        le=5,
        description="How often a turn asks again for a tool call that is no JSON.",
    )


class ContextSettings(_Section):
    """Which code byok knows, and how much of it it keeps."""

    workspaces: list[str] = Field([], description="Folders to index and to follow.")
    max_files: int = Field(
        250_000, ge=1, description="Beyond this a workspace is left to ripgrep."
    )
    extensions: list[str] = Field(
        [], description="The only extensions to index; empty: all."
    )
    allow_secret: list[str] = Field(
        [],
        description="Patterns, as in .gitignore, that open files with secret names.",
    )
    workers: int = Field(2, ge=1, le=16, description="Processes that parse files.")
    parse_seconds: float = Field(
        2, gt=0, le=60, description="Longest time for one file."
    )
    store_mb: int = Field(
        2048, ge=16, description="Room for what clients upload, in MiB, compressed."
    )


class RetrievalSettings(_Section):
    """How questions about code are answered."""

    mode: SearchMode = Field(
        SearchMode.AUTO,
        description="auto; index alone; ripgrep alone: a plain text search.",
    )


class LimitSettings(_Section):
    """How much byok takes on at once."""

    streams: int = Field(256, ge=1, le=4096, description="Answers at the same time.")
    waiting: int = Field(64, ge=0, le=4096, description="Requests that may wait.")
    wait_seconds: float = Field(10, ge=0, le=60, description="How long they wait.")
    connections: int = Field(512, ge=8, le=8192, description="Open connections.")


class LogSettings(_Section):
    """What is written down. Keys and bodies never are."""

    level: Annotated[str, Field(pattern="^(debug|info|warning|error)$")] = Field(
        "info", description="debug, info, warning or error."
    )
