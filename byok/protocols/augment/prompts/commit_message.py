"""/generate-commit-message-stream: a commit message for a diff."""

import re

from byok.core.chat import Json
from byok.core.escapes import fair_share
from byok.core.stage import chain
from byok.protocols.augment.body import integer, mapping, strings, text
from byok.protocols.augment.positions import Trimmer
from byok.protocols.augment.prompts.prompt_parts import NOTHING, code, question
from byok.protocols.augment.remarks import FenceRemover, LeadRemover, QuoteRemover
from byok.protocols.augment.reply_job import Defaults, ReplyFacts, ReplyJob
from byok.protocols.augment.text_reply import TextLines

MAX_DIFF = 48_000  # characters of all files together
MIN_FILE = 1_000  # characters for each file, as long as there is space
_MAX_LINE = 400
_MAX_SAMPLES, _MAX_SAMPLE = 10, 400
_FILE = re.compile(r"^(?=diff --git |Index: )", re.MULTILINE)


def decode(body: Json, defaults: Defaults) -> ReplyJob[TextLines]:
    """Decode the diff and sample messages; without a diff no model is asked."""
    diff = text(body, "diff")
    if not diff.strip():
        return ReplyJob(NOTHING, _reply)
    inner = mapping(body, "generated_commit_message_subrequest")
    blocks = [
        samples(label, [*strings(body, name), *strings(inner, name)])
        for label, name in (
            ("earlier messages of this author", "relevant_commit_messages"),
            ("earlier messages of this repository", "example_commit_messages"),
        )
    ]
    blocks += [_counts(body), code("diff", shorten_diff(diff), "diff")]
    chat = question(body, defaults, "commit", blocks, whole=True)
    return ReplyJob(chat, _reply)


def samples(label: str, messages: list[str]) -> str:
    """Render messages as samples of style; "" without any."""
    texts = [m.strip()[:_MAX_SAMPLE] for m in dict.fromkeys(messages) if m.strip()]
    return "\n---\n".join([f"[{label}]", *texts[:_MAX_SAMPLES]]) if texts else ""


def shorten_diff(diff: str, limit: int = MAX_DIFF) -> str:
    """Cut a large diff, so that each file keeps its beginning if there is space."""
    if len(diff) <= limit:
        return diff
    files = [part for part in _FILE.split(diff) if part]
    share = max(MIN_FILE, fair_share([len(file) for file in files], limit))
    parts: list[str] = []
    space = limit
    for number, file in enumerate(files, 1):
        part = _shorten_file(file, min(share, space))
        space -= len(part)
        parts.append(part)
        remaining = files[number:]
        if remaining and space < min(MIN_FILE, len(remaining[0])):
            parts.append(f"[{len(remaining)} more files left out]\n")
            break
    return "".join(parts)


def _shorten_file(diff: str, limit: int) -> str:
    if len(diff) <= limit:
        return diff
    lines: list[str] = []
    size = 0
    for line in diff.split("\n"):
        line = line if len(line) <= _MAX_LINE else line[:_MAX_LINE] + " […]"
        size += len(line) + 1
        if size > limit - 40:
            break
        lines.append(line)
    return "\n".join(lines) + "\n[the rest of this file left out]\n"


def _counts(body: Json) -> str:
    stats = mapping(body, "changed_file_stats")
    counts = [
        f"{count} {kind}"
        for kind in ("added", "modified", "deleted")
        if (
            count := integer(mapping(stats, f"{kind}_file_stats"), "changed_file_count")
        )
    ]
    return f"[files changed: {', '.join(counts)}]" if counts else ""


def _reply(facts: ReplyFacts) -> TextLines:
    bare = chain(LeadRemover(strict=True), FenceRemover())
    clean = chain(bare, chain(QuoteRemover(), Trimmer()))
    return TextLines(clean, facts)
