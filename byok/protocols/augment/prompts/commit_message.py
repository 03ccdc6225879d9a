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
MIN_FILE = 1_000  # characters for each file in any case, while there is room
_MAX_LINE = 400
_MAX_SAMPLES, _MAX_SAMPLE = 10, 400
_FILE = re.compile(r"^(?=diff --git |Index: )", re.MULTILINE)


def decode(body: Json, defaults: Defaults) -> ReplyJob[TextLines]:
    """Read the diff and sample messages; without a diff there is nothing to ask."""
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
    kept = [m.strip()[:_MAX_SAMPLE] for m in dict.fromkeys(messages) if m.strip()]
    return "\n---\n".join([f"[{label}]", *kept[:_MAX_SAMPLES]]) if kept else ""


def shorten_diff(diff: str, limit: int = MAX_DIFF) -> str:
    """Cut a large diff, so that each file keeps its beginning as far as room allows."""
    if len(diff) <= limit:
        return diff
    files = [part for part in _FILE.split(diff) if part]
    share = max(MIN_FILE, fair_share([len(file) for file in files], limit))
    kept: list[str] = []
    room = limit
    for number, file in enumerate(files):
        part = _file(file, min(share, room))
        room -= len(part)
        kept.append(part)
        left = len(files) - number - 1
        if left and room < min(MIN_FILE, len(files[number + 1])):
            kept.append(f"[{left} more files left out]\n")
            break
    return "".join(kept)


def _file(diff: str, limit: int) -> str:
    if len(diff) <= limit:
        return diff
    kept: list[str] = []
    size = 0
    for line in diff.split("\n"):
        line = line if len(line) <= _MAX_LINE else line[:_MAX_LINE] + " […]"
        size += len(line) + 1
        if size > limit - 40:
            break
        kept.append(line)
    return "\n".join(kept) + "\n[the rest of this file left out]\n"


def _counts(body: Json) -> str:
    stats = mapping(body, "changed_file_stats")
    told = [
        f"{count} {kind}"
        for kind in ("added", "modified", "deleted")
        if (
            count := integer(mapping(stats, f"{kind}_file_stats"), "changed_file_count")
        )
    ]
    return f"[files changed: {', '.join(told)}]" if told else ""


def _reply(facts: ReplyFacts) -> TextLines:
    bare = chain(LeadRemover(strict=True), FenceRemover())
    clean = chain(bare, chain(QuoteRemover(), Trimmer()))
    return TextLines(clean, facts)
