"""Texts in the user's language: chosen by the environment, found by their fixed parts.

The texts of the sources are read from their syntax: what a command prints, asks or
raises, and its pages of --help. Each must be in every catalogue, and no catalogue may
have others.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
import typer

import byok
from byok.cli.commands import ROWS
from byok.core.catalogue import SLOT, Catalogue
from byok.core.error_table import ErrorRow, error_rows
from byok.core.language import (
    COMMANDS,
    ENGLISH,
    ERRORS,
    MESSAGES,
    known_languages,
    language_of_environment,
    match_language,
    read_catalogue,
)

SOURCES = Path(byok.__file__).parent
LANGUAGES = [name for name in known_languages() if name != ENGLISH]
KINDS = [(name, kind) for name in LANGUAGES for kind in (MESSAGES, COMMANDS)]


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW.UTF-8"}, "zh"),  # nearer than English
        ({"LANG": "zh"}, "zh"),
        ({"LANG": "zh-Hans@x"}, "zh"),
        ({"LANG": "en_GB.UTF-8"}, "en"),
        ({"LANG": "xx_YY.UTF-8"}, "en"),
        ({"LANG": "../zh"}, "en"),
        ({"LANG": "zh_CN.GB2312"}, "en"),  # byok writes UTF-8
        ({"LANG": "zh_CN.utf8"}, "zh"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "LC_MESSAGES": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "C.UTF-8", "LANGUAGE": "zh"}, "en"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "xx:zh_CN:en"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en:zh"}, "en"),
    ],
)
def test_the_environment_names_the_language(
    environ: dict[str, str], language: str
) -> None:
    assert language_of_environment(environ) == language


def test_a_language_of_a_country_comes_before_the_one_of_all() -> None:
    assert match_language("ZH-cn") == "zh"
    assert match_language("tlh") == ""


CATALOGUE = Catalogue(
    {
        "Stop.": "停。",
        "{path} is gone": "没有 {path}",
        "{name} sent {count} files": "{count} 个文件，来自 {name}",
        "{name} sent {what}": "{name}：{what}",
        "Failed: {why}": "失败：{why}",
        "the {term} is locked": "{term}已锁",
        "vault": "库",
        "it runs": "在运行",
        "{name} starts{where}": "{name} 启动{where}",
        "(pid {pid})": "（进程 {pid}）",
        ", ": "，",
        ". ": "。",
    }
)


@pytest.mark.parametrize(
    ("english", "told"),
    [
        ("Stop.", "停。"),
        ("  Stop. ", "  停。 "),
        ("/a/b is gone", "没有 /a/b"),
        ("x sent 1,200 files", "1,200 个文件，来自 x"),  # another order
        ("x sent many files", "x：many files"),  # that is no number
        ("Failed: /a is gone", "失败：没有 /a"),
        ("Failed: vault", "失败：vault"),  # a name
        ("the vault is locked", "库已锁"),
        ("Stop. Stop.", "停。停。"),
        ("Stop. But {path} is [b]new[/b].", "停。But {path} is [b]new[/b]."),
        ("it runs, it runs", "在运行，在运行"),
        ("it runs, x", "在运行，x"),
        ("it runs, or not", "it runs, or not"),
        ("a, b", "a, b"),
        ("a, vault", "a, vault"),  # names
        ("x: ...", "x: ..."),
        ("/a is gone.", "没有 /a。"),
        ("it runs: it runs.", "在运行: 在运行。"),
        ("x starts (pid 1).", "x 启动（进程 1）。"),
        ("a, box (pid 1)", "a，box（进程 1）"),
        ("box: it runs", "box: 在运行"),
        ("Failed: x. Stop.", "失败：x。停。"),
        ("Failed: x. New words.", "失败：x. New words."),
        ("Stop. x is gone", "停。没有 x"),
        ("{path} is gone", "没有 {path}"),
        ("{why} {0} {} \\1 is gone", "没有 {why} {0} {} \\1"),
        ("", ""),
        ("unknown", "unknown"),
    ],
)
def test_a_text_is_found_with_its_values(english: str, told: str) -> None:
    assert CATALOGUE.translate(english) == told


@pytest.mark.parametrize(
    "text", ["Failed: " * 100_000, " sent" * 100_000, "A. " * 100_000]
)
def test_a_text_that_repeats_itself_is_told(text: str) -> None:
    assert CATALOGUE.translate(text).endswith(text[-50:])


# Their texts reach the terminal, or byok's lines in chats; those of other rooms go to
# programs, in English.
ROOMS = (
    *("cli", "clients", "settings", "storage", "features", "search", "wiring"),
    *("core", "upstream", "server/code_endpoints.py", "server/control.py"),
    *("server/daemon_endpoints.py", "dialects/refusals.py", "dialects/error_bodies.py"),
    *("dialects/anthropic/answer.py", "dialects/gemini/answer.py"),
    *("dialects/openai_responses/answer.py", "dialects/presets.py"),
    *("dialects/chat_changes.py", "dialects/openai_chat/remedies.py"),
    *("dialects/anthropic/remedies.py", "dialects/gemini/remedies.py"),
    *("server/admission.py", "protocols/augment/chat_reply.py"),
)
# What no command prints, though it is raised in these rooms.
UNPRINTED = {
    "core/daemon/challenge.py": "a client that is not byok's sent it",
    "core/wire/json_body.py": "bodies of clients",
    "search/retrieval/model_words.py": "the log",
    "search/retrieval/rerank.py": "the log",
    "upstream/own_questions.py": "the log",
    "upstream/pictures.py": "the log",
    "upstream/window/compaction.py": "texts for models",
}
# What prints, asks, raises or describes, and which argument is a text; -1: all.
SINKS = {
    **dict.fromkeys(("say", "tell", "confirm", "text", "secret", "translate"), 0),
    **dict.fromkeys(("show_progress", "update", "Check", "StatusLine"), 0),
    **dict.fromkeys(("say_table", "good", "doubtful", "wrong", "skip"), -1),
    **dict.fromkeys(("PromptProblem", "RefusingUpstream"), -1),
    **dict.fromkeys(("_kind", "Refusal", "Rule"), 1),
    **dict.fromkeys(("Notice", "MomentNotice", "say", "_say"), 0),
    **dict.fromkeys(("with_hint", "CannotCheck", "NoProof", "BadParameter"), 0),
}
# Scripts wait for the first; the others are commands, or have nothing to translate.
KEPT = {
    "byok is listening on {}",
    "byok is listening on http://127.0.0.1:{}",
    "byok {} (Python {})",
    "byok service start; byok service logs",
    "service start",
    "--file {}",
    "# Made by byok init. Every setting: byok config example",
    'eval "$(byok connect cli)"',
    *("Claude Code", "VS Code", "VS Code Insiders", "Code - Insiders"),
    *("Model Armor", "{}{} of ${}", "[routing.models] {}"),
}
# What the daemon answers to a body that no command sends.
KEPT |= {
    "Forget all, a conversation or old days.",
    "Name the workspace.",
    "Switch capturing on or off.",
    "The length of the list must be a number.",
    "This request is for another daemon.",
    "{} must be an absolute path.",
    "workspace must be an absolute path.",
}
# Texts of typer that it puts together, of pydantic, of tomllib and of the system.
JOINED = {
    "Cannot declare {} twice (at {})",
    "Cannot overwrite a value (at {})",
    "Expected newline or end of document after a statement (at {})",
    "Expected {} after a key in a key/value pair (at {})",
    "Expected {} at the end of a table declaration (at {})",
    "Illegal character {} (at {})",
    "Invalid statement (at {})",
    "Invalid value (at {})",
    "Unclosed array (at {})",
    "Unterminated string (at {})",
    "line {}, column {}",
    "end of document",
    "Permission denied",
    "Read-only file system",
    "Input should be a valid boolean, unable to interpret input",
    "Input should be a valid integer, unable to parse string as an integer",
    "Input should be a valid number, unable to parse string as a number",
    "Input should be a valid string",
    "Input should be {}",
    "Input should be a valid dictionary",
    "Input should be a valid list",
    "Input should be greater than or equal to {}",
    "Input should be less than or equal to {}",
    "Missing argument {}.",
    "Missing option {}.",
    "No such command {}.",
    "No such option: {} (Possible options: {})",
    "Option {} requires an argument.",
    "127.0.0.1 and ::1",
    "Usage: ",
}
SENTENCES = re.compile(r"(?<=[.?!]) |(?<=^\{\}) (?=[A-Z{])")  # or a value comes first
COMMAND = re.compile(
    rf"(byok (?:{'|'.join(ROWS)})|chmod|sudo|export|eval|netstat|ss|ssh|http:)"
    r"""([ /][-\w{}/=$()':;|."]+)*(?<!\.)"""
)


def write_template(node: ast.expr) -> str | None:
    """Return a text of the sources with {} for each value; None for anything else."""
    if isinstance(node, ast.JoinedStr):
        parts = (write_template(part) for part in node.values)
        return "".join("{}" if part is None else part for part in parts)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def names_of_inputs(node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """Return the names of the values that a function or a class takes by place."""
    if isinstance(node, ast.FunctionDef):
        return [one.arg for one in node.args.args if one.arg not in ("self", "cls")]
    fields = [
        ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign)
    ]
    makers = (one for one in node.body if isinstance(one, ast.FunctionDef))
    return next((names_of_inputs(o) for o in makers if o.name == "__init__"), fields)


def texts_among(name: str, arguments: list[ast.expr]) -> list[ast.expr]:
    """Return which arguments of a call are texts."""
    if name not in SINKS and name not in error_classes():
        return []
    first = SINKS.get(name, 0)
    return arguments if first < 0 else arguments[first : first + 1]


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return the syntax of a file, the whole first."""
    return [*ast.walk(ast.parse(path.read_text("utf-8")))]


class Module:
    """The texts of a module that people may see."""

    def __init__(self, path: Path) -> None:
        self.checks_files = re.search(r"settings|clients", path.as_posix()) is not None
        self.nodes = nodes_of(path)
        self.given = defaultdict[str, list[ast.expr]](list)  # to a name, by a function
        self.seen = set[ast.expr]()
        inputs = {
            node.name: names_of_inputs(node)
            for node in self.nodes
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        returns = (node for node in self.nodes if isinstance(node, ast.Return))
        returned = [node.value for node in returns if node.value]
        for node in self.nodes:
            match node:
                case ast.Assign(targets=[ast.Tuple(names)], value=ast.Tuple(values)):
                    for one, value in zip(names, values, strict=True):
                        self.given[ast.unparse(one)].append(value)
                case (
                    ast.Assign(targets=[ast.Name(name)], value=ast.expr() as value)
                    | ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
                    | ast.AugAssign(target=ast.Name(name), value=value)
                    | ast.For(target=ast.Name(name), iter=value)
                    | ast.keyword(arg=str(name), value=value)
                ):
                    self.given[name].append(value)
                case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name)):
                    for own, value in zip(
                        inputs.get(name, ()), node.args, strict=False
                    ):
                        self.given[own].append(value)
                case ast.FunctionDef(name=name):
                    lines = range(node.lineno, (node.end_lineno or 0) + 1)
                    self.given[name] += [v for v in returned if v.lineno in lines]
                case _:
                    pass

    def texts(self) -> Iterator[str]:
        """Give what is printed, asked or raised, with {} for values."""
        for node in self.nodes:
            match node:
                case (
                    ast.Assign(targets=[ast.Name("cure" | "hint")], value=value)
                    | ast.keyword(arg="hint" | "notice", value=value)
                ):
                    yield from self.texts_of(value)
                case ast.Call(
                    func=ast.Name("count_noun"), args=[_, ast.Constant(noun)]
                ):
                    yield f"{{}} {noun!s}"
                case ast.Call(
                    func=ast.Name(name) | ast.Attribute(attr=name), args=args
                ):
                    if name in ("ValueError", "SettingsClash") and self.checks_files:
                        yield from self.texts_of(args[0])
                    for argument in texts_among(name, args):
                        yield from self.texts_of(argument)
                case _:
                    pass

    def texts_of(self, node: ast.expr) -> Iterator[str]:
        """Give the texts that an expression may be."""
        if node in self.seen:
            return
        self.seen.add(node)
        if (text := write_template(node)) is not None:
            yield text
        for one in self.parts_of(node):
            yield from self.texts_of(one)

    def parts_of(self, node: ast.expr) -> Sequence[ast.expr]:
        """Return the expressions that an expression may be, or puts into its text."""
        match node:
            case ast.JoinedStr(values=parts):
                values = [p for p in parts if isinstance(p, ast.FormattedValue)]
                return [part.value for part in values]
            case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
                return one, other
            case (
                ast.BoolOp(values=several)
                | ast.Tuple(elts=several)
                | ast.List(elts=several)
                | ast.Dict(values=several)
            ):
                return several
            case ast.Starred(value=one) | ast.Subscript(value=one):
                return (one,)
            case ast.Name(name) | ast.Attribute(attr=name):
                return self.given[name] or constants()[name]
            case ast.Call(func=ast.Attribute(value=one) as method):
                return one, method  # a text's own, or what it returns
            case ast.Call(func=function):
                return (function,)
            case _:
                return ()

    def help_texts(self) -> Iterator[str]:
        """Give the paragraphs of pages of --help."""
        for node in self.nodes:
            match node:
                case ast.FunctionDef(name=name, decorator_list=decorators):
                    given = " ".join(map(ast.unparse, decorators))
                    if name in ROWS or ".command(" in given or ".callback(" in given:
                        yield from (ast.get_docstring(node) or "").split("\n\n")
                case ast.keyword(arg="help" | "epilog", value=value):
                    yield write_template(value) or ""
                case _:
                    pass


@cache
def error_classes() -> set[str]:
    tree = ast.parse((SOURCES / "core/errors.py").read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


@cache
def modules(*rooms: str) -> list[Module]:
    """Return the modules of these rooms; one may be a module itself."""
    places = [SOURCES / room for room in rooms]
    files = (path for place in places for path in [place, *sorted(place.rglob("*.py"))])
    return [
        Module(path)
        for path in files
        if path.is_file() and path.relative_to(SOURCES).as_posix() not in UNPRINTED
    ]


@cache
def constants() -> dict[str, list[ast.expr]]:
    """Return the values of all modules, which others may use, by their names."""
    found = defaultdict[str, list[ast.expr]](list)
    trees = (module.nodes[0] for module in modules(*ROOMS))
    for node in (node for tree in trees for node in ast.iter_child_nodes(tree)):
        if isinstance(node, ast.Assign):
            found[ast.unparse(node.targets[0])].append(node.value)
    return found


def cut(text: str) -> str:
    """Return a text of the sources as a catalogue has it, with {} for values."""
    joined = re.sub(r"\n(?=[^\s-])", " ", text)
    return SLOT.sub("{}", joined).strip().lstrip(",; ")


def is_for_people(text: str) -> bool:
    """Tell whether a text has words to translate, and is no command."""
    words = re.search(r"[A-Za-z]{2}", text.replace("{}", ""))
    return bool(words) and " " in text and not COMMAND.fullmatch(text)


@cache
def needed_texts(kind: str) -> set[str]:
    """Return what must be in a catalogue."""
    found = set[str]()
    for module in modules(*(ROOMS if kind == MESSAGES else ["cli"])):
        texts = module.texts() if kind == MESSAGES else module.help_texts()
        found |= {text for text in map(cut, texts) if is_for_people(text)} - KEPT
    if kind == COMMANDS:
        found |= {text for row in ROWS.values() for text in (row.help, row.group)}
    return found


@cache
def all_texts() -> set[str]:
    """Return the texts of byok, and of typer, with their sentences and clauses."""
    folders = (SOURCES, Path(typer.__file__).parent)
    paths = (path for folder in folders for path in folder.rglob("*.py"))
    nodes = (node for path in paths for node in nodes_of(path))
    texts = {write_template(node) for node in nodes if isinstance(node, ast.expr)}
    parts = {part for text in texts if text for part in parts_of(cut(text))}
    return parts | {f"{part}." for part in parts}


def parts_of(text: str) -> Iterator[str]:
    """Give a text, its sentences and its clauses."""
    yield text
    for sentence in SENTENCES.split(text):
        yield sentence
        yield from re.split(r"[,;] ", sentence)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "kind"), KINDS)
def test_every_text_is_in_the_catalogue(language: str, kind: str) -> None:
    known = {SLOT.sub("{}", text) for text in read_catalogue(language, kind)}
    known |= {f"{text}." for text in known if ". " in known} | {
        "",
        "{}",
        "{}.",
        "{} {}",
    }
    with_values = [t for t in known if "{}" in t]
    slots = [re.escape(text).replace(r"\{\}", r"\S+") for text in with_values]
    filled = re.compile("|".join(slots))

    def is_told(part: str) -> bool:
        return part in known or bool(filled.fullmatch(part))

    def is_known(text: str) -> bool:
        return is_told(text) or all(
            is_told(sentence) or all(map(is_told, re.split(r"[,;] ", sentence)))
            for sentence in SENTENCES.split(text)
        )

    assert len(needed_texts(kind)) > 100
    assert [text for text in sorted(needed_texts(kind)) if not is_known(text)] == []


@pytest.mark.slow
@pytest.mark.parametrize(("language", "kind"), KINDS)
def test_no_text_of_the_catalogue_is_dead(language: str, kind: str) -> None:
    texts = {SLOT.sub("{}", text) for text in read_catalogue(language, kind)}
    known = needed_texts(kind) | {", ", "; ", ": ", ". "} | JOINED
    assert texts - known - all_texts() == set()


# What is the same in all languages: values, options, settings, commands.
SAME = re.compile(
    rf"{SLOT.pattern}|`[^`]+`|--[a-z][\w-]*|\[[\w.{{}}]+\]|byok (?:{'|'.join(ROWS)})\b"
)


@pytest.mark.parametrize(("language", "kind"), KINDS)
def test_values_options_and_commands_are_the_same(language: str, kind: str) -> None:
    for english, text in read_catalogue(language, kind).items():
        found, same = (sorted(m[0] for m in SAME.finditer(t)) for t in (text, english))
        assert found == same or english == "[required]", english


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_is_not_taken_for_another(language: str) -> None:
    for text in filter(SLOT.search, read_catalogue(language, MESSAGES)):
        begin, *rest = SLOT.split(text)[::2]
        letters = re.sub("[^A-Za-z]", "", "".join(rest))
        is_number = text.startswith("{count")
        assert re.search("[A-Za-z(,]", begin) or is_number or len(letters) > 3, text


@pytest.mark.parametrize("language", LANGUAGES)
def test_errors_have_the_same_rows(language: str) -> None:
    english, own = error_rows(), error_rows(language)
    assert [*read_catalogue(language, ERRORS)] == [*english]
    for code, row in english.items():
        assert shape(own[code]) == shape(row), code
        assert own[code].what != row.what


def shape(row: ErrorRow) -> list[list[str]]:
    texts = (row.what, *row.causes, "", *row.cures)
    return [sorted(re.findall(r"`[^`]+`", text)) for text in texts]
