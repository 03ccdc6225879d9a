"""All tasks with all models, one after another: local models share one machine."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from byok.errors import ConfigError
from byok.trials.agent_loop import AgentLoop, TrialLimits
from byok.trials.outcome import TrialOutcome
from byok.trials.tasks import TrialTask
from byok.trials.trial_client import TrialClient
from byok.upstream.router import Router

_MOST_FAILURES = 2  # tasks in a row without one answer, until a model is given up


async def choose_models(router: Router, names: Iterable[str]) -> list[str]:
    """Return the ids of models that a user named; of the default one for no name.

    Raises:
        ConfigError: no model has such a name.
    """
    chosen: list[str] = []
    for name in [*names] or [""]:
        found = await router.choose_listed(name)
        if found.instead_of:
            raise ConfigError(
                f"There is no model {name[:60]!r}.",
                hint="`byok models` lists them; byok:UPSTREAM:MODEL needs no list.",
            )
        chosen.append(found.model_id)
    return [*dict.fromkeys(chosen)]


async def try_model(
    client: TrialClient,
    model: str,
    tasks: Sequence[TrialTask],
    limits: TrialLimits,
    *,
    on_begin: Callable[[TrialTask], None] = lambda task: None,
    on_end: Callable[[TrialOutcome], None] = lambda outcome: None,
) -> None:
    """Give a model all tasks; `on_end` gets each outcome.

    A model that answers nothing twice in a row is not asked any more.
    """
    failures = 0
    for place, task in enumerate(tasks):
        on_begin(task)
        outcome = await AgentLoop(client.ask, task, model, limits).run()
        on_end(outcome)
        failures = 0 if outcome.answers else failures + 1
        if failures == _MOST_FAILURES:
            for left in _give_up(model, tasks[place + 1 :], outcome.fault):
                on_end(left)
            return


def _give_up(
    model: str, tasks: Iterable[TrialTask], fault: str
) -> Iterator[TrialOutcome]:
    for task in tasks:
        yield TrialOutcome(task.name, model, f"not asked, after: {fault}", asked=False)
