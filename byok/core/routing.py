"""Names for routing: services, endpoint groups, purposes, and models of upstreams."""

from collections.abc import Mapping
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
    """A request that byok answers without a model; the value describes it."""

    MODELS = "models"
    FIND_MISSING = "which blobs are not stored"
    BATCH_UPLOAD = "store blobs"
    CHECKPOINT = "store a checkpoint"
    RETRIEVAL = "retrieve code"
    SEARCH = "search code"
    INDEX_STATUS = "status of the index"
    INDEX_ADD = "add a workspace"
    INDEX_REMOVE = "remove a workspace"
    INDEX_REBUILD = "rebuild the index"
    INDEX_WHY = "whether and why a path is indexed"
    EMBED_STATUS = "status of the vectors"
    EMBED_ESTIMATE = "what filling would send"
    EMBED_ENABLE = "consent to a host and a model"
    EMBED_DISABLE = "withdraw that consent"
    EMBED_PAUSE = "stop filling"
    EMBED_RESUME = "go on filling"
    EMBED_CLEAR = "remove all vectors"
    EMBED_PUSH = "give vectors to the team"
    EMBED_PULL = "take vectors from the team"
    OFFICIAL = "status of the official service"
    DAEMON = "status of the daemon"
    SETTINGS = "settings in use, without secrets"
    CATALOG = "models of the upstreams"
    CHOICES = "rules that choose models, and what they chose"
    KEYS = "where keys come from"
    KEY_TEST = "test a key"
    RELOAD = "reload settings and keys"
    STOP = "stop or restart the daemon"
    DASHBOARD_CODE = "make a code for the dashboard"


# Paths for byok's own command line and MCP server.
OWN_PATHS: Mapping[str, str] = {
    Service.DAEMON: "/byok/daemon",
    Service.SETTINGS: "/byok/settings",
    Service.CATALOG: "/byok/catalog",
    Service.CHOICES: "/byok/choices",
    Service.KEYS: "/byok/keys",
    Service.KEY_TEST: "/byok/keys/test",
    Service.RELOAD: "/byok/reload",
    Service.STOP: "/byok/stop",
    Service.DASHBOARD_CODE: "/byok/dashboard-code",
    Service.RETRIEVAL: "/byok/retrieval",
    Service.OFFICIAL: "/byok/official",
    Service.SEARCH: "/byok/search",
    Service.INDEX_STATUS: "/byok/index/status",
    Service.INDEX_ADD: "/byok/index/add",
    Service.INDEX_REMOVE: "/byok/index/remove",
    Service.INDEX_REBUILD: "/byok/index/rebuild",
    Service.INDEX_WHY: "/byok/index/why",
    Service.EMBED_STATUS: "/byok/embed/status",
    Service.EMBED_ESTIMATE: "/byok/embed/estimate",
    Service.EMBED_ENABLE: "/byok/embed/enable",
    Service.EMBED_DISABLE: "/byok/embed/disable",
    Service.EMBED_PAUSE: "/byok/embed/pause",
    Service.EMBED_RESUME: "/byok/embed/resume",
    Service.EMBED_CLEAR: "/byok/embed/clear",
    Service.EMBED_PUSH: "/byok/embed/push",
    Service.EMBED_PULL: "/byok/embed/pull",
}


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
