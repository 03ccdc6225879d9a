"""Pages that a feature has at a path of its own, such as /metrics."""

from aiohttp.web import Response

from byok.core.errors import BadRequest, NotAllowed
from byok.features.running import Features
from byok.server.http.protocol import note_token
from byok.server.http.reply import COMMON, HttpExchange


class FeaturePages:
    """Answers GET at the paths of features; a page has a token of its own."""

    def __init__(self, features: Features) -> None:
        self._features = features

    def serves(self, raw_path: str) -> bool:
        """Tell whether a feature has a page there."""
        return self._features.page_at(raw_path.partition("?")[0]) is not None

    async def answer(self, exchange: HttpExchange) -> Response:
        """Check the token, and write the page.

        Raises:
            NotAllowed: 401.
            BadRequest: 404, there is no such page any more.
        """
        request, record = exchange.request, exchange.record
        page = self._features.page_at(request.raw_path.partition("?")[0])
        if page is None:
            raise BadRequest("There is no such path.", code="not_found", status=404)
        record.endpoint = page.path
        if not page.token(request.headers.get("Authorization", "")):
            raise NotAllowed(
                "The token is missing or wrong.",
                code="unauthorized",
                hint=page.token_hint,
                status=401,
            )
        record.trusted = True
        note_token(request)
        if request.method not in ("GET", "HEAD"):
            error = BadRequest("Use GET.", code="method_not_allowed", status=405)
            refused = exchange.write_error(error)
            refused.headers["Allow"] = "GET"
            refused.force_close()  # its body stays unread
            return refused
        body = await page.write(self._features.numbers)
        return Response(
            body=body, headers={**COMMON, "Content-Type": page.content_type}
        )
