"""The workflow of the public forge runs the scripts on every supported system."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOW = ROOT / ".github/workflows/ci.yml"
SYSTEMS = {
    "MacOS": "macos-latest",
    "Microsoft :: Windows": "windows-latest",
    "POSIX :: Linux": "ubuntu-latest",
}


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    return read


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    read = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    table: dict[str, Any] = read["project"]
    return table


def classified(project: dict[str, Any], prefix: str) -> list[str]:
    given: list[str] = project["classifiers"]
    return [c.removeprefix(prefix) for c in given if c.startswith(prefix)]


def steps(workflow: dict[Any, Any], job: str) -> list[dict[str, Any]]:
    given: list[dict[str, Any]] = workflow["jobs"][job]["steps"]
    return given


def test_ci_tests_every_python_that_pyproject_names(
    workflow: dict[Any, Any], project: dict[str, Any]
) -> None:
    versions = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert versions == classified(project, "Programming Language :: Python :: ")
    assert project["requires-python"] == f">={versions[0]}"


def test_ci_tests_every_system_that_pyproject_names(
    workflow: dict[Any, Any], project: dict[str, Any]
) -> None:
    systems = classified(project, "Operating System :: ")
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]["os"]
    assert sorted(matrix) == sorted(SYSTEMS[system] for system in systems)


@pytest.mark.parametrize(
    ("job", "script"), [("check", "scripts/check"), ("test", "scripts/test")]
)
def test_ci_calls_the_scripts(workflow: dict[Any, Any], job: str, script: str) -> None:
    assert script in [step.get("run") for step in steps(workflow, job)]
    assert (ROOT / script).exists()


def test_ci_pins_actions_by_major_version(workflow: dict[Any, Any]) -> None:
    used = [
        step["uses"]
        for job in workflow["jobs"]
        for step in steps(workflow, job)
        if "uses" in step
    ]
    assert used
    assert [name for name in used if not re.fullmatch(r"[\w/-]+@v\d+", name)] == []


def test_ci_may_only_read_and_knows_no_secret(workflow: dict[Any, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in WORKFLOW.read_text("utf-8")


def test_a_release_is_built_by_the_script_and_published_without_a_secret() -> None:
    written = WORKFLOW.with_name("release.yml").read_text("utf-8")
    release = yaml.safe_load(written)
    runs = [step.get("run", "") for step in steps(release, "build")]
    assert any(run.startswith("scripts/release --tag ") for run in runs)
    assert release[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
    assert release["permissions"] == {"contents": "read"}
    assert release["jobs"]["publish"]["permissions"]["id-token"] == "write"
    assert "secrets." not in written
