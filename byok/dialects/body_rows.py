"""Remedies about tools, tool calls and pictures, for bodies of any shape."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from byok.chat import Json
from byok.dialects.chat_changes import shows_picture
from byok.dialects.model_facts import ModelFacts
from byok.dialects.old_refused_tools import (
    OfferedTool,
    find_description_limit,
    find_limit,
    find_tool,
    version_of,
)
from byok.dialects.parameter_rows import name_parameter
from byok.dialects.remedies import (
    Body,
    RefusedRequest,
    Remedy,
    RemedyRow,
    RemedyTable,
)
from byok.errors import RefusalKind
from byok.truncate import truncate_middle

_TOO_MANY = "most tools"


@dataclass(frozen=True, slots=True)
class BodyShape:
    """Where the bodies of a dialect hold tools, calls and pictures.

    Attributes:
        tools: returns the definitions of the tools offered, each with `name` and
            `description`; tools of the API itself are not among them.
        offer: returns a body with these definitions instead, and where there are none
            without all fields about tools.
        called: returns the names of the tools that were called in the history.
        begins: tells whether this is the first turn of a conversation.
        has_calls: tells whether the history has tool calls or results.
        calls_as_text: returns a body whose history has text in their places.
        has_pictures: tells whether the body has a picture anywhere.
        shows: tells whether the newest turn has a picture.
        pictures_as_text: returns a body with a sentence in the place of each picture.
        parameters: the parameters that a refusal of all tools may really be about.
        schema: the field of a definition that holds the schema.
    """

    tools: Callable[[Json], list[Body]]
    offer: Callable[[Json, Sequence[Json]], Body]
    called: Callable[[Json], set[str]]
    begins: Callable[[Json], bool]
    has_calls: Callable[[Json], bool]
    calls_as_text: Callable[[Json], Body]
    has_pictures: Callable[[Json], bool]
    shows: Callable[[Json], bool]
    pictures_as_text: Callable[[Json], Body]
    parameters: tuple[str, ...] = ()
    schema: str = "parameters"


@dataclass(frozen=True, slots=True)
class _BodyChanges:
    """What the rows find in a refused body of one shape, and how they change it."""

    shape: BodyShape

    def find_most_tools(self, refused: RefusedRequest) -> tuple[str, str] | None:
        if refused.error.kind is not RefusalKind.TOO_MANY_TOOLS:
            return None
        most = find_limit(refused.text, len(self._list_tools(refused)))
        return (str(most), "") if most else None

    def keep_most_tools(self, body: Json, remedy: Remedy) -> Body:
        """Keep at most so many tools, in their order; tools in the history come first.

        A tool that was called stays offered, so that the selection is stable from turn
        to turn.
        """
        tools, most = self.shape.tools(body), int(remedy.what)
        if len(tools) <= most:
            return dict(body)
        called = self.shape.called(body)
        ranked = sorted(tools, key=lambda tool: tool["name"] not in called)
        kept = {tool["name"] for tool in ranked[:most]}
        return self.shape.offer(body, [tool for tool in tools if tool["name"] in kept])

    def find_description_limit(self, refused: RefusedRequest) -> tuple[str, str] | None:
        longest = find_description_limit(refused.text)
        return (str(longest), "") if longest and self._list_tools(refused) else None

    def shorten_descriptions(self, body: Json, remedy: Remedy) -> Body:
        """Truncate the descriptions of tools, not those of their parameters."""
        longest = int(remedy.what)
        tools = [_shorten_description(tool, longest) for tool in self.shape.tools(body)]
        return self.shape.offer(body, tools) if tools else dict(body)

    def find_tool(self, refused: RefusedRequest) -> tuple[str, str] | None:
        if refused.error.kind is not RefusalKind.BAD_SCHEMA:
            return None
        found = find_tool(refused.text, self._list_tools(refused))
        return (found.name, found.version) if found else None

    def drop_tool(self, body: Json, remedy: Remedy) -> Body:
        """Remove one tool, unless its definition has changed."""
        tools = self.shape.tools(body)
        kept = [
            tool
            for tool in tools
            if tool["name"] != remedy.what or version_of(tool) != remedy.version
        ]
        return self.shape.offer(body, kept) if len(kept) < len(tools) else dict(body)

    def find_no_tools(self, refused: RefusedRequest) -> tuple[str, str] | None:
        named = name_parameter(refused, (*self.shape.parameters, *refused.extra))
        if named in self.shape.parameters and "tool" in named:
            return None  # without that one it may take tools
        wanted = refused.error.kind is RefusalKind.NO_TOOLS
        return (
            (refused.error.hint, "") if wanted and refused.body.get("tools") else None
        )

    def drop_tools(self, body: Json, _: Remedy) -> Body:
        """Remove all tools, and turn the calls in the history into text."""
        return self.shape.calls_as_text(self.shape.offer(body, ()))

    def find_calls(self, refused: RefusedRequest) -> tuple[str, str] | None:
        kinds = (RefusalKind.NO_TOOLS, RefusalKind.NEEDS_TOOLS)
        bare = not refused.body.get("tools") and self.shape.has_calls(refused.body)
        return ("", "") if bare and refused.error.kind in kinds else None

    def write_calls(self, body: Json, _: Remedy) -> Body:
        return dict(body) if body.get("tools") else self.shape.calls_as_text(body)

    def find_pictures(self, refused: RefusedRequest) -> tuple[str, str] | None:
        refuses = refused.error.kind is RefusalKind.NO_IMAGES
        return ("", "") if refuses and self.shape.has_pictures(refused.body) else None

    def write_pictures(self, body: Json, _: Remedy) -> Body:
        return self.shape.pictures_as_text(body)

    def _list_tools(self, refused: RefusedRequest) -> list[OfferedTool]:
        """Return the tools offered; tools that the user added may be others."""
        if "tools" in refused.extra:
            return []
        return [
            OfferedTool(tool["name"], tool.get(self.shape.schema), version_of(tool))
            for tool in self.shape.tools(refused.body)
        ]


def body_rows(shape: BodyShape) -> RemedyTable:
    """Return the rows about tools, calls and pictures.

    What a schema is refused for may have the name of a parameter, so these rows come
    before those of parameters.
    """
    changes = _BodyChanges(shape)
    return {
        _TOO_MANY: RemedyRow(
            changes.find_most_tools,
            changes.keep_most_tools,
            "This model takes {what} tools at most, so the last ones were left out. "
            "Switch off MCP servers that you do not need.",
            lambda chat: chat.is_first_turn,
            teaches=lambda remedy: ModelFacts("", most_tools=int(remedy.what)),
        ),
        "descriptions": RemedyRow(
            changes.find_description_limit, changes.shorten_descriptions
        ),
        "tool": RemedyRow(
            changes.find_tool,
            changes.drop_tool,
            "Tools whose parameters this model refuses were left out: {what}.",
            lambda chat: chat.is_first_turn,
        ),
        "no tools": RemedyRow(
            changes.find_no_tools,
            changes.drop_tools,
            "This model was asked without tools, because it refuses them. {what}",
            lambda chat: chat.is_first_turn,
            is_for_agents=True,
            teaches=lambda _: ModelFacts("", tools=False),
        ),
        "calls": RemedyRow(changes.find_calls, changes.write_calls),
        "pictures": RemedyRow(
            changes.find_pictures,
            changes.write_pictures,
            "This model does not support images: a placeholder replaces them.",
            shows_picture,
            teaches=lambda _: ModelFacts("", images=False),
        ),
    }


def _shorten_description(tool: Json, longest: int) -> Json:
    description = tool["description"]
    if len(description) <= longest:
        return tool
    return {**tool, "description": truncate_middle(description, longest)[:longest]}
