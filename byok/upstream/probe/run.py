"""Running the probe: its cost beforehand, its cases one after the other, its limits."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from byok.dialects.model_facts import Price
from byok.upstream.probe.asking import Finding, Prober, ProbeState
from byok.upstream.probe.cases import ProbeCase, result_of
from byok.upstream.probe.report import ProbeOutcome, ProbeResult

_MOST_SECONDS = 900.0
_MOST_REQUESTS = 60  # with those that byok repeats
_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class ProbeCost:
    """What a probe costs at most; `dollars` is None where no price is known."""

    requests: int
    input_tokens: int
    output_tokens: int
    dollars: float | None = None


def estimate_cost(cases: Iterable[ProbeCase], price: Price | None) -> ProbeCost:
    """Return what these cases cost at most."""
    cases = tuple(cases)
    given = sum(case.input_tokens for case in cases)
    taken = sum(case.output_tokens for case in cases)
    requests = sum(case.requests for case in cases)
    if price is None or price.input is None or price.output is None:
        return ProbeCost(requests, given, taken)
    dollars = (given * price.input + taken * price.output) / _MILLION
    return ProbeCost(requests, given, taken, dollars)


async def run_probe(
    prober: Prober,
    cases: Iterable[ProbeCase],
    on_result: Callable[[ProbeResult], None],
    *,
    most_seconds: float = _MOST_SECONDS,
    most_requests: int = _MOST_REQUESTS,
    clock: Callable[[], float] = time.monotonic,
) -> list[ProbeResult]:
    """Run the cases; beyond the limits no further one is tried.

    Raises:
        ByokError: the model does not answer the first question.
    """
    state, results = ProbeState(), list[ProbeResult]()
    ends, spent = clock() + most_seconds, 0
    for case in cases:
        if clock() >= ends or spent >= most_requests:
            finding = Finding(ProbeOutcome.SKIPPED, "the probe took too long")
        else:
            finding = await case.run(prober, state)
        error = next((answer.error for answer in finding.answers), None)
        if not results and error is not None:
            raise error
        result = result_of(case, finding)
        spent += result.requests
        results.append(result)
        on_result(result)
    return results
