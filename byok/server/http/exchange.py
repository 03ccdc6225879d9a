"""One HTTP request on its way through the server."""

from dataclasses import dataclass

from aiohttp.web import BaseRequest, Response

from byok.errors import ByokError
from byok.record import RequestRecord
from byok.redact import Redactor
from byok.server.http.guard import Requester
from byok.server.http.reply import error_response
from byok.server.openai_api import client_api


@dataclass(slots=True)
class HttpExchange:
    """A request, its record, and how its errors are written.

    `requester` is set once the token was checked.
    """

    request: BaseRequest
    record: RequestRecord
    redactor: Redactor
    requester: Requester = Requester.CLIENT

    @property
    def request_id(self) -> str:
        """What names the request in answers and in the log."""
        return self.record.request_id

    def write_error(self, error: ByokError) -> Response:
        """Write an error as this client reads it, and note it."""
        self.record.note_error(error)
        kind = client_api(self.request.raw_path)
        return error_response(error, self.request_id, self.redactor, kind)
