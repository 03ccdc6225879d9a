"""Every command of the README and the pages for users, by the installed wheel.

They run outside the clone. A command that is new there is in neither table below, and
fails a test. The Chinese pages have the same headings, commands and links.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.ports import free_port
from tests.fakes.program import ROOT, build_wheel, install_wheel
from tests.fakes.project import make_project

# The pages for users: those of docs/ itself, but for what developers read.
PAGES = (
    "README.md",
    *sorted(
        f"docs/{page.name}"
        for page in (ROOT / "docs").glob("*.md")
        if page.name != "ARCHITECTURE.md"
    ),
)
README = "\n".join((ROOT / name).read_text("utf-8") for name in PAGES)
PROGRAMS = ("byok ", "scripts/", "pipx ", "eval ", "claude ", "which ", "kill ")
PORT = "8317"  # of the README; the tests take a free one
SECONDS = 400.0
# Runs commands of the wheel that the parent has imported, a process each: (words, what
# they read) of each as JSON, and what became of it.
_FORKS = """
import json, os, sys, tempfile
from byok.cli import main
from byok.cli.commands import ROWS, load_command
for name in ROWS:
    load_command(name)
ended = []
for words, said in json.loads(sys.argv[1]):
    files = [tempfile.TemporaryFile() for _ in range(3)]
    files[0].write(said.encode())
    files[0].seek(0)
    child = os.fork()
    if not child:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        sys.argv = words
        try:
            main()
        except SystemExit as end:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for file in files:
        file.seek(0)
    ended.append([code, *(file.read().decode() for file in files[1:])])
