"""Says what is wrong with the user's own prompts: file, line, and what to do."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import NamedTuple

from byok.escapes import escape
from byok.prompts.kinds import (
    FAMILIES,
    FAMILY,
    KINDS,
    SHIPPED,
    TOOL,
    VARIANTS,
    PromptKind,
)
from byok.prompts.template import Choice, Slot, Template, TemplateError, parse_template

LARGEST = 64 * 1024  # bytes of a file
_MOST_PROBLEMS = 20  # of a file
_MOST_TIMES = 10  # that a slot may stand in a file
_LONGEST = 60  # characters of a name that are told


class PromptProblem(NamedTuple):
    """What is wrong; `line` is 0 where it is the file as a whole."""

    file: str
    line: int
    problem: str
    cure: str

    def __str__(self) -> str:
        """Return one line; what of a file would not be seen is escaped."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return escape(f"{place}: {self.problem}. {self.cure}")


def check_name(name: str) -> PromptProblem | None:
    """Check the name of a file without `.md`."""
    kind, point, variant = name.partition(".")
    end = f".{variant}" if variant in VARIANTS else ""
    if name in VARIANTS:
        cure = f"Say of which prompt: {next(iter(KINDS))}.{name}, for example."
        return PromptProblem(f"{name}.md", 0, "this is a variant", cure)
    if kind not in KINDS:
        cure = _suggest(kind, {one: one + end for one in KINDS})
        return PromptProblem(f"{name}.md", 0, "no prompt has this name", cure)
    if point and variant not in VARIANTS:
        cure = _suggest(variant, {one: f"{kind}.{one}" for one in VARIANTS})
        return PromptProblem(f"{name}.md", 0, "there is no such variant", cure)
    return None


def read_prompt(name: str, text: str) -> Template | list[PromptProblem]:
    """Parse the text of a prompt; return what is wrong instead, if anything is."""
    file = f"{name}.md"
    try:
        template = parse_template(text)
    except TemplateError as error:
        return [PromptProblem(file, error.line, error.problem, error.cure)]
    kind = KINDS[name.partition(".")[0]]
    found = chain(_unknown(file, template, kind), _endless_slots(file, template))
    return [*islice(found, _MOST_PROBLEMS)] or template


def _endless_slots(file: str, template: Template) -> Iterator[PromptProblem]:
    """Give each slot that would make an endless text of a short one."""
    slots = [part for part in template.walk() if isinstance(part, Slot)]
    for name, times in Counter(slot.name for slot in slots).items():
        if times > _MOST_TIMES:
            line = next(slot.line for slot in slots if slot.name == name)
            problem = f"{{{{{name}}}}} stands there {times:,} times"
            cure = f"Use it at most {_MOST_TIMES} times."
            yield PromptProblem(file, line, problem, cure)


def _unknown(
    file: str, template: Template, kind: PromptKind
) -> Iterator[PromptProblem]:
    slots = _same(sorted({*kind.slots, SHIPPED}))
    tools = [f"{TOOL}NAME"] if kind.tools else []
    families = [f"{FAMILY}{family}" for family in FAMILIES]
    conditions = _same([*sorted(kind.conditions), *tools, *families])
    for part in template.walk():
        match part:
            case Slot(name, line, _) if name not in slots:
                problem = f"{{{{{name[:_LONGEST]}}}}} is no slot"
                yield PromptProblem(file, line, problem, _suggest(name, slots))
            case Choice(name, _, line) if not _is_condition(name, kind):
                problem = f"{name[:_LONGEST]} is no condition"
                yield PromptProblem(file, line, problem, _suggest(name, conditions))


def _is_condition(condition: str, kind: PromptKind) -> bool:
    if condition.startswith(TOOL):
        return kind.tools
    if condition.startswith(FAMILY):
        return {*condition.removeprefix(FAMILY).split("|")} <= {*FAMILIES}
    return condition in kind.conditions


def _suggest(name: str, known: Mapping[str, str]) -> str:
    """Return the cure of a name; `known` tells for each name how it is typed."""
    near = difflib.get_close_matches(name[:_LONGEST].lower(), known, 1)
    if near:
        return f"Did you mean {known[near[0]]}?"
    return f"Known are: {', '.join(known.values())}."


def _same(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in names}
