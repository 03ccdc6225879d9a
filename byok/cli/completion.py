"""Shell completion: what the shell offers for each kind of value, and the answer to it.

It must come at once and may fail without a word, so it reads byok's small files itself:
no settings are validated, nothing is asked over a network. Models are those of the
settings and of the lists that the daemon keeps in a file.
"""

import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from byok.core.late import late_function
from byok.core.platform.paths import find_paths

VARIABLE = "_BYOK_COMPLETE"
_SERVICES = ("official", "search-server", "web-search", "team-index", "team-index/salt")
_UPSTREAM_VARIABLE = re.compile(r"BYOK_UPSTREAMS__([A-Z0-9_-]+?)__", re.IGNORECASE)
_UPSTREAM = "upstreams.name"  # in the example
_SECTION = re.compile(r"#?\[([a-z_.]+)\]")
_BACKSLASH = r"\\" if sys.platform == "win32" else ""  # of paths
_WORD = re.compile(rf"[\w@%+=:,./~{_BACKSLASH}-]+")
_KEY = re.compile(r"#?([a-z_-]+) = ")


def answer_shell(run: Callable[[], object]) -> NoReturn:
    """Run the command line as the shell asks it to complete a word, and end.

    If it fails, nothing is printed: it would stand in the user's command.
    """
    said, code, cut = io.StringIO(), 1, 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        try:
            if os.environ[VARIABLE] == "complete_bash":
                cut = _join_words()
            run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    for line in said.getvalue().splitlines():
        sys.stdout.write(f"{line[cut:]}\n")
    sys.stdout.flush()
    sys.exit(code)


def _join_words() -> int:
    """Join what bash cuts at ":" and "=", such as --model=qwen3-coder:30b.

    Returns how many characters of the value bash has already; it replaces the rest.
    """
    words = shlex.split(os.environ["COMP_WORDS"])
    at = int(os.environ["COMP_CWORD"])
    words = [*words[: at + 1], *([""] if len(words) <= at else [])]
    joined: list[str] = []
    for word in words:
        if joined and (word in (":", "=") or joined[-1].endswith((":", "="))):
            joined[-1] += word
        else:
            joined.append(word)
    os.environ["COMP_WORDS"] = shlex.join(joined)
    os.environ["COMP_CWORD"] = str(len(joined) - 1)
    return joined[-1].rpartition("=")[2].rfind(":") + 1


def complete_upstream(begun: str) -> list[str]:
    """Offer the upstreams of the settings, and the presets."""
    from byok.dialects.presets import DEMO, PRESETS

    return _begin_with(begun, (*_upstreams(_settings()), *PRESETS, DEMO))


def complete_key_name(begun: str) -> list[str]:
    """Offer the names that keys are stored for."""
    from byok.dialects.presets import PRESETS

    upstreams = _upstreams(_settings())
    named = (
        f"{name}/{key}"
        for name, section in upstreams.items()
        for key in _texts(section.get("key_names"))
    )
    vendors = (name for name, preset in PRESETS.items() if preset.key_env)
    return _begin_with(begun, (*upstreams, *named, *vendors, *_SERVICES))


def complete_model(begun: str) -> list[str]:
    """Offer the aliases and the models that are known, or their ids behind `byok:`."""
    settings = _settings()
    models = _models(settings)
    if begun.startswith("byok:"):
        return _begin_with(begun, (f"byok:{up}:{model}" for up, model in models))
    aliases = _table(_table(settings, "routing"), "aliases")
    return _begin_with(begun, (*aliases, *(model for _, model in models)))


def complete_target(begun: str) -> list[str]:
    """Offer upstreams, and the models of one once it is named: UPSTREAM/MODEL."""
    if begun.startswith("byok:"):
        return complete_model(begun)
    names = complete_upstream(begun)
    if "/" not in begun and begun not in names:
        return names
    targets = (f"{up}/{model}" for up, model in _models(_settings()))
    return [*names, *_begin_with(begun, targets)]


def complete_workspace(begun: str) -> list[str]:
    """Offer the folders that are indexed; the shell itself completes others."""
    from byok.search.index.store.workspaces import roots_in

    return _begin_with(begun, map(str, roots_in(find_paths().database)))


def complete_setting(begun: str) -> list[str]:
    """Offer the sections and settings, by what the example of the settings has."""
    from byok.settings.example_file import example

    names, sections = [], list[str]()
    for line in example().splitlines():
        if found := _SECTION.fullmatch(line):
            sections = [found[1]]
            if found[1] == _UPSTREAM:
                sections = [f"upstreams.{own}" for own in _upstreams(_settings())]
            names += sections
        elif line.startswith("#["):
            sections = []
        elif found := _KEY.match(line):
            names += [f"{section}.{found[1]}" for section in sections]
    return _begin_with(begun, names)


def _offer(source: str) -> Callable[[str], list[str]]:
    """Return what offers the names that a function gives, which is imported then."""

    def complete(begun: str) -> list[str]:
        return _begin_with(begun, sorted(late_function(source)()))

    return complete


complete_code = _offer("byok.core.error_table:error_rows")
complete_prompt = _offer("byok.core.prompts.prompt_set:shipped_texts")
complete_extra = _offer("byok.core.platform.installation:list_extras")


def _begin_with(begun: str, names: Iterable[str]) -> list[str]:
    """Return the names that complete a word, each once.

    Models are named by whoever lists them. Zsh evaluates what it is offered, and bash
    puts it into the command as it is: so names that a shell would read as more than a
    word are left out.
    """
    fit = (name for name in dict.fromkeys(names) if _WORD.fullmatch(name))
    return [name for name in fit if name.startswith(begun)]


def _settings() -> Mapping[str, Any]:
    """Return what the settings file says, as far as it can be read at all."""
    import tomllib

    try:
        return tomllib.loads(find_paths().config.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}


def _table(around: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = around.get(name)
    return table if isinstance(table, dict) else {}


def _texts(given: object) -> list[str]:
    rows = given if isinstance(given, list) else []
    return [text for text in rows if isinstance(text, str)]


def _upstreams(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the sections of upstreams, also those that variables make."""
    sections = _table(settings, "upstreams")
    found = {name: _table(sections, name) for name in sections}
    for variable in os.environ:
        if match := _UPSTREAM_VARIABLE.match(variable):
            found.setdefault(match[1].lower(), {})
    return found


def _models(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the known models, each with its upstream: of the settings, then listed."""
    import orjson

    found: list[tuple[str, str]] = []
    for name, section in _upstreams(settings).items():
        own = [section.get("model"), *_texts(section.get("models"))]
        found += [(name, model) for model in own if isinstance(model, str) and model]
    try:
        lists = orjson.loads(find_paths().models.read_bytes())
    except (OSError, ValueError):
        return found
    for key, models in lists.items() if isinstance(lists, dict) else ():
        for row in models if isinstance(models, list) else ():
            model = row.get("id") if isinstance(row, dict) else row
            if isinstance(model, str):
                found.append((key.partition("@")[0], model))
    return found
