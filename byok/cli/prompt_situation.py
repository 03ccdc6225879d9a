"""Which prompt is meant, and the situation for which it is shown."""

from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.command_context import load
from byok.errors import BadRequest

if TYPE_CHECKING:
    from byok.dialects.model_facts import ModelFacts
    from byok.prompts.kinds import PromptKind
    from byok.prompts.prompt_set import PromptSet, Situation


def _complete(begun: str) -> list[str]:
    from byok.prompts.prompt_set import shipped_texts

    return [name for name in sorted(shipped_texts()) if name.startswith(begun)]


NameArgument = Annotated[
    str,
    typer.Argument(
        help="A prompt, or a variant of one, such as agent.small.",
        metavar="NAME",
        autocompletion=_complete,
    ),
]


def split_name(name: str) -> tuple[str, str]:
    """Return the prompt and the variant of a name such as `agent.small`.

    Raises:
        BadRequest: there is no such prompt.
    """
    from byok.prompts.own_files import check_name

    if (problem := check_name(name)) is not None:
        raise BadRequest(f"{name[:80]}: {problem.problem}.", hint=problem.cure)
    kind, _, variant = name.partition(".")
    return kind, variant


def tools_named(prompts: "PromptSet", kind: str) -> frozenset[str]:
    """Return every tool that a prompt or one of its variants names."""
    from byok.prompts.prompt_set import named_tools

    return named_tools(
        template
        for group in (prompts.templates, prompts.own)
        for name, template in group.items()
        if name.partition(".")[0] == kind
    )


def check_conditions(kind: str, conditions: list[str]) -> frozenset[str]:
    """Return the conditions that are to hold.

    Raises:
        BadRequest: the prompt knows no such condition.
    """
    from byok.prompts.kinds import KINDS

    known = KINDS[kind].conditions
    for condition in conditions:
        if condition not in known:
            listed = ", ".join(sorted(known))
            raise BadRequest(
                f"{condition[:80]} is no condition of {kind}.",
                hint=_other_option(condition, KINDS[kind])
                or (f"Known are: {listed}." if known else "This prompt has none."),
            )
    return frozenset(conditions)


def _other_option(condition: str, kind: "PromptKind") -> str:
    """Return which option sets a condition that --if does not, "" if none."""
    from byok.prompts.kinds import FAMILIES, FAMILY, TOOL

    if kind.tools and (tool := condition.removeprefix(TOOL)) != condition:
        return f"A tool is given by: --tool {tool[:80]}"
    if condition.removeprefix(FAMILY) in FAMILIES and condition.startswith(FAMILY):
        return "The family is that of a model: --model MODEL"
    return ""


def situation_of(variant: str, model: str, window: int) -> "Situation":
    """Return the situation of a variant, or of a model by what is known of it offline.

    The model is an id of the catalog, UPSTREAM/MODEL, or a name as it is on any host. A
    `window` of 0 is the one that is known of the model.

    Raises:
        BadRequest: there is a variant and a model.
        ConfigError: the model's upstream is unknown.
    """
    from byok.prompts.prompt_set import Situation, find_fit

    if variant and model:
        raise BadRequest(
            "A model decides itself which variant it is told.",
            hint=f"Leave out --model, or .{variant}.",
        )
    if variant:
        return Situation((variant,), window)
    facts = _facts_of(model)
    fit = find_fit(
        facts.id,
        family=facts.family,
        thinks=facts.thinking is True,
        window=window or facts.loaded_window or facts.window,
    )
    return Situation(*fit)


def _facts_of(what: str) -> "ModelFacts":
    from byok.config import upstream_named, upstream_names
    from byok.dialects.families import family_facts
    from byok.dialects.model_facts import FactSource, combine_facts
    from byok.model_ids import split_id
    from byok.upstream.fact_sources import fact_sources
    from byok.upstream.model_table import known_table
    from byok.upstream.profiles import Profiles
    from byok.wiring.upstreams import make_spec

    settings, paths = load()
    what = settings.routing.aliases.get(what.removeprefix("byok:"), what)
    upstream, _, model = what.partition("/")
    if parts := split_id(what):
        upstream, model = parts
    elif not model or upstream not in upstream_names(settings.upstreams):
        table = known_table().facts("", what)
        layers = [(FactSource.FAMILY, family_facts(what)), (FactSource.TABLE, table)]
        return combine_facts(what, layers).facts
    spec = make_spec(*upstream_named(upstream, settings), settings)
    sources = fact_sources(spec, Profiles(paths.profiles))
    found = [(source, look_up(model)) for source, look_up in sources]
    return combine_facts(model, found).facts
