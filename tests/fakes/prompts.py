"""Prompts of one line, or none, and folders of own prompts that cannot be used."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from byok.core.prompts.own_files import MAX_FILE_BYTES
from byok.core.prompts.prompt_set import KINDS, PromptSet
from byok.core.prompts.template import parse_template
from byok.protocols.augment.reply_job import Defaults

NONE = PromptSet({name: parse_template("") for name in KINDS})
BARE = Defaults(prompts=NONE)  # what a client sends, and nothing of byok


def prompts(**texts: str) -> PromptSet:
    """Return prompts by name; two underscores stand for a dot."""
    return PromptSet(
        {name.replace("__", "."): parse_template(t) for name, t in texts.items()}
    )


class Broken(NamedTuple):
    """What makes a folder broken; `told` begins the line on it, `cure` is in that."""

    make: Callable[[Path], object]
    told: str
    cure: str


def _write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def _link(target: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        (folder.parent / "secret.md").write_text("SECRET")
        (folder / "agent.md").symlink_to(target)

    return make


def _chmod(folder: Path) -> None:
    (folder / "agent.md").write_text("x")
    (folder / "agent.md").chmod(0o666)


def _many(folder: Path) -> None:
    for number in range(300):
        (folder / f".{number}").touch()
    (folder / "agent.md").write_text("x")
    for number in range(200):
        (folder / f"agent.{number}.md").touch()


_NAME = "agent\n\x1b[2Jchat.md: valid.md"

BROKEN = {
    "a folder": Broken(
        lambda folder: (folder / "agent.md").mkdir(),
        "agent.md: it is no file.",
        "Put a text file in its place.",
    ),
    "a link outwards": Broken(
        _link("../secret.md"), "agent.md: it is a link that leads out", "Copy the file."
    ),
    "a link to a device": Broken(
        _link("/dev/zero"), "agent.md: it is a link that leads out", "Copy the file."
    ),
    "a dangling link": Broken(
        _link("none.md"),
        "agent.md: it cannot be read (No such file or directory)",
        "Mend or remove it.",
    ),
    "a link to itself": Broken(
        _link("agent.md"), "agent.md: it cannot be read (", "Mend or remove it."
    ),
    "a pipe": Broken(
        lambda folder: os.mkfifo(folder / "agent.md"),
        "agent.md: it is no file.",
        "Put a text file in its place.",
    ),
    "a file that others can change": Broken(
        _chmod, "agent.md: it can be changed by other users.", "chmod go-w"
    ),
    "not UTF-8": Broken(
        _write("agent.md", b"a\n\xff"),
        "agent.md:2: it is not UTF-8.",
        "Save it as UTF-8.",
    ),
    "a lone surrogate": Broken(
        _write("agent.md", b"a\r\n\r\n\xed\xa0\x80"),
        "agent.md:3: it is not UTF-8.",
        "Save it as UTF-8.",
    ),
    "UTF-16": Broken(
        _write("agent.md", "Hi.\nYou".encode("utf-16-le")),
        "agent.md:1: it has a NUL character.",
        "in UTF-8.",
    ),
    "nothing": Broken(
        _write("agent.md", b"\xef\xbb\xbf \r\n"), "agent.md: it is empty.", "remove it"
    ),
    "ten megabytes": Broken(
        _write("agent.md", b"x" * 10_000_000),
        f"agent.md: it is larger than {MAX_FILE_BYTES // 1024} KiB.",
        "Shorten it.",
    ),
    "an unknown name": Broken(
        _write("agents.md", b"x"),
        "agents.md: no prompt has this name.",
        "Did you mean agent?",
    ),
    "a name in capitals": Broken(
        _write("Agent.md", b"x"),
        "Agent.md: no prompt has this name.",
        "Did you mean agent?",
    ),
    "a name in capitals alone": Broken(
        _write("CHAT.md", b"x"),
        "CHAT.md: no prompt has this name.",
        "Did you mean chat?",
    ),
    "the name of the slot": Broken(
        _write("shipped.md", b"x"), "shipped.md: no prompt has this name.", "agent, ask"
    ),
    "a hostile name": Broken(
        _write(_NAME, b"x"),
        r"agent\n\x1b[2Jchat.md: valid.md: no prompt has this name.",
        "Known are: agent, ask",
    ),
    "a name of other bytes": Broken(
        _write(os.fsdecode(b"agent\xff.md"), b"x"),
        r"agent\xff.md: no prompt has this name.",
        "Did you mean agent?",
    ),
    "a variant of a variant": Broken(
        _write("agent.small.gpt.md", b"x"),
        "agent.small.gpt.md: there is no such variant.",
        "Did you mean agent.small?",
    ),
    "an unknown variant of an unknown name": Broken(
        _write("agnt.x.md", b"x"),
        "agnt.x.md: no prompt has this name.",
        "Did you mean agent?",
    ),
    "a variant of an unknown name": Broken(
        _write("agnt.small.md", b"x"),
        "agnt.small.md: no prompt has this name.",
        "Did you mean agent.small?",
    ),
    "a variant alone": Broken(
        _write("small.md", b"x"),
        "small.md: this is a variant.",
        "Say of which prompt: agent.small, ",
    ),
    "a variant without a name": Broken(
        _write("agent..md", b"x"), "agent..md: there is no such variant.", "short"
    ),
    "another kind of file": Broken(
        _write("README.txt", b"x"),
        "README.txt: it is no prompt.",
        "Name it NAME.md, or keep it elsewhere.",
    ),
    "an unknown slot": Broken(
        _write("chat.md", b"\r\n{{who}}"),
        "chat.md:2: {{who}} is no slot.",
        "Known are: shipped.",
    ),
    "an unknown condition": Broken(
        _write("agent.md", b"\n\n{{#paralel}}x{{/}}"),
        "agent.md:3: paralel is no condition.",
        "Did you mean parallel?",
    ),
    "an unknown family": Broken(
        _write("agent.md", b"{{#family:gpt|lama}}x{{/}}"),
        "agent.md:1: family:gpt|lama is no condition.",
        "Did you mean family:gpt?",
    ),
    "a tool where none is offered": Broken(
        _write("title.md", b"{{^tool:view}}x{{/}}"),
        "title.md:1: tool:view is no condition.",
        "Known are: family:claude",
    ),
    "an open section": Broken(
        _write("chat.md", b"{{#snippets}}"),
        "chat.md:1: snippets is not closed.",
        "Add {{/}} behind its last line.",
    ),
    "a mark across lines": Broken(
        _write("chat.md", b"One\n{{#snip\npets}}"),
        "chat.md:2: {{ is not closed.",
        "Close the mark with }} on its line.",
    ),
    "a bomb of slots": Broken(
        _write("agent.md", b"Hi.\n" + b"{{shipped}}" * 5000),
        "agent.md:2: {{shipped}} stands there 5,000 times.",
        "at most 10 times",
    ),
    "a bomb of sections": Broken(
        _write("agent.md", b"{{#parallel}}\n" * 4000),
        "agent.md:9: too many sections in one another.",
        "Join some of them.",
    ),
    "hostile words": Broken(
        _write("chat.md", "\x1b]0;x\a\u202e{{\x1b[2J}}".encode()),
        r"chat.md:1: '\x1b[2J' is no name.",
        "Names are lower case",
    ),
    "too many files": Broken(
        _many, "prompts: it holds more than 200 files.", "Keep there only prompts"
    ),
}
