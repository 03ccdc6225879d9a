"""byok init: show the models and what is added to the settings, ask, and write it."""

from collections.abc import Sequence
from pathlib import Path

import typer

from byok.cli.asker import Asker
from byok.cli.output import say, say_table, tell
from byok.dialects.model_facts import ModelFacts
from byok.dialects.presets import OLLAMA, SUGGESTED_MODEL, find_preset
from byok.platform.paths import Paths
from byok.setup.candidate import Candidate
from byok.setup.model_choice import ChosenModel, choose_models


def choose_and_show(
    candidate: Candidate, models: Sequence[ModelFacts]
) -> list[ChosenModel]:
    """Return a model for each purpose, after a table that says why."""
    vendor = find_preset(candidate.section.type, candidate.address)
    chosen = choose_models(vendor, models)
    if chosen:
        rows = [(c.purpose, c.model or "-", c.reason) for c in chosen]
        say_table("for", "model", "why", rows=rows)
    else:
        tell(f"{candidate.name} lists no models, so none is chosen.")
        if vendor == OLLAMA:
            tell(f"Get one, then run byok init again: ollama pull {SUGGESTED_MODEL}")
    return chosen


def write_settings(
    candidate: Candidate, chosen: Sequence[ChosenModel], paths: Paths, asker: Asker
) -> bool:
    """Add what is missing to the settings file; return whether anything changed.

    Raises:
        ConfigError: the file cannot be extended, or there is nobody to ask.
        typer.Exit: the user does not want it.
    """
    from byok.client_settings.preview import preview_change
    from byok.config.own_file import read_own_settings, write_own_settings
    from byok.redact import Redactor
    from byok.setup.settings_plan import plan_settings

    file = read_own_settings(paths.config, Path.home())
    plan = plan_settings(file.raw, candidate.name, candidate.section, chosen)
    if plan.kept:
        names = ", ".join(".".join(path) for path in plan.kept)
        tell(f"Your settings say otherwise, and stay: {names}")
    if not plan.is_needed:
        say(f"{file.path} needs no change.")
        return False
    for line in preview_change(str(file.path), file.raw, plan.after, Redactor()):
        say(line)
    is_new = file.raw is None and not asker.is_person
    if not (is_new or asker.confirm(f"Write {file.path}?")):
        tell("Nothing was written.")
        raise typer.Exit(1)
    saved = write_own_settings(paths, file, plan.after)
    say(f"Wrote {file.path}." + (f" The former file is {saved}." if saved else ""))
    return True
