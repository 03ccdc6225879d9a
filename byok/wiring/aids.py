"""What models add to code search, as the settings say; what is off is not imported."""

from functools import partial

from byok.code_query import RerankMode
from byok.config import Settings
from byok.prompts.prompt_set import PromptSet
from byok.retrieval.model_aids import ModelAids, Rerank, Translate
from byok.routing import EndpointGroup, ServedBy
from byok.upstream.fallback import Fallbacks
from byok.upstream.question_routes import QuestionRoutes


def make_aids(
    settings: Settings, fallbacks: Fallbacks, prompts: PromptSet, before: ModelAids
) -> ModelAids:
    """Return the aids for these settings; the vectors are those of `before`."""
    routing = settings.routing
    chats_here = routing.official.where(EndpointGroup.CHAT) is ServedBy.LOCAL
    routes = QuestionRoutes(fallbacks, routing.models.chat if chats_here else None)
    return ModelAids(
        translate=_translate(settings, routes, prompts),
        rerank=_rerank(settings, routes, prompts),
        vectors=before.vectors,
    )


def _translate(
    settings: Settings, routes: QuestionRoutes, prompts: PromptSet
) -> Translate | None:
    if not (small := settings.routing.models.small):
        return None
    from byok.retrieval.translation import ModelTranslate
    from byok.upstream.short_question import ShortQuestion

    return ModelTranslate(ShortQuestion(partial(routes.find, small)), prompts)


def _rerank(
    settings: Settings, routes: QuestionRoutes, prompts: PromptSet
) -> Rerank | None:
    if settings.retrieval.rerank is RerankMode.OFF:
        return None
    from byok.retrieval.rerank import ModelRerank
    from byok.upstream.short_question import ShortQuestion

    return ModelRerank(
        ShortQuestion(partial(routes.find, settings.routing.models.rerank)), prompts
    )
