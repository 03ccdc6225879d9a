"""byok --help: a newcomer finds the command for what they want to do."""

from byok.cli.help_page import GROUPS
from tests.fakes.commands import Cli


def test_commands_stand_in_groups_and_flags_have_no_type(cli: Cli) -> None:
    page = cli("--help").out
    places = [page.find(f" {group} ") for group in GROUPS]
    assert -1 not in places
    assert places == sorted(places)
    commands = [name for row in GROUPS.values() for name in row.split()]
    for name in ("", *commands):
        shown = cli(*name.split(), "--help")
        assert (shown.code, "bool" in shown.out) == (0, False), name