json.dump(ended, sys.stdout)
"""


@dataclass(frozen=True)
class Run:
    """How a command is run: beside a daemon or as one, and what it says.

    `alone` wants a daemon that no command without it uses.
    """

    says: str
    daemon: bool = True
    alone: bool = False
    serves: bool = False
    stdin: str = ""


def plain(says: str, stdin: str = "") -> Run:
    return Run(says, daemon=False, stdin=stdin)


LISTENING = "byok is listening on http://127.0.0.1:8317"
SERVES = Run(LISTENING, daemon=False, serves=True)
INDEXED = "files indexed"
COMMANDS = {
    "scripts/serve --upstream ollama": SERVES,
    "byok serve": SERVES,
    "byok serve --ensure": SERVES,
    "byok serve --upstream http://127.0.0.1:9000/v1": SERVES,
    "byok serve --upstream ollama --workspace ~/src/project": SERVES,
    "byok config path": plain("config.toml"),
    "byok config init": plain("config.toml"),
    "byok config check": plain("config.toml: valid"),  # that of byok config init
    "byok token": plain(""),
    "byok status": Run("model: byok:demo:echo"),
    "byok log --errors": Run("journal.db holds no such requests"),
    "byok usage": Run("journal.db holds no requests"),
    "byok usage --by model": Run("journal.db holds no requests"),
    "byok models": Run("echo"),
    "byok models why": Run("long_context"),
    "byok doctor": Run("daemon version: byok"),
    "byok capture on": Run("byok captures requests for "),
    "byok capture list": Run("no captures"),
    "byok capture clear": Run("Deleted "),
    "byok memory status": Run("not remembered"),
    "byok memory list": Run("no conversations"),
    "byok uninstall --dry-run": plain("byok would remove"),
    "byok connect claude-code": Run("ANTHROPIC_BASE_URL"),
    "byok explain CODE": plain("upstream_auth: "),
    "byok reload": Run("byok uses the settings of"),
    "byok keys list": Run("No keys were found"),
    "byok keys set NAME --store vault": plain("in the vault", "sk-0123456789\n"),
    "byok connect jetbrains": Run("127.0.0.1:8317"),
    'eval "$(byok connect cli 2>/dev/null)"': Run(""),
    "byok index --estimate .": plain("estimated:"),
    "byok index add .": Run(INDEXED),
    "byok index status": Run("complete"),
    "byok index why src/x.py": Run("src/x.py: indexed"),
    "byok index rebuild": Run("no workspace", alone=True),
    "byok restart": Run(LISTENING, alone=True),
    "byok index add DIR": Run(INDEXED, alone=True),
    "byok index remove DIR": Run("Removed ", alone=True),
    "byok stop": Run("byok has ended", alone=True),
    'byok search "where are tool call arguments repaired"': Run("Path: "),
    "byok prompts list": plain("agent.small"),
    "byok prompts show agent --model qwen3:8b": plain("You are a coding agent"),
    "byok prompts check": plain("0 prompts of your own, valid"),
    "byok mcp -w DIR": Run(""),
    "byok service logs": Run(""),
    "which byok": plain("bin/byok"),
    "curl -sN http://127.0.0.1:8317/chat-stream": Run("Hello!"),
    "OPENAI_BASE_URL=http://127.0.0.1:8317/v1": Run("I am byok's demo"),
    "ANTHROPIC_BASE_URL=http://127.0.0.1:8317": Run("I am byok's demo"),
}
NOT_RUN = {
    "scripts/serve --upstream demo": "as with ollama",
    "byok serve --upstream http://127.0.0.1:4000/v1": "as with the port 9000",
    "byok serve --upstream ollama --model qwen3-coder:30b": "as without a model",
    "byok log": "as with --errors",
    "byok demo": "test_demo.py runs it",
    "byok --install-completion": "writes the shell's profile",
    "byok index add ~/src/project": "as with the folder .",
    "byok index why PATH": "as with src/x.py",
    "byok mcp": "as with -w DIR",
    "scripts/test": "runs this very test",
    "scripts/test tests/e2e/test_egress.py": "runs beside this test",
    r"curl -so /dev/null -w '%{time_total}\n' BASE_URL/models": "asks a vendor",
    "scripts/setup run": "installs packages",
    "byok capture show ID": "needs a captured request (tests/cli/test_capture.py)",
    "byok connect": "needs a client's name",
    "byok connect vscode --dry-run": "needs an editor (tests/cli/test_connect.py)",
    "byok connect vscode --write --start": (
        "asks at a terminal (tests/cli/test_disconnect.py)"
    ),
    "byok doctor --bundle FILE.zip": "writes an archive (tests/cli/test_doctor.py)",
    "byok embed clear": "has no vectors here (tests/cli/test_embed.py)",
    "byok init --no-wait": "asks at a terminal (tests/cli/test_init.py)",
    "byok init --upstream openrouter": "asks at a terminal (tests/cli/test_init.py)",
    "byok init --yes --upstream ollama": "needs Ollama (tests/cli/test_init.py)",
    "byok log --conversation ID": "as with --errors",
    "byok memory forget --all": "asks at a terminal (tests/cli/test_memory.py)",
    "byok memory forget --days 7": "asks at a terminal (tests/cli/test_memory.py)",
    "byok models update --file": "a file has to follow (tests/cli/test_models.py)",
    "byok token rotate": "takes the token from what runs beside it",
    "byok uninstall": "asks at a terminal (tests/cli/test_installation.py)",
    "byok uninstall --keep-settings --keep-keys": "as without",
    "byok upgrade": "asks at a terminal (tests/cli/test_installation.py)",
    "byok upgrade --dry-run": "needs git (tests/cli/test_installation.py)",
    "byok upgrade --extra otel": "installs packages",
    "byok usage --by model --days 7": "as without days",
    "scripts/install": "links into a home (tests/core/platform/test_installation.py)",
    "byok connect claude-code --mcp --write": (
        "writes that program's settings (tests/cli/test_disconnect.py)"
    ),
    "byok disconnect": "needs a client's name (tests/cli/test_disconnect.py)",
    "byok keys set NAME": "needs the keyring of a desktop",
    "byok keys set NAME --store key-file": "asks for a key (tests/cli/test_keys.py)",
    "byok keys set openai/work": "needs the keyring of a desktop",
    "byok keys set search-server": "needs the keyring of a desktop",
    "byok keys set web-search": "needs the keyring of a desktop",
    "byok remote enable": "asks at a terminal (tests/cli/test_embed.py)",
    "byok models update": "fetches public lists (tests/cli/test_models.py)",
    "byok probe": "asks models (tests/cli/test_probe.py)",
    "byok probe UPSTREAM/MODEL": "asks a model (tests/cli/test_probe.py)",
    "byok keys test NAME": "asks a vendor with a key of it",
    "byok keys remove NAME": "forgets a key of the user",
    "byok keys set openrouter && byok serve --upstream openrouter": (
        "needs the keyring of a desktop"
    ),
    "byok dashboard": "opens a browser (tests/cli/test_dashboard.py)",
    "byok dashboard --sign-out": "ends sessions (tests/cli/test_dashboard.py)",
    "byok init": "asks at a terminal (tests/cli/test_init.py)",
    "byok log -f": "ends only when it is interrupted (tests/cli/test_log.py)",
    "byok search": "a question has to follow",
    "byok serve --upstream openrouter": "needs a key",
    "byok prompts edit agent": "opens an editor (tests/cli/test_prompts.py)",
    "byok connect vscode --write": "asks at a terminal (tests/cli/test_disconnect.py)",
    "byok connect codex --write": "asks at a terminal (tests/cli/test_disconnect.py)",
    "byok disconnect vscode": "asks at a terminal (tests/cli/test_disconnect.py)",
    **dict.fromkeys(
        (
            *("byok service", "byok service logs -f", "byok service restart"),
            *("byok service start", "byok service stop", "byok service uninstall"),
            *("byok service install", "byok service install --dry-run"),
        ),
        "needs a service manager (tests/cli/test_service.py)",
    ),
    "byok service status": "says that none is installed (tests/cli/test_service.py)",
    "byok report ID": "needs a captured request (tests/cli/test_report.py)",
    "byok embed enable": "needs a model for vectors (tests/cli/test_embed.py)",
}
# What byok says, and names of things.
SAID = {LISTENING, "byok is already running", "byok is starting, or hangs"}


def written() -> dict[str, str]:
    """Return the commands of the README by what the tables call them."""
    blocks = [line[4:] for line in README.splitlines() if line.startswith("    ")]
    lines = "\n".join(blocks).replace("\\\n", "").splitlines()
    shell = [re.sub(r"\s+# .*", "", line).rstrip() for line in lines]
    starts = (*PROGRAMS, "curl ", "OPENAI_BASE", "ANTHROPIC_BASE")
    inline = re.findall(r"`([^`\n]+)`", README)
    commands = [line for line in (*shell, *inline) if line.startswith(starts)]
    return {_name(command): command for command in commands if command not in SAID}


def _name(command: str) -> str:
    """Shorten what has several lines, or other programs behind it."""
    if "_BASE_URL=" in command:
        return command.split()[0]
    return re.split(r" +-H ", command)[0].rstrip() if "curl" in command else command


def outline(page: str) -> dict[str, list[str]]:
    """Return what a translation has in common with its original."""
    lines = page.splitlines()
    code = [re.sub(r"\s+# .*", "", line) for line in lines if line.startswith("    ")]
    links = [Path(link).name for link in re.findall(r"\]\(([^)#]+)", page)]
    # A translation may show pictures with its own words, and byok's own lines of chats.
    pages = [link for link in links if not link.endswith(".png")]
    inline = re.findall(r"`(\[byok\](?= )|[^`\n]+)[^`\n]*`", page)
    return {
        "headings": re.findall(r"(?m)^(#+) ", page),
        "commands": code,
        "inline": sorted(inline),
        "links": sorted(link for link in pages if "README" not in link),
        "pictures": ["!"] * (len(links) - len(pages)),
        "rows": [str(line.count("|")) for line in lines if line.startswith("|")],
    }


@pytest.mark.parametrize("chinese", [*(ROOT / "docs" / "zh").iterdir()])
def test_a_chinese_page_is_in_step(chinese: Path) -> None:
    folder = ROOT if chinese.name == "README.md" else ROOT / "docs"
    original = folder / chinese.name
    assert outline(chinese.read_text("utf-8")) == outline(original.read_text("utf-8"))


@pytest.mark.parametrize(
    ("page", "part"),
    [
        ("# One\n\n## Two\n", "headings"),
        ("# One\n\n    byok serve\n", "commands"),
        ("# One\n\nRun `byok serve`.\n", "inline"),
        ("# One\n\n[two](docs/two.md)\n", "links"),
        ("# One\n\n| a | b |\n", "rows"),
    ],
)
def test_what_a_translation_lacks_is_seen(page: str, part: str) -> None:
    found, less = outline(page), outline("# One\n")
    assert {key for key in found if found[key] != less[key]} == {part}


def test_the_readme_fits_a_screen_and_opens_with_two_commands() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= 90
    commands = [line.split()[0] for line in lines if line.startswith("    ")]
    assert commands[:2] == ["scripts/serve", "scripts/test"]


@dataclass(frozen=True)
class Place:
    """A clone without its sources, with byok installed; a home and a project."""

    clone: Path
    home: Path
    project: Path
    port: int

    def check(self, *names: str) -> None:
        """Run commands one after the other; each works as it is written."""
        own = [name for name in names if self.is_own(name)]
        asked = [(shlex.split(self.here(written()[n])), COMMANDS[n].stdin) for n in own]
        python = str(self.clone / ".venv" / "bin" / "python")
        done = self.run(self.project, python, "-c", _FORKS, json.dumps(asked))
        assert done.returncode == 0, done.stderr
        ended = dict(zip(own, json.loads(done.stdout), strict=True))
        for name in names:
            if name not in ended:
                bash = self.here(written()[name])
                done = self.run(self.folder(name), "bash", "-ec", bash)
                ended[name] = [done.returncode, done.stdout, done.stderr]
            code, out, err = ended[name]
            assert code == 0, (name, out, err)
            says = COMMANDS[name].says.replace(PORT, str(self.port))
            assert says in out + err, (name, out, err)
            assert "Traceback" not in err, name

    def is_own(self, name: str) -> bool:
        """Tell whether a command needs nothing of a shell."""
        return name.startswith("byok ") and not {*"$|;&"} & {*written()[name]}

    def run(self, cwd: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            env=self.environment,
            cwd=cwd,
            timeout=SECONDS,
            check=False,
        )

    @contextmanager
    def serving(self, command: str) -> Iterator[str]:
        """Run a daemon, and give the line that it says; it is stopped in the end."""
        process = subprocess.Popen(
            ["bash", "-ec", self.here(command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            env=self.environment,
            cwd=self.folder(command),
        )
        limit = threading.Timer(SECONDS, process.kill)
        limit.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            limit.cancel()
            yield line
            process.terminate()  # bash has become byok, or byok has ended
            assert process.wait(SECONDS) == 0
        finally:
            limit.cancel()
            process.kill()
            process.communicate()

    def here(self, command: str) -> str:
        """Put this place into a command of the README."""
        for word, meant in (
            (PORT, str(self.port)),
            ("NAME", "groq"),
            ("DIR", str(self.project)),
            ("CODE", "upstream_auth"),
        ):
            command = re.sub(rf"\b{word}\b", meant, command)
        return command

    def folder(self, command: str) -> Path:
        of_clone = command.startswith(("scripts/", "curl"))
        return self.clone if of_clone else self.project

    @property
    def environment(self) -> dict[str, str]:
        return {
            **{k: v for k, v in os.environ.items() if k not in ("PYTHONPATH",)},
            "PATH": f"{self.clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "BYOK_HOME": str(self.home / "byok"),
            "BYOK_SERVER__PORT": str(self.port),
            "BYOK_VAULT_PASSPHRASE": "open sesame",
        }


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone whose virtual environment has the wheel; scripts find it set up."""
    pytest.importorskip("hatchling", reason="scripts/setup test installs it")
    clone = tmp_path_factory.mktemp("readme") / "clone"
    shutil.copytree(ROOT / "scripts", clone / "scripts")
    shutil.copy(ROOT / "pyproject.toml", clone)
    venv = clone / ".venv"
    install_wheel(build_wheel(clone.parent / "dist"), venv)
    summed = (clone / "pyproject.toml").read_bytes()
    stamp = subprocess.run(["cksum"], input=summed, capture_output=True, check=True)
    (venv / ".byok-run").write_bytes(stamp.stdout)
    program = venv / "bin" / "your-program"
    program.write_text(
        f"#!{venv / 'bin' / 'python'}\n"
        "import os\n"
        "asked = [{'role': 'user', 'content': 'Hello!'}]\n"
        "if 'OPENAI_BASE_URL' in os.environ:\n"
        "    from openai import OpenAI\n"
        "    done = OpenAI().chat.completions.create(model='echo', messages=asked)\n"
        "    print(done.choices[0].message.content)\n"
        "else:\n"
        "    from anthropic import Anthropic\n"
        "    create = Anthropic().messages.create\n"
        "    done = create(model='echo', messages=asked, max_tokens=99)\n"
        "    print(done.content[0].text)\n"
    )
    program.chmod(0o755)
    return clone


