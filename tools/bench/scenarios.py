"""The loads that are measured, and the figures that each shows."""

from dataclasses import dataclass

from tools.bench.spec import Spec


@dataclass(frozen=True)
class Scenario:
    """A load of `streams` clients; `shown` are the columns that it is about.

    With `direct`, the mock is also measured alone, to know how much time byok adds.
    """

    name: str
    what: str
    streams: int
    spec: Spec
    shown: tuple[str, ...]
    direct: bool = True


def scenarios(seconds: float) -> list[Scenario]:
    """Return all scenarios, for runs of `seconds`."""
    paced = max(1, round(100 * seconds))
    return [
        Scenario(
            "ttft",
            "one stream at a time: the way to the first chunk",
            1,
            Spec(chunks=3),
            ("first",),
        ),
        Scenario(
            "paced",
            "50 streams of 100 chunks/s, every chunk a write of its own",
            50,
            Spec(chunks=paced, pause=0.01),
            ("cpu", "way"),
        ),
        Scenario(
            "burst",
            "10 streams, 50 chunks a write, 40 writes/s",
            10,
            Spec(chunks=max(50, round(2000 * seconds)), per_write=50, pause=0.025),
            ("cpu",),
            direct=False,
        ),
        Scenario(
            "churn",
            "8 clients that ask for answers of one chunk",
            8,
            Spec(chunks=1),
            ("cpu",),
            direct=False,
        ),
        Scenario(
            "tools",
            "8 streams of two parallel tool calls in 120 fragments each",
            8,
            Spec(chunks=0, calls=2, per_write=10, pause=0.002),
            ("cpu",),
            direct=False,
        ),
        Scenario(
            "c200",
            "200 streams of 50 chunks/s",
            200,
            Spec(chunks=max(1, paced // 2), pause=0.02),
            ("cpu", "way"),
        ),
    ]
