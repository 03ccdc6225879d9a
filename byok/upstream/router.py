"""Routing: from the model id that a client sends to an upstream and its model."""

import logging
from collections.abc import Collection, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.routing import MAX_ID_LENGTH, PREFIX, ListedModel, Purpose, split_id
from byok.dialects.default_models import find_closest
from byok.dialects.next_edit_formats import format_of
from byok.upstream.base import Destination, Upstream
from byok.upstream.catalog import Catalog
from byok.upstream.demo import unconfigured_upstream, upstream_without_models

_log = logging.getLogger(__name__)
PLACEHOLDER = "default"
NO_ALIASES: Mapping[str, str] = MappingProxyType({})
_MAX_SUBSTITUTES = 100
_MAX_WINDOWS = 256
_LISTED_NAME_WAIT = 2.0  # seconds for lists that are being fetched
_DEFAULT_WAIT = 5.0


class Router:
    """Chooses upstream and model by the model id that a client sends.

    `byok:<upstream>:<model>` goes to that upstream or nowhere, an alias to its model.
    Agents give their helpers other names, such as sonnet4.5: the model of that family
    whose name is closest answers, else the default model. `substitutes` maps such names
    to the ids of the models that answer.
    """

    def __init__(
        self,
        upstreams: Mapping[str, Upstream],
        catalog: Catalog,
        default: str = "",
        aliases: Mapping[str, str] = NO_ALIASES,
        local: Collection[str] = (),
    ) -> None:
        """Set up routing; `local` are the names of upstreams on this machine."""
        self._upstreams = upstreams
        self._catalog = catalog
        self._aliases = aliases
        self._default = self.resolve(default)
        self._named_default = self._parse_id(self._default)
        self._local = local
        self.substitutes: dict[str, str] = {}

    def list_models(self) -> list[ListedModel]:
        """Return the aliases, and the models of all upstreams as far as known."""
        pairs = ((alias, split_id(model)) for alias, model in self._aliases.items())
        aliased = [ListedModel(*parts, alias) for alias, parts in pairs if parts]
        return [*aliased, *self._catalog.list_models()]

    def default(self) -> ListedModel:
        """Return the default model.

        It is the user's choice, else the default of the first upstream, else a
        placeholder for the first model that this upstream lists.
        """
        name = next(iter(self._upstreams))
        if model := self._default:  # of the upstream that lists it, else of the first
            listed = (m for m in self._catalog.list_models() if m.model == model)
            return self._named_default or next(listed, ListedModel(name, model))
        return ListedModel(name, self._catalog[name].default or PLACEHOLDER)

    async def choose(self, model_id: str) -> Destination:
        """Return the destination of a model id; an unconfigured upstream refuses."""
        model_id = self.resolve(model_id)
        if refusing := self._refusing_upstream(model_id):
            return refusing
        model, unknown_name = self._parse_id(model_id), ""
        if model is None:
            await self._look_up_default()
            default = self.default()
            model = self._find_closest(model_id, default)
            unknown_name = "" if model_id == model.model else model_id[:MAX_ID_LENGTH]
        name = model.upstream
        if model.model == PLACEHOLDER and PLACEHOLDER not in self._catalog[name].names:
            model = ListedModel(name, await self._any_model(name))
            if model.model == PLACEHOLDER and self._catalog[name].is_empty:
                vendor = self._catalog[name].vendor
                return Destination(upstream_without_models(name, vendor), model.model)
        if unknown_name:
            self._record_substitute(unknown_name, model)
        return Destination(self._upstreams[model.upstream], model.model)

    async def choose_listed(self, model_id: str) -> Destination:
        """Return the destination of a model id, or of the name of a listed model."""
        model_id = self.resolve(model_id)
        if refusing := self._refusing_upstream(model_id):
            return refusing
        if self._parse_id(model_id) is None and model_id:
            if not any(m.model == model_id for m in self._catalog.list_models()):
                await self._catalog.settle(_LISTED_NAME_WAIT)
            for listed in self._catalog.list_models():
                if listed.model == model_id:
                    return Destination(self._upstreams[listed.upstream], model_id)
        return await self.choose(model_id)

    def default_for(self, purpose: Purpose) -> ListedModel:
        """Return the model for a job for which neither user nor client chose one."""
        default = self.default()
        if self._default:
            return default
        model = self._catalog[default.upstream].model_for(purpose)
        return ListedModel(default.upstream, model or default.model)

    def edits_here(self) -> bool:
        """Tell whether next edits go to a model on this machine made for them."""
        model = self.default_for(Purpose.NEXT_EDIT)
        return model.upstream in self._local and bool(format_of(model.model))

    def choose_for(self, purpose: Purpose, destination: Destination) -> Destination:
        """Return the model for a job, if the destination is an unchosen default."""
        name = destination.upstream.name
        if self._default or name not in self._upstreams:
            return destination
        if destination.model != self._catalog[name].default:
            return destination
        return replace(destination, model=self._catalog[name].model_for(purpose))

    def resolve(self, model_id: str) -> str:
        """Return the id that an alias stands for, and any other id unchanged.

        `<upstream>:<model>`, as lists show it, is an id too, unless a model has that
        name.
        """
        resolved = self._aliases.get(model_id.removeprefix(PREFIX), model_id)
        name, _, model = resolved.partition(":")
        if not model or name not in self._upstreams or resolved.startswith(PREFIX):
            return resolved
        is_listed = any(m.model == resolved for m in self._catalog.list_models())
        return resolved if is_listed else PREFIX + resolved

    async def _look_up_default(self) -> None:
        """Wait for the lists if only they tell which upstream has the default model."""
        default = self._default
        if not default or self._named_default:
            return
        if any(m.model == default for m in self._catalog.list_models()):
            return
        self._catalog.refresh()
        await self._catalog.settle(_DEFAULT_WAIT)

    async def _any_model(self, name: str) -> str:
        """Return a model of an upstream without a default, from its list."""
        if model := self._catalog[name].default:
            return model
        self._catalog.refresh()
        await self._catalog.settle(_DEFAULT_WAIT)
        listed = self._catalog[name].default
        return listed or self._catalog[name].presumed_default or PLACEHOLDER

    def _parse_id(self, model_id: str) -> ListedModel | None:
        """Parse `byok:<upstream>:<model>`; the model need not be listed."""
        if len(model_id) > MAX_ID_LENGTH:  # callers store ids
            return None
        name, model = split_id(model_id) or ("", "")
        return ListedModel(name, model) if name in self._upstreams else None

    def _refusing_upstream(self, model_id: str) -> Destination | None:
        """Return a refusing upstream for the id of one that is not configured."""
        if not (parts := split_id(model_id)) or parts[0] in self._upstreams:
            return None
        return Destination(unconfigured_upstream(parts[0]), parts[1])

    def _find_closest(self, name: str, default: ListedModel) -> ListedModel:
        """Return the model whose name is closest to an unknown one, else the default.

        If the default model is on this machine, so is the result: code stays here.
        """
        if name in ("", default.model) or len(name) > MAX_ID_LENGTH:
            return default
        models = [
            model
            for model in self.list_models()
            if default.upstream not in self._local or model.upstream in self._local
        ]
        models.sort(key=lambda model: model.upstream != default.upstream)
        index = find_closest(name, [model.label for model in models])
        return default if index is None else replace(models[index], alias="")

    def _record_substitute(self, name: str, model: ListedModel) -> None:
        """Log once which model answers instead of an unknown one, and how to choose."""
        if name in self.substitutes or len(self.substitutes) >= _MAX_SUBSTITUTES:
            return
        self.substitutes[name] = model.id
        _log.info(
            "unknown model %.80r: %s answers; to choose, set under [routing.aliases]: "
            "%.80r = %r",
            *(name, model.id, name, model.id),
        )


class ChatPlaces:
    """The upstreams that chats went to since the start, by window of an editor.

    byok's own questions about code go nowhere else (`own_questions.py`): a user who
    chooses a model on this machine in one window wants the code of that window to stay
    here, whatever the default model is.

    The key of a window is the name that its client gives it. The least recently used
    windows are forgotten.
    """

    def __init__(self) -> None:
        self._upstreams = BoundedMap[str, frozenset[str]](_MAX_WINDOWS)

    def note(self, window: str, upstream: str) -> None:
        """Record that a chat of a window goes to an upstream; "" is no window."""
        if window:
            earlier = self._upstreams.get(window) or frozenset()
            self._upstreams[window] = earlier | {upstream}

    def find(self, window: str) -> frozenset[str] | None:
        """Return the upstreams of a window's chats; None if it had no chat yet."""
        return self._upstreams.get(window)
