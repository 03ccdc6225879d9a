"""byok init: from an installed byok to an editor that uses it."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.asker import find_asker
from byok.cli.command_context import UpstreamOption, load
from byok.cli.confirm import YesOption
from byok.cli.output import tell

if TYPE_CHECKING:
    from byok.cli.asker import Asker
    from byok.config import Settings
    from byok.keys import KeyLadder
    from byok.platform.paths import Paths
    from byok.setup.candidate import Candidate


def init(
    upstream: UpstreamOption = "",
    yes: YesOption = False,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Do not wait for the editor's first request."),
    ] = False,
) -> None:
    """Set up byok: find models and keys, write the settings, start, connect an editor.

    It lists local servers and keys for you to choose from, picks a model for each
    purpose, and only adds lines to the settings file. Every step asks first and can be
    repeated; --yes uses the best that it finds. Without a terminal, --upstream is
    required unless there is only one.
    """
    from byok.cli.init_client import last_request, offer_editors, wait_for_first
    from byok.cli.init_daemon import can_install_service, run_daemon

    settings, paths = load()
    asker = find_asker("byok init --yes --upstream NAME", yes=yes)
    after = last_request(paths)
    name = _settle(upstream, settings, paths, asker)
    port, can_install = settings.server.port, can_install_service
    daemon = run_daemon(paths, port, name, asker, can_install=can_install)
    if daemon is None:
        return
    is_connected = offer_editors(paths, f"http://127.0.0.1:{daemon.port}", asker)
    tell("Watch it at work in your browser: byok dashboard")
    if no_wait or not sys.stdin.isatty():
        return
    if is_connected:
        from byok.features.journal.settings import JournalSettings

        wait_for_first(paths, after, settings.section(JournalSettings).keep_days)
    else:
        tell("No editor is connected yet. byok runs, and waits for one.")


def _settle(wanted: str, settings: "Settings", paths: "Paths", asker: "Asker") -> str:
    """Let the user choose, and write it into the settings; return the upstream."""
    from byok.cli.init_key import find_models
    from byok.cli.init_settings import choose_and_show, write_settings
    from byok.cli.key_store import open_vault
    from byok.keys import KeyLadder
    from byok.keys.keyring_store import KeyringStore

    vault = open_vault(paths)
    if asker.is_person:
        vault.open()  # before many things are looked up at once
    ladder = KeyLadder(vault=vault)
    candidate = _choose(wanted, settings, ladder, asker)
    models = find_models(candidate, settings, ladder, KeyringStore(), asker, vault)
    write_settings(candidate, choose_and_show(candidate, models), paths, asker)
    return candidate.name


def _choose(
    wanted: str, settings: "Settings", ladder: "KeyLadder", asker: "Asker"
) -> "Candidate":
    """Return the upstream to use; nothing is looked for if `wanted` names it."""
    import asyncio

    from byok.cli.init_upstream import choose_candidate, show_candidates
    from byok.setup.survey import survey

    if wanted:
        return choose_candidate([], wanted, settings, ladder, asker)
    candidates = asyncio.run(survey(settings, ladder))
    show_candidates(candidates)
    return choose_candidate(candidates, wanted, settings, ladder, asker)
