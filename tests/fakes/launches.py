"""What services are to run, with paths that are hard to write down."""

from pathlib import Path

from byok.clients.service.base import Launch, mark_of

STATE = Path("/home/u/.local/state/byok")
# Each is a valid path somewhere; a file of a service must hold it unchanged.
HARD_NAMES = [
    "plain",
    "with space",
    "100%n %h",
    "$HOME ${HOME} $$",
    "back\\slash \\n",
    "quo\"te's",
    "<&>]]>",
    "#;:=,@-+!|",
    "ü 漢 🍞",
]


def make_launch(
    name: str = "plain", folder: Path = Path("/opt"), *, sandbox: bool = True
) -> Launch:
    """Return a launch with this name in all of its paths."""
    return Launch(
        python=str(folder / name / "python"),
        options=("--config", str(folder / name / "config.toml")),
        environment={"BYOK_HOME": str(folder / name), "PATH": "/usr/bin:/bin"},
        folders=(folder / name,),
        port=8317,
        mark=mark_of(STATE),
        sandbox=sandbox,
    )
