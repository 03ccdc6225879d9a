"""Checks of what the daemon uses beside models: the official service, and vectors."""

from collections.abc import Sequence

from byok.doctor.results import CheckResult, doubtful, good, wrong
from byok.doctor.surroundings import Surroundings
from byok.routing import Service

_NO_CONSENT, _FAILED = "no_consent", "failed"


async def official_service(around: Surroundings) -> Sequence[str]:
    """Return the official service, if the settings give it an address."""
    return ("",) if (await around.settings()).routing.official.base_url else ()


async def check_official(around: Surroundings, about: str) -> CheckResult:
    """Check that nothing failed that the daemon asked of the official service."""
    del about
    answer = await around.ask(Service.OFFICIAL)
    troubles = answer.get("troubles") or {}
    for what, trouble in troubles.items():
        return doubtful(f"{what}: {trouble}", "byok keys test official")
    groups = [g for g, p in (answer.get("groups") or {}).items() if p == "official"]
    return good(f"used for {', '.join(groups)}" if groups else "not used")


async def vectors(around: Surroundings) -> Sequence[str]:
    """Return the vectors of code, if the settings name a model for them."""
    return ("",) if (await around.settings()).embeddings.on else ()


async def check_vectors(around: Surroundings, about: str) -> CheckResult:
    """Check that the vectors that the settings want are made."""
    del about
    answer = await around.ask(Service.EMBED_STATUS)
    state, error = str(answer.get("state", "")), str(answer.get("error", ""))
    if state == _NO_CONSENT:
        return doubtful("they are not enabled, so nothing is sent", "byok embed enable")
    if state == _FAILED or error:
        judge = wrong if state == _FAILED else doubtful
        return judge(error or "they cannot be made", "byok embed status says more")
    done, whole = answer.get("embedded", 0), answer.get("chunks", 0)
    return good(f"{state}, {done:,} of {whole:,} chunks")
