"""User-Agent headers become a family and a version."""

import pytest

from byok.server.http.guard import client_of


@pytest.mark.parametrize(
    ("header", "client"),
    [
        (
            "Augment.vscode-augment/0.600.1 (linux; x64; 6.1) vscode/1.99.0",
            "vscode/0.600.1",
        ),
        ("Augment.vscode-augment/0.600.1-beta (x) cursor/1.0", "vscode/0.600.1-beta"),
        ("augment.intellij/0.300.0 (linux) IntelliJ IDEA/2026.1", "intellij/0.300.0"),
        ("augment.cli/0.9.2 (commit abc)/interactive", "cli/0.9.2"),
        ("augment.sdk.context/0.1.10 (python)", "sdk/0.1.10"),
        ("AsyncOpenAI/Python 2.0.1", "openai-python/2.0.1"),
        ("OpenAI/JS 5.1.0", "openai-js/5.1.0"),
        ("Python/3.11 aiohttp/3.14", "other"),
        ("augment.cli/" + "9" * 100, "cli/" + "9" * 32),
        ("augment.cli/../../etc", "other"),
        ("my secret augment.cli/1", "other"),
        ("", ""),
    ],
)
def test_user_agent_is_shown_as_family_and_version(header: str, client: str) -> None:
    assert client_of(header) == client
