"""byok init: set byok up, from a fresh installation to a connected editor."""

from typing import Annotated

import typer

from byok.cli.command_context import UpstreamOption
from byok.cli.terminal import YesOption


def init(
    upstream: UpstreamOption = "",
    yes: YesOption = False,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Do not wait for the editor's first request."),
    ] = False,
) -> None:
    """Set up byok: find models and keys, write the settings, start, connect an editor.

    It lists local servers and keys for you to choose from, picks a model for each
    purpose, and only adds lines to the settings file. Every step asks first and can be
    repeated; --yes uses the best that it finds. Without a terminal, --upstream is
    required unless there is only one.
    """
    from byok.cli.init_steps import set_up  # it loads nearly everything

    set_up(upstream, yes=yes, no_wait=no_wait)