@pytest.fixture
def place(clone: Path, tmp_path: Path) -> Place:
    return make_place(clone, tmp_path / "user")


def make_place(clone: Path, home: Path) -> Place:
    project = make_project(home / "src" / "project")
    (project / "src").mkdir()
    (project / "src" / "x.py").write_text("def repair_arguments(): ...\n")
    return Place(clone, home, project, free_port())


def test_every_command_of_the_readme_is_run_or_has_a_reason_not_to_be() -> None:
    assert set(written()) == set(COMMANDS) | set(NOT_RUN)
    assert not set(COMMANDS) & set(NOT_RUN)


def names(kept: Callable[[Run], bool]) -> list[str]:
    return [name for name, how in COMMANDS.items() if kept(how)]


@pytest.mark.slow
def test_readme_commands_that_serve_work_as_written(place: Place) -> None:
    for name in names(lambda how: how.serves):
        with place.serving(written()[name]) as line:
            says = COMMANDS[name].says.replace(PORT, str(place.port))
            assert line.rstrip() == says, name


@pytest.mark.slow
def test_readme_commands_beside_a_daemon_work_as_written(place: Place) -> None:
    with place.serving("byok serve --upstream demo"):
        place.check(*names(lambda how: how.daemon and not how.alone))


@pytest.mark.slow
def test_readme_commands_that_change_the_daemon_work_as_written(place: Place) -> None:
    with place.serving("byok serve --upstream demo"):
        place.check(*names(lambda how: how.alone))


@pytest.mark.slow
def test_readme_commands_without_a_daemon_work_as_written(place: Place) -> None:
    place.check(*names(lambda how: not (how.daemon or how.serves)))


@pytest.mark.slow
def test_wheel_is_byokd_and_installs_what_byok_needs(place: Place) -> None:
    python = place.clone / ".venv" / "bin" / "python"
    script = (
        "import importlib.metadata as m, byok, byok.settings, pathlib\n"
        "print(m.version('byokd') == byok.__version__)\n"
        "print(pathlib.Path(byok.__file__).parent)\n"
        "print((pathlib.Path(byok.__file__).parent / 'py.typed').exists())\n"
        "print(len(byok.settings.example()) > 1000)\n"
    )
    done = subprocess.run(
        [python, "-c", script],
        capture_output=True,
        encoding="utf-8",
        env=place.environment,
        cwd=place.project,
        check=True,
    )
    same, where, typed, example = done.stdout.splitlines()
    assert (same, typed, example) == ("True", "True", "True")
    assert Path(where).is_relative_to(place.clone)
    assert sys.prefix not in where
