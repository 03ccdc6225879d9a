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
_MAX_REMEMBERED = 100
PLACEHOLDER = "default"
NO_ALIASES: Mapping[str, str] = MappingProxyType({})
_FIRST_LIST_SECONDS = 2.0  # for lists that are on their way


class Router:
    """Chooses upstream and model by the model id that a client sends.

    `byok:<upstream>:<model>` goes to that upstream or nowhere, an alias to its model.
    Agents give their helpers other names, such as sonnet4.5: the model of that family
    whose name is closest answers, else the default model. `substitutes` are the names
    that were asked for, with the ids of who answers.
    """

    def __init__(
        self,
        upstreams: Mapping[str, Upstream],
        catalog: Catalog,
        default: str = "",
        aliases: Mapping[str, str] = NO_ALIASES,
        local: Collection[str] = (),
    ) -> None:
        """Take what there is; `local` are the names of upstreams on this machine."""
        self._upstreams = upstreams
        self._catalog = catalog
        self._aliases = aliases
        self._default = self.resolve(default)
        self._named = self._find(self._default)
        self._local = local
        self.substitutes: dict[str, str] = {}

    def list_models(self) -> list[ListedModel]:
        """Return the aliases, and the models of all upstreams as far as known."""
        pairs = ((alias, split_id(wanted)) for alias, wanted in self._aliases.items())
        named = [ListedModel(*parts, alias) for alias, parts in pairs if parts]
        return [*named, *self._catalog.list_models()]

    def default(self) -> ListedModel:
        """Return the default model.

        It is the user's choice, else the default of the first upstream, else a
        placeholder for the first model that this upstream lists.
        """
        if self._default:
            return self._named or self._upstream_listing(self._default)
        name = next(iter(self._upstreams))
        return ListedModel(name, self._catalog[name].default or PLACEHOLDER)

    async def choose(self, model_id: str) -> Destination:
        """Return the destination of a model id; an unconfigured upstream refuses."""
        model_id = self.resolve(model_id)
        if nowhere := self._refusing_upstream(model_id):
            return nowhere
        found, instead_of = self._find(model_id), ""
        if found is None:
            await self._look_up_default()
            default = self.default()
            found = self._closest(model_id, default)
            instead_of = "" if model_id == found.model else model_id[:MAX_ID_LENGTH]
        if self._is_placeholder(found):
            name = found.upstream
            found = ListedModel(name, await self._some_model(name))
            if found.model == PLACEHOLDER and self._catalog[name].is_empty:
                vendor = self._catalog[name].vendor
                return Destination(upstream_without_models(name, vendor), found.model)
        if instead_of:
            self._note_substitute(instead_of, found)
        return Destination(self._upstreams[found.upstream], found.model)

    async def choose_listed(self, model_id: str) -> Destination:
        """Return the destination of a model id, or of the name of a listed model."""
        model_id = self.resolve(model_id)
        if nowhere := self._refusing_upstream(model_id):
            return nowhere
        if self._find(model_id) is None and model_id:
            if not any(m.model == model_id for m in self._catalog.list_models()):
                await self._catalog.settle(_FIRST_LIST_SECONDS)
            for listed in self._catalog.list_models():
                if listed.model == model_id:
                    return Destination(self._upstreams[listed.upstream], model_id)
        return await self.choose(model_id)

    def default_for(self, purpose: Purpose) -> ListedModel:
        """Return the model for a job where neither user nor client chose one."""
        found = self.default()
        if self._default:
            return found
        model = self._catalog[found.upstream].model_for(purpose)
        return ListedModel(found.upstream, model or found.model)

    def edits_here(self) -> bool:
        """Tell whether next edits go to a model on this machine made for them."""
        model = self.default_for(Purpose.NEXT_EDIT)
        return model.upstream in self._local and bool(format_of(model.model))

    def choose_for(self, purpose: Purpose, found: Destination) -> Destination:
        """Return who does a job instead of a default model that nobody chose."""
        name = found.upstream.name
        if self._default or name not in self._upstreams:
            return found
        if found.model != self._catalog[name].default:
            return found
        return replace(found, model=self._catalog[name].model_for(purpose))

    def resolve(self, model_id: str) -> str:
        """Return the id that an alias stands for; any other id as it is.

        `<upstream>:<model>`, as lists show it, is an id too, unless a model has that
        name.
        """
        found = self._aliases.get(model_id.removeprefix(PREFIX), model_id)
        name, _, model = found.partition(":")
        if not model or name not in self._upstreams or found.startswith(PREFIX):
            return found
        listed = any(known.model == found for known in self._catalog.list_models())
        return found if listed else PREFIX + found

    async def _look_up_default(self) -> None:
        """Wait for the lists if only they tell which upstream has the default model."""
        known = not self._default or self._named
        if known or any(m.model == self._default for m in self._catalog.list_models()):
            return
        self._catalog.refresh()
        await self._catalog.settle(5.0)

    async def _some_model(self, name: str) -> str:
        """Return a model of an upstream without a default, from its list."""
        if known := self._catalog[name].default:
            return known
        self._catalog.refresh()
        await self._catalog.settle(5.0)
        listed = self._catalog[name].default
        return listed or self._catalog[name].presumed_default or PLACEHOLDER

    def _find(self, model_id: str) -> ListedModel | None:
        """Parse `byok:<upstream>:<model>`; the model need not be listed."""
        if len(model_id) > MAX_ID_LENGTH:  # it would be kept, here and there
            return None
        name, model = split_id(model_id) or ("", "")
        return ListedModel(name, model) if name in self._upstreams else None

    def _refusing_upstream(self, model_id: str) -> Destination | None:
        """Return a refusing upstream for the id of one that is not configured."""
        if not (parts := split_id(model_id)) or parts[0] in self._upstreams:
            return None
        return Destination(unconfigured_upstream(parts[0]), parts[1])

    def _upstream_listing(self, model: str) -> ListedModel:
        """Find the upstream that lists a model, else the first one."""
        listed = (m for m in self._catalog.list_models() if m.model == model)
        return next(listed, ListedModel(next(iter(self._upstreams)), model))

    def _is_placeholder(self, found: ListedModel) -> bool:
        known = self._catalog[found.upstream].names
        return found.model == PLACEHOLDER and PLACEHOLDER not in known

    def _closest(self, name: str, default: ListedModel) -> ListedModel:
        """Return the model that comes closest to an unknown name, else the default.

        Code of who has chosen a model on this machine stays on it.
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

    def _note_substitute(self, name: str, found: ListedModel) -> None:
        """Log once who answers instead of an unknown model, and how to choose it."""
        if name in self.substitutes or len(self.substitutes) >= _MAX_REMEMBERED:
            return
        self.substitutes[name] = found.id
        _log.info(
            "unknown model %.80r: %s answers; to choose, set under [routing.aliases]: "
            "%.80r = %r",
            *(name, found.id, name, found.id),
        )


# Which upstreams the chats of each window of an editor went to.
#
# byok's own questions about code go nowhere else (`short_question.py`): who chooses a
# model on this machine in one window wants the code of that window to stay here,
# whatever the default model is.


_MOST = 256


class ChatPlaces:
    """The upstreams that were chosen for chats since the start, by window.

    Windows are known by what their client calls them. The least recently used of them
    are forgotten.
    """

    def __init__(self) -> None:
        self._seen = BoundedMap[str, frozenset[str]](_MOST)

    def note(self, window: str, upstream: str) -> None:
        """Remember that a chat of a window goes to an upstream; "" is no window."""
        if window:
            self._seen[window] = (self._seen.get(window) or frozenset()) | {upstream}

    def find(self, window: str) -> frozenset[str] | None:
        """Return the upstreams of a window's chats; None if it had no chat yet."""
        return self._seen.get(window)
