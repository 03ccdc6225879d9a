"""Answer with ripgrep where another process has the index open."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from byok.code_query import DEFAULT_LENGTH
from byok.index.files.ignore import Rules
from byok.retrieval.ripgrep import Ripgrep

_WHY = (
    "Another byok process has the index open, so this is a plain text search; ask "
    "again later for better results.\n"
)


class TextSearch:
    """Searches folders with ripgrep, by the ignore rules of workspaces."""

    def __init__(self, ripgrep: Ripgrep, rules_of: Callable[[Path], Rules]) -> None:
        self._ripgrep = ripgrep
        self._rules_of = rules_of

    async def answer(self, question: str, roots: Sequence[Path]) -> str:
        """Return the answer to a question about these folders."""
        share = (DEFAULT_LENGTH - len(_WHY)) // len(roots)
        answers = [
            await self._ripgrep.answer(
                root,
                question,
                partial(_is_open, self._rules_of(root)),
                share,
                prefix=f"{root.name}/" if len(roots) > 1 else "",
            )
            for root in roots
        ]
        return "\n".join([*answers, _WHY])[:DEFAULT_LENGTH]


def _is_open(rules: Rules, path: str) -> bool:
    return rules.reason(path) is None
