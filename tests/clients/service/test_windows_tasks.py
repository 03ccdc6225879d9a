"""The task of Windows as text, and what schtasks is told and says."""

import ast
from pathlib import Path
from subprocess import list2cmdline
from xml.etree import ElementTree

import pytest

from byok.clients.service.base import CommandResult, Launch, ServiceState, find_mark
from byok.clients.service.systems import FILE, WindowsTasks
from tests.fakes.launches import HARD_NAMES, make_launch

SYSTEM = WindowsTasks(Path("/state"), "DOMAIN\\u & v")
NAMES = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}


def windows_launch(name: str, environment: dict[str, str]) -> Launch:
    python = f"C:\\Program Files\\{name}\\Scripts\\python.exe"
    return Launch(python, ("--config", f"C:\\{name}"), environment, (), 1, "mark")


def text_of(content: str, path: str) -> str:
    # The declaration names the encoding of the file, not that of this text.
    tree = ElementTree.fromstring(content.partition("?>")[2])
    return tree.findtext(path, "", NAMES)


@pytest.mark.parametrize("name", HARD_NAMES)
def test_task_runs_what_installed_it_without_a_window(name: str) -> None:
    [file] = SYSTEM.render(windows_launch(name, {}))
    run = "t:Actions/t:Exec/t:"
    program = text_of(file.content, f"{run}Command")
    assert program == f"C:\\Program Files\\{name}\\Scripts\\pythonw.exe"
    assert text_of(file.content, f"{run}Arguments") == list2cmdline(
        ["-P", "-m", "byok", "serve", "--config", f"C:\\{name}"]
    )


@pytest.mark.parametrize("name", HARD_NAMES)
def test_task_sets_byok_home_itself(name: str) -> None:
    environment = {"BYOK_HOME": f"D:\\{name}"}
    [file] = SYSTEM.render(windows_launch(name, environment))
    given = text_of(file.content, "t:Actions/t:Exec/t:Arguments")
    code = f"import os; os.environ.update({environment!r}); "
    code += "from byok.cli import main; main()"
    ast.parse(code)
    expected = ["-P", "-c", code, "serve", "--config", f"C:\\{name}"]
    assert given == list2cmdline(expected)


def test_task_starts_at_logon_without_an_administrator() -> None:
    [file] = SYSTEM.render(make_launch())
    assert (file.path, file.encoding) == (Path("/state") / FILE, "utf-16")
    assert file.content.startswith('<?xml version="1.0" encoding="UTF-16"?>')
    facts = {
        "t:Triggers/t:LogonTrigger/t:UserId": SYSTEM.user,
        "t:Principals/t:Principal/t:UserId": SYSTEM.user,
        "t:Principals/t:Principal/t:LogonType": "InteractiveToken",
        "t:Principals/t:Principal/t:RunLevel": "LeastPrivilege",
        "t:Settings/t:Hidden": "true",
        "t:Settings/t:ExecutionTimeLimit": "PT0S",
        "t:Settings/t:MultipleInstancesPolicy": "IgnoreNew",
        "t:Settings/t:RestartOnFailure/t:Count": "5",
        "t:Settings/t:StopIfGoingOnBatteries": "false",
    }
    assert {path: text_of(file.content, path) for path in facts} == facts
    assert find_mark(file.content) == make_launch().mark


def test_commands_name_the_task() -> None:
    path = str(SYSTEM.paths[0])
    assert [c.arguments[1:] for c in SYSTEM.install] == [
        ("/create", "/tn", "byok", "/xml", path, "/f"),
        ("/end", "/tn", "byok"),
        ("/run", "/tn", "byok"),
    ]
    assert [c.arguments[1:] for c in SYSTEM.remove] == [
        ("/end", "/tn", "byok"),
        ("/delete", "/tn", "byok", "/f"),
    ]


ROW = (
    '"PC","\\byok","N/A","{status}","Interactive only","11/22/2026 9:00:00 AM",'
    '"{code}","byok","C:\\x\\pythonw.exe -P -m byok serve"\r\n'
)
XML = "<Task><Settings><Enabled>{}</Enabled></Settings></Task>"


@pytest.mark.parametrize(
    ("row", "enabled", "state"),
    [
        (ROW.format(status="Running", code=267009), "true", ServiceState(True, True)),
        (ROW.format(status="Wird ausgeführt", code=267009), "true", (True, True)),
        (ROW.format(status="Ready", code=0), "true", (True, False)),
        (ROW.format(status="Running", code="0x41301"), "false", (False, True)),
        ("", "true", (True, False)),
    ],
)
def test_state_is_read_whatever_the_language(
    row: str, enabled: str, state: tuple[bool, bool]
) -> None:
    results = [CommandResult(0, row), CommandResult(0, XML.format(enabled))]
    assert SYSTEM.read_state(results)[:2] == state[:2]
