"""One line in the log for each request: what was asked, the status, what it took."""

import logging

from byok.record import RequestRecord

_access = logging.getLogger("byok.access")
_LONGEST = 100  # characters of a model's id


class AccessLog:
    """Observer that writes the access log; it asks for no bytes.

    What came without the token, and what byok's own commands ask, is for `debug` only:
    neither may fill the log.
    """

    def request_started(self, record: RequestRecord, /) -> None:
        """Do nothing until the request ends."""

    def request_finished(self, record: RequestRecord, /) -> None:
        """Write the line of a request."""
        level = logging.INFO if record.is_of_client else logging.DEBUG
        if _access.isEnabledFor(level):
            _access.log(level, "%s", access_line(record))


def access_line(record: RequestRecord) -> str:
    """Write a request as one line: facts separated by spaces, no content."""
    facts = [
        record.method if record.method.isalpha() else "?",
        record.endpoint,
        str(record.status),
        f"{record.seconds * 1000:.0f} ms",
        record.request_id,
    ]
    if record.model:
        facts += _facts_of_answer(record)
    if record.loop:
        facts.append(f"loop={record.loop}")
    return " ".join(facts)


def _facts_of_answer(record: RequestRecord) -> list[str]:
    facts = [record.model_id[:_LONGEST]]
    if record.first_byte is not None:
        facts.append(f"first={record.first_byte * 1000:.0f}ms")
    if usage := record.total_usage:
        facts.append(f"in={usage.input_tokens} cached={usage.cache_read_tokens}")
        facts.append(f"out={usage.output_tokens}")
    if record.prompt:
        facts.append(f"prompt={record.prompt.replace(' ', '-')}")
    if record.prompt_change:
        facts.append(f"changed={record.prompt_change.replace(', byte ', '+')}")
    if record.attempts > 1:
        facts.append(f"attempts={record.attempts}")
    if record.repairs:
        facts.append(f"repairs={record.repairs}")
    if record.dropped_calls:
        facts.append(f"dropped_calls={record.dropped_calls}")
    if record.error:
        facts.append(f"error={record.error}")
    return facts
