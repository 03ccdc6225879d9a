"""What byok itself can be asked for, how it searches code, and who else may answer."""

from enum import StrEnum

OFFICIAL = "official"  # the service of the clients' vendor, where a name is needed
DEFAULT_LENGTH, LONGEST = 20_000, 80_000  # characters of an answer


class Service(StrEnum):
    """What answers a Local endpoint with state of the daemon."""

    MODELS = "models"
    FIND_MISSING = "find missing blobs"
    BATCH_UPLOAD = "keep blobs"
    CHECKPOINT = "make a checkpoint"
    RETRIEVAL = "retrieve code"
    SEARCH = "search code"
    INDEX_STATUS = "tell of the index"
    INDEX_ADD = "declare a workspace"
    INDEX_REMOVE = "forget a workspace"
    INDEX_REBUILD = "index anew"
    INDEX_WHY = "tell of a path"
    OFFICIAL = "tell of the official service"
    DAEMON = "tell of the daemon"
    SETTINGS = "tell the settings in force"
    CATALOG = "tell what the upstreams offer"
    KEYS = "tell where keys come from"
    KEY_TEST = "try a key"
    RELOAD = "read settings and keys anew"
    STOP = "stop, or start again"


class Purpose(StrEnum):
    """What a model is asked for; users may choose a model for each."""

    CHAT = "chat"
    COMPLETION = "completion"
    EDIT = "edit"
    COMMIT = "commit"
    TITLE = "title"
    SUMMARY = "summary"
    ENHANCE = "enhance"

    @property
    def is_small(self) -> bool:
        """Whether a small model does it well."""
        return self not in (Purpose.CHAT, Purpose.COMPLETION, Purpose.EDIT)


class SearchMode(StrEnum):
    """The index, with ripgrep until it is built; or one of them alone."""

    AUTO = "auto"
    INDEX = "index"
    RIPGREP = "ripgrep"


class Group(StrEnum):
    """Endpoints that users send to the official service together."""

    MODELS = "models"
    CONTEXT = "context"
    COMPLETION = "completion"
    EDIT = "edit"
    CHAT = "chat"
    AGENTS = "agents"
    ACCOUNT = "account"
    TELEMETRY = "telemetry"


class Where(StrEnum):
    """Where a group is answered: here, by the official service, or nowhere."""

    LOCAL = "local"
    OFFICIAL = "official"
    OFF = "off"


# What a summary of a conversation must hold, whoever asks a model for it.
SUMMARY_HOLDS = (
    "Keep what the user wants, with every condition and preference; what was decided "
    "and why; the files that were read or changed, by their paths, and what is in them "
    "that matters; the commands that ran and how they ended; errors and how they were "
    "solved; what is done and what is still to do, in that order. Keep names, paths, "
    "numbers and error messages as they are."
)
