"""The first request of a client, by the journal."""

from pathlib import Path

import pytest

from byok.setup.first_request import describe_client, wait_for_clients
from tests.fakes.journal_entries import entry, write_journal


def test_only_requests_after_the_number_are_given(tmp_path: Path) -> None:
    journal = write_journal(
        tmp_path / "journal.db", [entry(client="cli/1"), entry(client="vscode/2")]
    )
    assert next(wait_for_clients(journal, 1)).client == "vscode/2"


def test_a_request_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            write_journal(journal, [entry(client="sdk/3", endpoint="/get-models")])

    found = next(wait_for_clients(journal, 0, pause=pause))
    assert (found.client, len(pauses)) == ("sdk/3", 3)


def test_a_journal_that_was_begun_anew_is_read_from_its_start(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "journal.db", [entry(client="cli/1")])
    assert next(wait_for_clients(journal, 99)).client == "cli/1"


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("vscode/0.600.1", "VS Code (extension 0.600.1)"),
        ("intellij/0.3", "A JetBrains IDE (plugin 0.3)"),
        ("cli/1.2", "The CLI 1.2"),
        ("sdk/0.1.15", "The SDK 0.1.15"),
        ("openai-js/4.1", "openai-js/4.1"),
        ("other", "A client"),
        ("", "A client"),
    ],
)
def test_a_client_is_named_for_people(client: str, words: str) -> None:
    assert describe_client(client) == words
