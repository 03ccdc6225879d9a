"""A home in which byok has worked for two weeks: a journal, a project, settings.

All of it follows from a seed and a time, so that pictures change only with the page.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

from byok.core.platform.paths import Paths
from byok.features.journal.entry import JournalEntry
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.project import FILES, make_project

DAY = 86_400.0
_DAYS = 14
_TOOLS = ("view", "grep", "edit-file", "run-tests", "codebase-search", "save-file")


class _Model(NamedTuple):
    """A model that was asked: US dollars for a million tokens in, out and cached."""

    upstream: str
    name: str
    prices: tuple[float, float, float]
    speed: float  # tokens of the answer a second
    cached: float  # how much of a prompt its cache knows; 0 where nobody tells
    window: int


_FREE = (0.0, 0.0, 0.0)
_CHAT = (
    _Model(
        "openrouter", "anthropic/claude-sonnet-4.5", (3.0, 15.0, 0.3), 70, 0.85, 200_000
    ),
    _Model("deepseek", "deepseek-chat", (0.28, 0.42, 0.028), 45, 0.6, 131_072),
    _Model("ollama", "qwen3-coder:30b", _FREE, 35, 0.0, 65_536),
)
UPSTREAMS = {model.upstream: model.name for model in _CHAT}
# Where keys are looked for.
ENVIRON = {"BYOK_KEY_OPENROUTER": "sk-or-made-up", "BYOK_KEY_DEEPSEEK": "sk-made-up"}
_FORGOTTEN = 7  # a turn before which the cache forgets the prompt
_COMPLETION = _Model("ollama", "qwen2.5-coder:7b", _FREE, 80, 0.0, 32_768)
_FOLDERS = ("bakery", "till", "recipes")
_CLIENTS = ("vscode/0.600.1", "vscode/0.600.1", "intellij/0.300.2", "auggie/0.9.0")
_ERRORS = (
    ("upstream_rate_limit", "UpstreamUnreachable"),
    ("upstream_timeout", "UpstreamUnreachable"),
    ("context_length", "UpstreamRefused"),
)


def history(now: float) -> list[JournalEntry]:
    """Return two weeks of requests that end at `now`, the oldest first."""
    source = Random(7)
    found = [
        request
        for day in reversed(range(_DAYS))
        for request in _requests_of(source, now, day)
    ]
    found += [_refuse(now - minutes * 60) for minutes in (41, 26, 25)]
    return sorted(found, key=lambda request: request.started)


def _refuse(started: float) -> JournalEntry:
    """Return a request of somebody who has no credit left."""
    return entry(
        request_id=f"{int(started):012x}",
        started=started,
        conversation="0c0ffee0c0ffee00",
        folder=_FOLDERS[0],
        upstream=_CHAT[1].upstream,
        model=_CHAT[1].name,
        outcome="failed",
        error="upstream_quota",
        error_class="UpstreamRefused",
        cost=0.0,
        **dict.fromkeys(("first_byte", "input_tokens", "output_tokens")),
        cache_read_tokens=None,
        seconds=0.4,
    )


def furnish(paths: Paths, urls: Mapping[str, str], now: float, *roots: Path) -> None:
    """Fill a home that is empty: settings with `UPSTREAMS` at `urls`, and a journal.

    Each of them must be an OpenAI-compatible server. `roots` are workspaces.
    """
    paths.journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_journal(paths.journal, history(now))
    _write_settings(paths.config, urls, *roots)


def _requests_of(source: Random, now: float, day: int) -> Iterator[JournalEntry]:
    weekend = day % 7 in (2, 3)
    for number in range(source.randint(0, 1) if weekend else source.randint(3, 5)):
        begun = now - day * DAY - source.uniform(0.05, 0.28) * DAY
        model = source.choices(_CHAT, (6, 3, 2))[0]
        client = source.choice(_CLIENTS)
        name = f"{source.getrandbits(64):016x}-{day}-{number}"
        for turn in _turns(source, begun, model, client, name):
            yield turn._replace(folder=_FOLDERS[(day + number) % len(_FOLDERS)])
    for _ in range(0 if weekend else source.randint(4, 9)):
        begun = now - day * DAY - source.uniform(0.05, 0.28) * DAY
        yield _request(source, begun, _COMPLETION, "vscode/0.600.1", "", 900)


def _turns(
    source: Random, begun: float, model: _Model, client: str, conversation: str
) -> Iterator[JournalEntry]:
    size, time = source.randint(4_000, 12_000), begun
    for number in range(source.randint(3, 12)):
        turn = _request(source, time, model, client, conversation, size)
        if number == _FORGOTTEN and any(model.prices) and turn.outcome == "ok":
            cost = _cost(model, size, turn.output_tokens or 0, 0)
            turn = turn._replace(cache_read_tokens=0, cost=cost)
        yield turn
        size += source.randint(800, 4_000)
        time = turn.started + turn.seconds + source.uniform(1, 40)
        if number + 1 == _FORGOTTEN:
            time += 9 * 60


def _request(
    source: Random,
    begun: float,
    model: _Model,
    client: str,
    conversation: str,
    size: int,
) -> JournalEntry:
    answer = source.randint(60, 900) if conversation else source.randint(8, 60)
    first = source.uniform(0.3, 1.6) if conversation else source.uniform(0.08, 0.3)
    cached = int(size * model.cached * source.uniform(0.5, 1))
    tools = source.choices(_TOOLS, k=source.randint(0, 3)) if conversation else []
    made = entry(
        request_id=f"{source.getrandbits(48):012x}",
        started=begun,
        seconds=first + answer / model.speed,
        client=client,
        conversation=conversation,
        endpoint="/chat-stream" if conversation else "/completion",
        purpose="chat" if conversation else "completion",
        model_asked=model.name,
        model=model.name,
        upstream=model.upstream,
        first_byte=first,
        input_tokens=size,
        output_tokens=answer,
        cache_read_tokens=cached if model.cached else None,
        cache_written_tokens=0 if model.cached else None,
        cost=_cost(model, size - cached, answer, cached),
        repairs=int(source.random() < 0.06),
        tool_calls=", ".join(tools),
    )
    return _spoil(source, made) if source.random() < 0.04 else made


def _cost(model: _Model, new: int, answer: int, cached: int) -> float:
    paid = zip((new, answer, cached), model.prices, strict=True)
    return sum(tokens * price for tokens, price in paid) / 1e6


def _spoil(source: Random, made: JournalEntry) -> JournalEntry:
    code, kind = source.choice(_ERRORS)
    return made._replace(
        outcome="failed",
        error=code,
        error_class=kind,
        attempts=3,
        retried=code,
        output_tokens=0,
        tool_calls="",
        cost=None if made.cost and kind != "UpstreamRefused" else 0.0,
    )


PROJECT = {
    **FILES,
    "bakery/__init__.py": '"""The bakery."""\n',
    "bakery/orders.ts": (
        "export interface Order { id: number; loaves: number }\n\n"
        "// Return how many loaves the oven must bake today.\n"
        "export function loavesToBake(orders: Order[]): number {\n"
        "  return orders.reduce((sum, order) => sum + order.loaves, 0);\n}\n"
    ),
    "tests/test_oven.py": (
        "from bakery.oven import ConvectionOven\n\n\n"
        "def test_a_cold_oven_bakes_nothing() -> None:\n"
        "    oven = ConvectionOven()\n    oven.preheat(20)\n"
    ),
}


def make_bakery(root: Path) -> Path:
    """Write a project of a few files; one is a secret, one ignored, one binary."""
    make_project(root, PROJECT)
    (root / "logo.bin").write_bytes(bytes(range(256)) * 8)
    return root


def _write_settings(path: Path, urls: Mapping[str, str], *roots: Path) -> None:
    folders = [str(folder) for folder in roots]
    lines = ["# My models.", f"context.workspaces = {folders}"]
    for model in _CHAT:
        lines += ["", f"[upstreams.{model.upstream}]", 'dialect = "openai_chat"']
        lines += [f'base_url = "{urls[model.upstream]}"', f'model = "{model.name}"']
        lines += [f'[upstreams.{model.upstream}.facts."{model.name}"]']
        lines += [f"window = {model.window}"]
        names = ("price_input", "price_output", "price_cache_read")
        pairs = zip(names, model.prices, strict=True)
        lines += [f"{name} = {price}" for name, price in pairs]
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    path.chmod(0o600)
