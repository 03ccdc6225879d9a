"""Find and write the commits of a workspace that match a question."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from byok.escapes import escape
from byok.index.parse.tokens import terms
from byok.index.types import Commit
from byok.retrieval.masking import mask_lines

_HEADING = "The following commits were retrieved:\n"
_NOTHING = "No commit was found for this request (no matches).\n"
_MOST = 20
_FILES = 8
_LAST_SECOND = 253_402_300_799  # of the year 9999; git takes later ones


def rank_commits(
    commits: Sequence[Commit], query: Mapping[str, float], limit: int = _MOST
) -> list[Commit]:
    """Return the commits whose message and paths match best; newest first among equals.

    Each query term counts once per commit, by its inverse document frequency.
    """
    told = [_commit_terms(commit) & query.keys() for commit in commits]
    seen = Counter(term for found in told for term in found)
    worth = {
        term: query[term] * math.log(1 + len(commits) / count)
        for term, count in seen.items()
    }
    scored = [
        (sum(worth[term] for term in found), -place)
        for place, found in enumerate(told)
        if found
    ]
    return [commits[-place] for _, place in sorted(scored, reverse=True)[:limit]]


def _commit_terms(commit: Commit) -> set[str]:
    paths = " ".join(commit.files).replace("/", " ").replace(".", " ")
    return {*terms(commit.message), *terms(paths.replace("-", " "))}


def render_commits(commits: Sequence[Commit], limit: int) -> str:
    """Write commits with date, subject and files, in at most `limit` characters."""
    text = _HEADING if commits else _NOTHING
    for commit in commits:
        seconds = min(max(0, commit.time), _LAST_SECOND)
        when = datetime.fromtimestamp(seconds, UTC).date().isoformat()
        said = mask_lines(commit.message.splitlines() or [""])
        subject, *rest = map(escape, said)
        block = f"Commit: {commit.hash[:12]} {when} {subject}\n"
        block += "".join(f"    {line}\n" for line in rest if line.strip())
        block += "".join(f"  {escape(path)}\n" for path in commit.files[:_FILES])
        if commit.touched > _FILES:
            block += f"  and {commit.touched - _FILES} more files\n"
        if len(text) + len(block) > limit:
            break
        text += block
    return text[:limit]
