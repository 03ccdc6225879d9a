"""byok init: show which upstreams there are, and let the user choose one."""

from collections.abc import Sequence

from byok.cli.asker import Asker
from byok.cli.output import say_table, tell
from byok.config import Settings
from byok.errors import ConfigError
from byok.keys import KeyLadder
from byok.setup.candidate import Candidate, FoundBy, best_candidate
from byok.setup.survey import find_source
from byok.urls import is_loopback

_NOTHING = (
    "No model server runs on this machine, and no key was found. You can start Ollama, "
    "LM Studio, llama.cpp or vLLM and try again; or name a vendor whose key you have, "
    "such as openrouter; or try byok without a model: demo."
)
_NO_CHOICE = "There is no upstream that could be used."


def show_candidates(candidates: Sequence[Candidate]) -> None:
    """Print what was found, with the numbers by which it can be chosen."""
    if not candidates:
        tell(_NOTHING)
        return
    rows = [
        (str(number), one.name, one.found_by.value, one.address, one.detail)
        for number, one in enumerate(candidates, 1)
    ]
    say_table("", "upstream", "found", "address", "", rows=rows, right=("",))


def choose_candidate(
    candidates: Sequence[Candidate],
    wanted: str,
    settings: Settings,
    ladder: KeyLadder,
    asker: Asker,
) -> Candidate:
    """Return the upstream of `--upstream`, or the one that the user chooses.

    Raises:
        ConfigError: it is unknown, or nobody can be asked and the choice is not clear.
    """
    if wanted:
        return _find_by_name(wanted, candidates, settings, ladder)
    best = best_candidate(candidates)
    if asker.is_person:
        return _ask(candidates, best, settings, ladder, asker)
    usable = [one for one in candidates if one.is_offered and not one.trouble]
    if best is None or not (len(usable) == 1 or asker.takes_best):
        names = ", ".join(one.name for one in usable)
        found = f"Several upstreams could be used: {names}." if names else _NO_CHOICE
        raise ConfigError(found, hint="Name one: byok init --upstream NAME")
    return best


def _ask(
    candidates: Sequence[Candidate],
    best: Candidate | None,
    settings: Settings,
    ladder: KeyLadder,
    asker: Asker,
) -> Candidate:
    default = str(candidates.index(best) + 1) if best else ""
    while True:
        answer = asker.text("Which one? A number, another name, or a URL", default)
        if answer.isdecimal() and 0 < int(answer[:4]) <= len(candidates):
            return candidates[int(answer[:4]) - 1]
        try:
            return _find_by_name(answer, candidates, settings, ladder)
        except ConfigError as error:
            tell(f"{error} {error.hint}")


def _find_by_name(
    wanted: str, candidates: Sequence[Candidate], settings: Settings, ladder: KeyLadder
) -> Candidate:
    from byok.config import upstream_named
    from byok.wiring.apis import base_url_of

    for one in candidates:
        if one.name == wanted:
            return one
    name, section = upstream_named(wanted, settings)
    known = settings.upstreams.get(name)
    if known is not None and known != section:
        raise ConfigError(
            f"The settings have another upstream that is called {name}.",
            hint="Give that one a name of its own in your settings (byok config path).",
        )
    address, source = base_url_of(section), ""
    if address and not is_loopback(address):
        source, _ = find_source(name, section, ladder)
    return Candidate(name, section, address, FoundBy.NAME, key_source=source)
