"""The clients that `byok connect` knows."""

from enum import StrEnum


class ClientKind(StrEnum):
    """The clients that byok prints or writes settings for."""

    VSCODE = "vscode"
    VSCODE_INSIDERS = "vscode-insiders"
    VSCODIUM = "vscodium"
    CURSOR = "cursor"
    JETBRAINS = "jetbrains"
    CLI = "cli"
    SDK = "sdk"
    CODEX = "codex"
    OPENCODE = "opencode"
    AIDER = "aider"
    CONTINUE = "continue"

    @property
    def readable_name(self) -> str:
        """The name for people."""
        return _NAMES[self]

    @property
    def is_editor(self) -> bool:
        """Whether it is VS Code, or an editor that is made from it."""
        return self in EDITORS_LIKE_VSCODE


EDITORS_LIKE_VSCODE = frozenset(
    {
        ClientKind.VSCODE,
        ClientKind.VSCODE_INSIDERS,
        ClientKind.VSCODIUM,
        ClientKind.CURSOR,
    }
)
_NAMES = {
    ClientKind.VSCODE: "VS Code",
    ClientKind.VSCODE_INSIDERS: "VS Code Insiders",
    ClientKind.VSCODIUM: "VSCodium",
    ClientKind.CURSOR: "Cursor",
    ClientKind.JETBRAINS: "the JetBrains plugin",
    ClientKind.CLI: "the CLI",
    ClientKind.SDK: "the SDKs",
    ClientKind.CODEX: "Codex",
    ClientKind.OPENCODE: "opencode",
    ClientKind.AIDER: "aider",
    ClientKind.CONTINUE: "Continue",
}
