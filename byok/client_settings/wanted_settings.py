"""The settings that each client needs, in the form that it documents."""

from pathlib import PurePath
from typing import NamedTuple

from byok.client_settings import jsonc, toml_text
from byok.client_settings.client_kind import ClientKind
from byok.client_settings.document import TextFormat
from byok.client_settings.setting import Setting

FORMATS = {
    ClientKind.VSCODE: TextFormat.JSONC,
    ClientKind.VSCODE_INSIDERS: TextFormat.JSONC,
    ClientKind.VSCODIUM: TextFormat.JSONC,
    ClientKind.CURSOR: TextFormat.JSONC,
    ClientKind.CODEX: TextFormat.TOML,
    ClientKind.OPENCODE: TextFormat.JSONC,
    ClientKind.AIDER: TextFormat.YAML,
    ClientKind.CONTINUE: TextFormat.YAML,
}
# Clients of OpenAI's API, which name their model in their settings.
NEEDS_MODEL = frozenset(
    {ClientKind.CODEX, ClientKind.OPENCODE, ClientKind.AIDER, ClientKind.CONTINUE}
)
_OBJECT = "augment.advanced"


class DaemonAddress(NamedTuple):
    """Where byok answers, the client token and its file, and the model to ask for."""

    url: str
    token: str
    token_file: PurePath
    model: str = ""

    @property
    def openai_url(self) -> str:
        """The base URL for clients of OpenAI's API."""
        return f"{self.url}/v1"


def settings_for(
    client: ClientKind, daemon: DaemonAddress, text: str = "", *, windows: bool = False
) -> tuple[Setting, ...]:
    """Return the settings that a client needs; `text` is its current file.

    Raises:
        ValueError: the text cannot be read.
    """
    match client:
        case ClientKind.CODEX:
            return _codex(daemon, text, windows=windows)
        case ClientKind.OPENCODE:
            return _opencode(daemon)
        case ClientKind.AIDER:
            return _aider(daemon)
        case ClientKind.CONTINUE:
            return _continue(daemon, text)
        case _:
            return _vscode(daemon, text)


def _vscode(daemon: DaemonAddress, text: str) -> tuple[Setting, ...]:
    """Return the two settings of the extension.

    They may stand in an object `augment.advanced` as well. Where one is, it decides if
    it comes last in the file, so they are set in there, and beside it if they are.
    """
    values = {"completionURL": daemon.url, "apiToken": daemon.token}
    objects = isinstance(jsonc.read(text, (_OBJECT,)), dict)
    settings = []
    for name, value in values.items():
        dotted = (f"{_OBJECT}.{name}",)
        if objects:
            settings.append(Setting((_OBJECT, name), value))
        if not objects or isinstance(jsonc.read(text, dotted), str):
            settings.append(Setting(dotted, value))
    return tuple(settings)


def _codex(daemon: DaemonAddress, text: str, *, windows: bool) -> tuple[Setting, ...]:
    """Return a provider that gets the token from byok's file, so no copy goes stale.

    "Custom model providers" of developers.openai.com/codex/config-advanced. It may not
    be combined with a variable for the token: one that the user named stays.
    """
    here = ("model_providers", "byok")
    program, *arguments = ["cmd", "/d", "/c", "type"] if windows else ["cat"]
    settings = (
        Setting(("model",), daemon.model),
        Setting(("model_provider",), "byok"),
        Setting((*here, "name"), "byok"),
        Setting((*here, "base_url"), daemon.openai_url),
        Setting((*here, "wire_api"), "responses"),
    )
    if isinstance(toml_text.read(text, (*here, "env_key")), str):
        return settings
    return (
        *settings,
        Setting((*here, "auth", "command"), program),
        Setting((*here, "auth", "args"), [*arguments, str(daemon.token_file)]),
    )


def _opencode(daemon: DaemonAddress) -> tuple[Setting, ...]:
    """Return a provider; opencode reads the token from byok's file.

    "Custom provider" of opencode.ai/docs/providers, "Variables" of .../docs/config.
    """
    here = ("provider", "byok")
    return (
        Setting((*here, "npm"), "@ai-sdk/openai-compatible"),
        Setting((*here, "name"), "byok"),
        Setting((*here, "options", "baseURL"), daemon.openai_url),
        Setting(
            (*here, "options", "apiKey"), f"{{file:{daemon.token_file.as_posix()}}}"
        ),
        Setting((*here, "models", daemon.model, "name"), daemon.model),
        Setting(("model",), f"byok/{daemon.model}"),
    )


def _aider(daemon: DaemonAddress) -> tuple[Setting, ...]:
    """Return aider's options for an API like OpenAI's.

    aider.chat/docs/config/aider_conf.html and .../llms/openai-compat.html.
    """
    return (
        Setting(("model",), f"openai/{daemon.model}"),
        Setting(("openai-api-base",), daemon.openai_url),
        Setting(("openai-api-key",), daemon.token),
    )


def _continue(daemon: DaemonAddress, text: str) -> tuple[Setting, ...]:
    """Return a model of the list, and what every file must begin with.

    "config.yaml reference" of docs.continue.dev/reference.
    """
    model = {
        "name": "byok",
        "provider": "openai",
        "model": daemon.model,
        "apiBase": daemon.openai_url,
        "apiKey": daemon.token,
    }
    head = {"name": "byok", "version": "1.0.0", "schema": "v1"}
    return (
        *(Setting((name,), value) for name, value in head.items() if not text.strip()),
        Setting(("models", "name=byok"), model),
    )
