"""The sections of config.toml as types, one field per key."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, field_validator, model_validator

from byok.core.chat import RepairMode
from byok.core.code_query import DEFAULT_LENGTH, RerankMode, SearchMode
from byok.core.prompts.prompt_set import FAMILIES
from byok.core.routing import ChatMoment, EndpointGroup, Purpose, ServedBy
from byok.core.urls import is_plain_http
from byok.dialects.model_facts import EFFORTS, FIELDS, ModelFacts, Price, Replay
from byok.dialects.presets import OPENAI_COMPATIBLE
from byok.settings import values
from byok.settings.section import LONG, MODEL, MODELS, FieldEntry, SettingsSection
from byok.settings.values import UPSTREAM_NAME

_FAMILIES = FieldEntry(choices=lambda: ("", *FAMILIES))
_EFFORTS = FieldEntry(choices=lambda: ("", *EFFORTS))
_TYPES = FieldEntry(choices=values.upstream_types)
_DIALECTS = FieldEntry(choices=lambda: ("", *values.dialect_names()))
_FIM_MODES = FieldEntry(choices=lambda: values.FIM_MODES)
_LEVELS = FieldEntry(choices=lambda: ("debug", "info", "warning", "error"))
_PORTS = FieldEntry(limits=(0, 65_535))
DEFAULT_PORT = 8317
_MAX_PREFIX_CHARS = 1000
_Dollars = Annotated[float | None, Field(ge=0, le=100_000)]
_Proxy = Annotated[str, AfterValidator(values.proxy)]
_OwnProxy = Annotated[
    _Proxy,
    Field(description="http:// proxy for this server; that of [network] is not used."),
]
_OwnCaFile = Annotated[
    str,
    Field(
        description="PEM file of additional CA certificates, instead of that of "
        "[network]."
    ),
]
_Prefix = Annotated[str | None, Field(max_length=_MAX_PREFIX_CHARS)]
_Model: TypeAlias = Annotated[str, MODEL]
_Models: TypeAlias = Annotated[list[str], AfterValidator(values.model_ids), MODELS]


class FactSettings(SettingsSection):
    """What one model takes; what is not set is found out."""

    family: Annotated[str, _FAMILIES] = Field(
        "",
        description='The family whose prompts it gets: "claude", "gpt", "gemini", '
        '"qwen", "deepseek", "kimi" or "glm".',
    )
    window: int = Field(
        0,
        ge=0,
        description="Context window in tokens, the answer included; 0: unknown.",
    )
    max_output: int = Field(
        0, ge=0, description="Longest answer in tokens; 0: unknown."
    )
    chats: bool | None = Field(
        None,
        description="Whether it answers chats; others create embeddings, images or "
        "speech.",
    )
    tools: bool | None = Field(None, description="Whether it accepts tools.")
    most_tools: int = Field(
        0, ge=0, description="How many tools it accepts at most; 0: unknown."
    )
    images: bool | None = Field(None, description="Whether it accepts images.")
    thinking: bool | None = Field(None, description="Whether it reasons.")
    efforts: tuple[Annotated[str, _EFFORTS], ...] = Field(
        (),
        description='The values of effort that it accepts, such as ["low", "medium", '
        '"high"].',
    )
    sampling: bool | None = Field(
        None, description="Whether it accepts temperature and top_p."
    )
    adaptive_thinking: bool | None = Field(
        None, description="Whether it decides by itself how much to reason (Claude)."
    )
    replay: Literal["", "never", "tool_turns", "every_turn"] = Field(
        "",
        description='When its earlier reasoning is sent back to it: "never", '
        '"tool_turns" or "every_turn".',
    )
    empty_reasoning: bool | None = Field(
        None,
        description="Whether to send an empty reasoning field if there is no "
        "reasoning to send back.",
    )
    dialect: Annotated[str, _DIALECTS] = Field(
        "",
        description="The only API protocol in which it accepts tools, if the upstream "
        "has several.",
    )
    printed_calls: bool | None = Field(
        None,
        description="Whether tool calls that it prints as text are made "
        "(docs/reference/decisions.md says which).",
    )
    price_input: _Dollars = Field(
        None, description="US dollars per million tokens of the prompt."
    )
    price_output: _Dollars = Field(
        None, description="US dollars per million tokens of the answer."
    )
    price_cache_read: _Dollars = Field(
        None,
        description="US dollars per million tokens that the upstream reads from its "
        "cache.",
    )
    price_cache_write: _Dollars = Field(
        None, description="US dollars per million tokens that it writes to its cache."
    )

    @model_validator(mode="before")
    @classmethod
    def _read_former_settings(cls, data: Any) -> Any:
        """Convert `tool_syntax` of older versions: a family of forms, or "off"."""
        if not (isinstance(data, dict) and isinstance(data.get("tool_syntax"), str)):
            return data
        converted = dict(data)
        if converted.pop("tool_syntax") == "off":
            converted.setdefault("printed_calls", False)
        return converted

    def as_facts(self, model: str) -> ModelFacts:
        """Return the facts about a model that are set."""
        fields = self.model_dump()
        fields["replay"] = Replay(self.replay) if self.replay else None
        prices = {name: fields[f"price_{name}"] for name in Price.__struct_fields__}
        if any(price is not None for price in prices.values()):
            fields["price"] = Price(**prices)
        return ModelFacts(model, **{n: fields[n] for n in FIELDS if n in fields})


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
    effort: Annotated[str, _EFFORTS] = Field(
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

    type: Annotated[str, _TYPES] = Field(
        OPENAI_COMPATIBLE,
        description="The preset whose behaviour applies, or openai_compatible.",
    )
    dialect: Annotated[str, _DIALECTS] = Field(
        "",
        description="The API protocol (openai_chat, openai_responses, anthropic, "
        "gemini or ollama); empty means the default of the type.",
    )
    base_url: Annotated[str, AfterValidator(values.base_url)] = Field(
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
    long_context_share: float = Field(
        0.7,
        ge=0.05,
        le=1,
        description="The share of its model's window above which a chat is long, for "
        "routing.models.long_context; from 0.05 to 1.",
    )


class CompletionSettings(SettingsSection):
    """Inline completions: the interface, limits and optional kinds."""

    way: Annotated[str, _FIM_MODES] = Field(
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
    next_edit: bool | None = Field(
        None,
        description="Suggest the next edit of a file: a request after every pause in "
        "typing, which costs tokens. Unset, that is done if routing.models.next_edit "
        "is set, or an upstream on this machine lists a model that is made for it.",
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


def _refuse_plain_http(url: str, what: str) -> None:
    if is_plain_http(url):
        raise ValueError(
            f"url is plain http to another machine, so others could read {what}: use "
            "https, or set allow_insecure_http = true"
        )


class RemoteSettings(SettingsSection):
    """No search server is asked until one is named here."""

    url: Annotated[str, AfterValidator(values.base_url)] = Field(
        "",
        description="Address of a Zoekt server (`zoekt-webserver -rpc`), such as "
        '"https://code.example.com". Empty means off.',
    )
    token_scheme: Annotated[str, Field(pattern="^[A-Za-z0-9-]{0,20}$")] = Field(
        "Bearer",
        description="The word before the token in the header Authorization; empty for "
        "none.",
    )
    headers: Annotated[dict[str, str], AfterValidator(values.headers)] = Field(
        {},
        description='Headers of each request, such as { X-Organisation = "platform" }.',
    )
    ca_file: _OwnCaFile = ""
    proxy: _OwnProxy = ""
    allow_insecure_http: bool = Field(
        False,
        description="Allow plain http to another machine. Others could then read the "
        "token and the words of questions.",
    )

    @model_validator(mode="after")
    def _check(self) -> "RemoteSettings":
        if not self.allow_insecure_http:
            _refuse_plain_http(self.url, "its token and the words of questions")
        return self

    @property
    def on(self) -> bool:
        """Whether a server is named."""
        return bool(self.url)


class SearchSettings(SettingsSection):
    """What is searched beside the index of this machine."""

    remote: RemoteSettings = Field(default_factory=lambda: RemoteSettings())


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

    level: Annotated[str, _LEVELS] = Field(
        "info",
        description='Lowest level to log: "debug", "info", "warning" or "error".',
    )


def _team(name: str) -> str:
    if name and not values.UPSTREAM_NAME.match(name):
        raise ValueError("must be a-z, 0-9, _ and -, 32 characters at most")
    return name


class TeamSettings(SettingsSection):
    """Nothing is shared until a server is named here."""

    url: Annotated[str, AfterValidator(values.team_url)] = Field(
        "",
        description="Address of the team's Qdrant server, such as "
        '"https://qdrant.example.com:6333", or of a PostgreSQL database with pgvector, '
        'such as "postgresql://user@db.example.com/byok". Empty means off.',
    )
    team: Annotated[str, AfterValidator(_team)] = Field(
        "", description="The team's name, the same for all members: a-z, 0-9, _ and -."
    )
    write: bool = Field(
        False,
        description="Also upload the vectors that are created on this machine. "
        "Otherwise, byok only downloads.",
    )
    search: bool = Field(
        False,
        description="While this machine has no vectors of the files that a question "
        "is about (after a change of model, or while byok embed is paused), search in "
        "the team's index; the vector of the question is sent there.",
    )
    ca_file: _OwnCaFile = ""
    proxy: _OwnProxy = ""
    allow_insecure_http: bool = Field(
        False,
        description="Allow plain http (or PostgreSQL without TLS) to another machine. "
        "Others could then read the key and all vectors.",
    )

    @model_validator(mode="after")
    def _check(self) -> "TeamSettings":
        if self.url and not self.team:
            raise ValueError("names a server and no team: set team")
        if self.proxy and self.url.startswith(values.POSTGRES):
            raise ValueError("proxy is of no use for a PostgreSQL server: remove it")
        if not self.allow_insecure_http:
            _refuse_plain_http(self.url, "its key and all vectors")
        return self

    @property
    def on(self) -> bool:
        """Whether a server is named."""
        return bool(self.url)


def _upstream(name: str) -> str:
    if name and not UPSTREAM_NAME.match(name):
        raise ValueError("must be the name of an upstream or preset")
    return name


def _model(name: str) -> str:
    if name and (len(name) > 200 or not name.isprintable()):
        raise ValueError("must be a model's name, 200 characters at most")
    return name


class EmbeddingSettings(SettingsSection):
    """Embeddings are off until an upstream is named here."""

    upstream: Annotated[str, AfterValidator(_upstream)] = Field(
        "",
        description='An upstream of these settings or a preset, such as "ollama". '
        "Empty means off.",
    )
    model: Annotated[str, AfterValidator(_model)] = Field(
        "",
        description="The embedding model, as that upstream lists it, such as "
        '"nomic-embed-text".',
    )
    dimensions: int = Field(
        0,
        ge=0,
        le=8192,
        description="Dimensions of a vector, for models that can shorten theirs; 0 "
        "means the model's default.",
    )
    document_prefix: _Prefix = Field(
        None,
        description="Text before each chunk of code, instead of what byok knows that "
        "the model expects.",
    )
    query_prefix: _Prefix = Field(
        None,
        description="Text before each question, instead of what byok knows that the "
        "model expects.",
    )
    price: _Dollars = Field(
        None,
        description="Dollars per million tokens, for estimates. byok knows the prices "
        "of some vendors.",
    )

    team: TeamSettings = Field(default_factory=lambda: TeamSettings())

    @model_validator(mode="after")
    def _check_model(self) -> "EmbeddingSettings":
        if self.upstream and not self.model:
            raise ValueError("names an upstream and no model: set model")
        return self

    @property
    def on(self) -> bool:
        """Whether a model is named; code is sent only after the user confirmed it."""
        return bool(self.upstream)


class ModelSettings(SettingsSection):
    """The model for each purpose: byok:<upstream>:<model>, an alias or a listed one."""

    chat: _Model = Field("", description="Chats in which the client names no model.")
    completion: _Model = Field("", description="Inline completions while you type.")
    edit: _Model = Field(
        "", description="Edits of selections and files, smart paste, next edits."
    )
    next_edit: _Model = Field(
        "",
        description="Suggestions for the next edit. Empty means the model for edits, "
        "else one that is made for this, if the upstream lists one (docs/models.md).",
    )
    commit: _Model = Field("", description="Commit messages.")
    title: _Model = Field("", description="Titles of conversations.")
    summary: _Model = Field(
        "",
        description="Background requests of clients (silent chats), such as "
        "summaries; also byok's own summaries of conversations that no longer fit, "
        "for which empty means the chat's model.",
    )
    enhance: _Model = Field(
        "", description="Prompt enhancement, by its own endpoint or by a silent chat."
    )
    small: _Model = Field(
        "",
        description="A small model for each of commit, title, summary and enhance "
        "that is empty. It is also asked for words of code if a question about code is "
        "in another language or in everyday words (docs/reference/retrieval.md).",
    )
    rerank: _Model = Field(
        "",
        description='The model that reranks files if retrieval.rerank is "model"; '
        "empty means the chat's model. Very small models cannot do this "
        "(docs/reference/retrieval.md).",
    )
    image: _Model = Field(
        "",
        description="Turns of a chat whose question brings a picture. This and the "
        "next three answer chats for a while, also where the client names another "
        "model (docs/models.md).",
    )
    long_context: _Model = Field(
        "",
        description="Chats that fill more than chat.long_context_share of their "
        "model's window.",
    )
    subagent: _Model = Field(
        "", description="Conversations that an agent began for a part of its task."
    )
    plan: _Model = Field(
        "", description="Agents that are offered only tools that change no file."
    )
    vision: _Model = Field(
        "",
        description="The model that describes pictures, each once, for chat models "
        "that see none; empty means that of image. Without both, a placeholder stands "
        "for a picture.",
    )

    def for_purpose(self, purpose: Purpose) -> str:
        """Return the user's choice for a purpose, "" for none."""
        models = (getattr(self, name) for name in self.settings_for(purpose))
        return next(filter(None, models), "")

    @staticmethod
    def settings_for(purpose: Purpose) -> tuple[str, ...]:
        """Return the settings that choose the model; the first one set is used."""
        if purpose is Purpose.NEXT_EDIT:
            return (purpose, Purpose.EDIT)
        return (purpose, "small") if purpose.is_small else (purpose,)

    @property
    def for_moments(self) -> dict[ChatMoment, str]:
        """The models that the user chose for moments of chats."""
        models = {moment: getattr(self, moment.value) for moment in ChatMoment}
        return {moment: model for moment, model in models.items() if model}


