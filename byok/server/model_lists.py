"""The lists of models: for the editor's clients, and for OpenAI's."""

from dataclasses import dataclass

from byok.augment.models import get_models, pauses
from byok.chat import Json
from byok.config.sections import CompletionSettings
from byok.server.openai_api import model_list, one_model
from byok.upstream.catalog import Catalog
from byok.upstream.router import Router

_FIRST_LIST_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class ModelLists:
    """Writes what is known of the models; unknown lists are waited for a moment."""

    catalog: Catalog
    router: Router
    settings: CompletionSettings

    async def for_editor(self, body: Json) -> Json:
        """Return the answer of `/get-models`; its body says nothing that counts."""
        del body
        await self._refresh()
        own = self.settings
        flags = pauses(chat_input=own.chat_input, next_edit=own.next_edit)
        return get_models(self.router.list_models(), self.router.default(), flags)

    async def for_openai(self, wanted: str, *, is_for_codex: bool = False) -> Json:
        """Return the answer of `GET /v1/models`, or of one model if it is wanted.

        Raises:
            BadRequest: 404, no such model is known.
        """
        await self._refresh()
        listed = self.router.list_models()
        if wanted:
            return one_model(listed, wanted)
        return model_list(listed, is_for_codex=is_for_codex)

    async def _refresh(self) -> None:
        """Use what is known of the models; wait a moment where that is nothing."""
        self.catalog.refresh()
        if not self.catalog.list_models():
            await self.catalog.settle(_FIRST_LIST_SECONDS)
