"""Shell completion: the candidates for each kind of value, and the answer to the shell.

It must be fast and may fail silently, so it reads byok's small files itself: it
validates no settings and sends no request. Models come from the settings and from the
lists that the daemon stores in a file.
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
_UPSTREAM = "upstreams.name"  # a section of the example file
_SECTION = re.compile(r"#?\[([a-z_.]+)\]")
_BACKSLASH = r"\\" if sys.platform == "win32" else ""  # separates folders there
_WORD = re.compile(rf"[\w@%+=:,./~{_BACKSLASH}-]+")
_KEY = re.compile(r"#?([a-z_-]+) = ")


def answer_shell(run: Callable[[], object]) -> NoReturn:
    """Let `run` complete a word for the shell, print its answer, and exit.

    If it fails, nothing is printed: the text would become part of the user's command.
    """
    output, code, cut = io.StringIO(), 1, 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        try:
            if os.environ[VARIABLE] == "complete_bash":
                cut = _join_words()
            run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    for line in output.getvalue().splitlines():
        sys.stdout.write(f"{line[cut:]}\n")
    sys.stdout.flush()
    sys.exit(code)


def _join_words() -> int:
    """Join the words that bash splits at ":" and "=", as in --model=qwen3-coder:30b.

    Return how many characters of the value bash keeps; it replaces only the remainder.
    """
    words = shlex.split(os.environ["COMP_WORDS"])
    current = int(os.environ["COMP_CWORD"])
    words = [*words[: current + 1], *([""] if len(words) <= current else [])]
    joined: list[str] = []
    for word in words:
        if joined and (word in (":", "=") or joined[-1].endswith((":", "="))):
            joined[-1] += word
        else:
            joined.append(word)
    os.environ["COMP_WORDS"] = shlex.join(joined)
    os.environ["COMP_CWORD"] = str(len(joined) - 1)
    return joined[-1].rpartition("=")[2].rfind(":") + 1


def complete_upstream(prefix: str) -> list[str]:
    """Offer the upstreams of the settings, and the presets."""
    from byok.dialects.presets import DEMO, PRESETS

    return _matching(prefix, (*_upstreams(_settings()), *PRESETS, DEMO))


def complete_key_name(prefix: str) -> list[str]:
    """Offer the names that keys are stored for."""
    from byok.dialects.presets import PRESETS

    upstreams = _upstreams(_settings())
    key_names = (
        f"{name}/{key}"
        for name, section in upstreams.items()
        for key in _texts(section.get("key_names"))
    )
    vendors = (name for name, preset in PRESETS.items() if preset.key_env)
    return _matching(prefix, (*upstreams, *key_names, *vendors, *_SERVICES))


def complete_model(prefix: str) -> list[str]:
    """Offer the aliases and the models that are known, or their ids behind `byok:`."""
    settings = _settings()
    models = _models(settings)
    if prefix.startswith("byok:"):
        return _matching(prefix, (f"byok:{up}:{model}" for up, model in models))
    aliases = _table(_table(settings, "routing"), "aliases")
    return _matching(prefix, (*aliases, *(model for _, model in models)))


def complete_target(prefix: str) -> list[str]:
    """Offer upstreams, and the models of one once it is named: UPSTREAM/MODEL."""
    if prefix.startswith("byok:"):
        return complete_model(prefix)
    names = complete_upstream(prefix)
    if "/" not in prefix and prefix not in names:
        return names
    targets = (f"{up}/{model}" for up, model in _models(_settings()))
    return [*names, *_matching(prefix, targets)]


def complete_workspace(prefix: str) -> list[str]:
    """Offer the folders that are indexed; the shell itself completes others."""
    from byok.search.index.store.workspaces import roots_in

    return _matching(prefix, map(str, roots_in(find_paths().database)))


def complete_setting(prefix: str) -> list[str]:
    """Offer the sections and settings of the example file."""
    from byok.settings.example_file import read_template

    names, sections = [], list[str]()
    for line in read_template().splitlines():
        if match := _SECTION.fullmatch(line):
            sections = [match[1]]
            if match[1] == _UPSTREAM:
                sections = [f"upstreams.{name}" for name in _upstreams(_settings())]
            names += sections
        elif line.startswith("#["):
            sections = []
        elif match := _KEY.match(line):
            names += [f"{section}.{match[1]}" for section in sections]
    return _matching(prefix, names)


def _complete_from(source: str) -> Callable[[str], list[str]]:
    """Return a completion by the names of a function, imported at the first call."""

    def complete(prefix: str) -> list[str]:
        return _matching(prefix, sorted(late_function(source)()))

    return complete


complete_code = _complete_from("byok.core.error_table:error_rows")
complete_prompt = _complete_from("byok.core.prompts.prompt_set:shipped_texts")
complete_extra = _complete_from("byok.core.platform.installation:list_extras")


def _matching(prefix: str, names: Iterable[str]) -> list[str]:
    """Return the names that start with a prefix, without duplicates.

    Names of models come from servers. Zsh evaluates candidates, and bash inserts them
    unquoted: so names that a shell would not read as a single word are left out.
    """
    safe = (name for name in dict.fromkeys(names) if _WORD.fullmatch(name))
    return [name for name in safe if name.startswith(prefix)]


def _settings() -> Mapping[str, Any]:
    """Return the settings file without validation; {} if it cannot be read."""
    import tomllib

    try:
        return tomllib.loads(find_paths().config.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}


def _table(section: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = section.get(name)
    return table if isinstance(table, dict) else {}


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list) else []
    return [text for text in items if isinstance(text, str)]


def _upstreams(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the sections of upstreams, also those that variables set."""
    sections = _table(settings, "upstreams")
    upstreams = {name: _table(sections, name) for name in sections}
    for variable in os.environ:
        if match := _UPSTREAM_VARIABLE.match(variable):
            upstreams.setdefault(match[1].lower(), {})
    return upstreams


def _models(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (upstream, model) pairs: those of the settings, then the listed ones."""
    import orjson

    pairs: list[tuple[str, str]] = []
    for name, section in _upstreams(settings).items():
        names = [section.get("model"), *_texts(section.get("models"))]
        pairs += [(name, model) for model in names if isinstance(model, str) and model]
    try:
        lists = orjson.loads(find_paths().models.read_bytes())
    except (OSError, ValueError):
        return pairs
    for key, models in lists.items() if isinstance(lists, dict) else ():
        for row in models if isinstance(models, list) else ():
            model = row.get("id") if isinstance(row, dict) else row
            if isinstance(model, str):
                pairs.append((key.partition("@")[0], model))
    return pairs