class FallbackSettings(SettingsSection):
    """The models that answer if the chosen one cannot, for each purpose, in order.

    Nothing is sent to any upstream that is not named here or chosen by the user.
    """

    chat: _Models = Field([], description="Chats and agents.")
    completion: _Models = Field([], description="Inline completions.")
    edit: _Models = Field(
        [], description="Edits of selections and files, smart paste, next edits."
    )
    commit: _Models = Field([], description="Commit messages.")
    title: _Models = Field([], description="Titles of conversations.")
    summary: _Models = Field(
        [], description="Background requests, and byok's own summaries."
    )
    enhance: _Models = Field([], description="Prompt enhancement.")
    small: _Models = Field(
        [],
        description="Models for each of commit, title, summary and enhance that is "
        "empty.",
    )

    def for_purpose(self, purpose: Purpose) -> list[str]:
        """Return the models for a purpose, in the order in which they are asked."""
        name = Purpose.EDIT if purpose is Purpose.NEXT_EDIT else purpose
        models: list[str] = getattr(self, name)
        return models or (self.small if purpose.is_small else [])


class OfficialSettings(SettingsSection):
    """Who answers each group of endpoints: local, official, or off."""

    base_url: Annotated[str, AfterValidator(values.official_url)] = Field(
        "",
        description="Address of the official service, beginning with https://, as "
        "your account shows it. Empty: never used.",
    )
    models: ServedBy = Field(
        ServedBy.LOCAL,
        description='The model list and feature flags. "official" merges both lists; '
        "the service's own models are included only if chat is official too. This "
        "group cannot be off.",
    )
    context: ServedBy = Field(
        ServedBy.LOCAL,
        description='Code uploads and code retrieval. "official" sends your files '
        "there; chats, edits and completions there know your code only if this is "
        "set.",
    )
    completion: ServedBy = Field(ServedBy.LOCAL, description="Inline completions.")
    edit: ServedBy = Field(
        ServedBy.LOCAL,
        description="Edits of selections and files, smart paste, next edits, commit "
        "messages.",
    )
    chat: ServedBy = Field(
        ServedBy.LOCAL,
        description="Chats and agents, titles, prompt enhancement. Requests for a "
        "model byok:<upstream>:<model> always stay with byok. The service's own "
        "models are in the picker only if models is official too.",
    )
    agents: ServedBy = Field(
        ServedBy.LOCAL,
        description="Remote tools and remote agents, which byok itself does not "
        "provide.",
    )
    account: ServedBy = Field(
        ServedBy.LOCAL,
        description="Credit, subscription, notifications, source hosting, secrets "
        "stored there.",
    )
    telemetry: ServedBy = Field(
        ServedBy.OFF,
        description='Events, metrics and feedback. Only "official" sends them '
        "anywhere.",
    )

    @field_validator("models")
    @classmethod
    def _not_off(cls, served_by: ServedBy) -> ServedBy:
        if served_by is ServedBy.OFF:
            raise ValueError("must be local or official: clients do not start without")
        return served_by

    def where(self, group: EndpointGroup) -> ServedBy:
        """Return who answers a group; local if the service has no address."""
        served_by: ServedBy = getattr(self, group)
        is_unusable = served_by is ServedBy.OFFICIAL and not self.base_url
        return ServedBy.LOCAL if is_unusable else served_by

    @property
    def lacks_address(self) -> bool:
        """Whether a group is set to official although no address is set."""
        is_used = any(
            getattr(self, group.value) is ServedBy.OFFICIAL for group in EndpointGroup
        )
        return is_used and not self.base_url

    @property
    def groups(self) -> tuple[EndpointGroup, ...]:
        """The groups that the official service answers."""
        return tuple(g for g in EndpointGroup if self.where(g) is ServedBy.OFFICIAL)


class RoutingSettings(SettingsSection):
    """The default model, models by purpose, their names, and the official service."""

    default: _Model = Field(
        "",
        description='Default model, such as "byok:openai:gpt-4.1", or just the name '
        "of a model that some upstream has. Empty means the default model of the "
        "first upstream.",
    )
    models: ModelSettings = Field(
        default_factory=lambda: ModelSettings(), description="A model per purpose."
    )
    fallback: FallbackSettings = Field(
        default_factory=lambda: FallbackSettings(),
        description="Models that answer if the chosen one cannot, per purpose.",
    )
    aliases: Annotated[dict[str, str], AfterValidator(values.aliases)] = Field(
        {},
        description="Names of your own for models, such as { fast = "
        '"byok:groq:llama-3.3-70b-versatile" }. They can be used wherever a model is '
        "named, in the settings and by clients.",
    )
    official: OfficialSettings = Field(
        default_factory=lambda: OfficialSettings(),
        description="Who answers each group of endpoints.",
    )

    def meant_by(self, name: str) -> str:
        """Return the model that an alias stands for; another name unchanged."""
        return self.aliases.get(name.removeprefix("byok:"), name)
