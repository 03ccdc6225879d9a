"""Names for routing: services, endpoint groups, purposes, and models of upstreams."""

from enum import StrEnum

from msgspec import Struct

OFFICIAL = "official"  # the name of the vendor's service, beside those of upstreams
CUSTOM = "custom"  # the name of a server that `--upstream` gives by its URL
MAX_ID_LENGTH = 512  # characters
# Ids of models as clients see them: `byok:<upstream>:<model>`, or `byok:<alias>`.
PREFIX = "byok:"
# What a summary of a conversation must hold, whoever asks a model for it.
SUMMARY_HOLDS = (
    "Keep what the user wants, with every condition and preference; what was decided "
    "and why; the files that were read or changed, by their paths, and what is in them "
    "that matters; the commands that ran and how they ended; errors and how they were "
    "solved; what is done and what is still to do, in that order. Keep names, paths, "
    "numbers and error messages as they are."
)


class Service(StrEnum):
    """A request that byok answers without a model; the value describes it.

    `own_path` is for byok's own command line and MCP server, "" if they have none.
    """

    own_path: str

    def __new__(cls, description: str, own_path: str = "") -> "Service":
        """Take the description alone for the value."""
        service = str.__new__(cls, description)
        service._value_, service.own_path = description, own_path
        return service

    MODELS = "models"
    FIND_MISSING = "which blobs are not stored"
    BATCH_UPLOAD = "store blobs"
    CHECKPOINT = "store a checkpoint"
    DAEMON = "status of the daemon", "/byok/daemon"
    SETTINGS = "settings in use, without secrets", "/byok/settings"
    CATALOG = "models of the upstreams", "/byok/catalog"
    CHOICES = "rules that choose models, and what they chose", "/byok/choices"
    KEYS = "where keys come from", "/byok/keys"
    KEY_TEST = "test a key", "/byok/keys/test"
    RELOAD = "reload settings and keys", "/byok/reload"
    STOP = "stop or restart the daemon", "/byok/stop"
    DASHBOARD_CODE = "make a code for the dashboard", "/byok/dashboard-code"
    RETRIEVAL = "retrieve code", "/byok/retrieval"
    OFFICIAL = "status of the official service", "/byok/official"
    SEARCH = "search code", "/byok/search"
    INDEX_STATUS = "status of the index", "/byok/index/status"
    INDEX_ADD = "add a workspace", "/byok/index/add"
    INDEX_REMOVE = "remove a workspace", "/byok/index/remove"
    INDEX_REBUILD = "rebuild the index", "/byok/index/rebuild"
    INDEX_WHY = "whether and why a path is indexed", "/byok/index/why"
    EMBED_STATUS = "status of the vectors", "/byok/embed/status"
    EMBED_ESTIMATE = "what filling would send", "/byok/embed/estimate"
    EMBED_ENABLE = "consent to a host and a model", "/byok/embed/enable"
    EMBED_DISABLE = "withdraw that consent", "/byok/embed/disable"
    EMBED_PAUSE = "stop filling", "/byok/embed/pause"
    EMBED_RESUME = "go on filling", "/byok/embed/resume"
    EMBED_CLEAR = "remove all vectors", "/byok/embed/clear"
    EMBED_PUSH = "give vectors to the team", "/byok/embed/push"
    EMBED_PULL = "take vectors from the team", "/byok/embed/pull"


class EndpointGroup(StrEnum):
    """Endpoints that users assign together: to byok, the official service or nobody."""

    MODELS = "models"
    CONTEXT = "context"
    COMPLETION = "completion"
    EDIT = "edit"
    CHAT = "chat"
    AGENTS = "agents"
    ACCOUNT = "account"
    TELEMETRY = "telemetry"


class ServedBy(StrEnum):
    """Who answers a group of endpoints: byok, the official service, or nobody."""

    LOCAL = "local"
    OFFICIAL = "official"
    OFF = "off"


class Purpose(StrEnum):
    """What a model is used for; users may choose a model for each purpose."""

    CHAT = "chat"
    COMPLETION = "completion"
    EDIT = "edit"
    NEXT_EDIT = "next_edit"
    COMMIT = "commit"
    TITLE = "title"
    SUMMARY = "summary"
    ENHANCE = "enhance"

    @property
    def is_small(self) -> bool:
        """Whether a small model is good enough."""
        return self in (Purpose.COMMIT, Purpose.TITLE, Purpose.SUMMARY, Purpose.ENHANCE)


class ChatMoment(StrEnum):
    """A special moment of a chat, for which users may choose a model.

    The values are settings of `[routing.models]`, in the order of their precedence.
    """

    IMAGE = "image"
    LONG_CONTEXT = "long_context"
    SUBAGENT = "subagent"
    PLAN = "plan"


class ListedModel(Struct, frozen=True):
    """One model of one upstream, or the user's own name for it."""

    upstream: str
    model: str
    alias: str = ""

    @property
    def id(self) -> str:
        """The id that clients send back."""
        if self.alias:
            return f"{PREFIX}{self.alias}"
        return f"{PREFIX}{self.upstream}:{self.model}"

    @property
    def label(self) -> str:
        """The name that is shown."""
        return self.alias or self.model


def split_id(model_id: str) -> tuple[str, str] | None:
    """Split `byok:<upstream>:<model>` at the first two colons; None for others."""
    prefix, _, tail = model_id.partition(":")
    upstream, colon, model = tail.partition(":")
    is_invalid = len(model_id) > MAX_ID_LENGTH or not model_id.isprintable()
    if prefix != "byok" or not colon or not upstream or not model or is_invalid:
        return None
    return upstream, model
