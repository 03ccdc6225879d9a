"""The pages of --help: commands in groups, flags without a type."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import DefaultPlaceholder

# In the order in which a user meets them.
GROUPS = {
    "Set up": ("init connect disconnect keys config token service upgrade uninstall"),
    "Run": "serve status dashboard stop restart reload",
    "Look at requests": "log usage",
    "Models and prompts": "models probe prompts",
    "Code search": "index search mcp embed",
    "When something is wrong": "doctor explain capture replay report version",
}


class _Command(TyperCommand):
    """A command on whose page flags have no type."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters."""
        return _hide_types_of_flags(super().get_params(ctx))


class HelpGroup(TyperGroup):
    """The same for a command of commands."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters."""
        return _hide_types_of_flags(super().get_params(ctx))


def arrange_help(app: typer.Typer) -> None:
    """Put the commands of an app into groups, in the order of `GROUPS`."""
    groups = {name: group for group, row in GROUPS.items() for name in row.split()}
    order = [*groups]
    for command in app.registered_commands:
        command.rich_help_panel = groups[str(command.name)]
    for group in app.registered_groups:
        group.rich_help_panel = groups[str(group.name)]
    app.registered_commands.sort(key=lambda one: order.index(str(one.name)))
    app.info.cls = HelpGroup
    _use_classes(app)


def _use_classes(app: typer.Typer) -> None:
    for command in app.registered_commands:
        command.cls = _Command
    for group in app.registered_groups:
        below = group.typer_instance
        if below is not None:
            if isinstance(below.info.cls, DefaultPlaceholder):
                below.info.cls = HelpGroup
            _use_classes(below)


def _hide_types_of_flags(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params
