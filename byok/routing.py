"""What the daemon can be asked for, and who answers it."""

from enum import StrEnum

OFFICIAL = "official"  # the name of the vendor's service, beside those of upstreams


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


class EndpointGroup(StrEnum):
    """Endpoints that users send to the official service together."""

    MODELS = "models"
    CONTEXT = "context"
    COMPLETION = "completion"
    EDIT = "edit"
    CHAT = "chat"
    AGENTS = "agents"
    ACCOUNT = "account"
    TELEMETRY = "telemetry"


class ServedBy(StrEnum):
    """Where a group is answered: here, by the official service, or nowhere."""

    LOCAL = "local"
    OFFICIAL = "official"
    OFF = "off"
