"""Refusals, classified by the error's structure, then its words, then its status."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import Struct

from byok.core.errors import ContextLengthExceeded, RefusalKind
from byok.core.late import compile_late
from byok.core.wire.json_fields import read_objects
from byok.dialects.presets import OLLAMA, preset_of
from byok.dialects.rate_limits import (
    OVERFLOW_SIGNS,
    quotas_exceeded,
    read_error_reasons,
    requested_wait,
)


class Refusal(Struct, frozen=True):
    """A class of refusals; the same request may succeed later if it is `retryable`."""

    kind: RefusalKind
    hint: str
    retryable: bool = False


RefusalRow: TypeAlias = tuple[tuple[str, ...], Refusal]  # patterns of the text

_LATER = "go on later, or choose another model or plan."
_AGAIN = "Wait a little and try again, or choose another model."
TOO_LONG = Refusal(RefusalKind.CONTEXT_LENGTH, ContextLengthExceeded.hint)
BALANCE = Refusal(RefusalKind.QUOTA, "Check the balance of that account.")
USED_UP = Refusal(RefusalKind.QUOTA, f"The limit of that plan is used up: {_LATER}")
NOT_IN_PLAN = Refusal(
    RefusalKind.QUOTA, "That plan does not include it: choose another model or plan."
)
DAY = Refusal(RefusalKind.QUOTA, f"That was its limit for a day: {_LATER}")
RATE = Refusal(RefusalKind.RATE_LIMIT, "Wait a little and try again.", True)
BUSY = Refusal(RefusalKind.OVERLOADED, _AGAIN, True)
FAILED = Refusal(
    RefusalKind.FAILED,
    "The fault is on its side: try again, or choose another model.",
    True,
)
AUTH = Refusal(RefusalKind.AUTH, "Check the key: byok keys list.")
_NOT_ALLOWED = Refusal(
    RefusalKind.AUTH, "That account may not use it: check its permissions."
)
NOT_FOUND = Refusal(
    RefusalKind.NOT_FOUND, "Check the model's name (byok models) and base_url."
)
FILTERED = Refusal(
    RefusalKind.CONTENT_FILTER,
    "Its filter refused the words: say it differently, or choose another model.",
)
_HISTORY = Refusal(
    RefusalKind.BAD_MESSAGES,
    "Start a new conversation: it does not take the history of this one.",
)
_PARAMETER = Refusal(
    RefusalKind.BAD_PARAMETER,
    "Change that parameter in [chat], in that upstream's section or in extra_body.",
)

# Codes that identify an error, in lower case. A code without a full stop also stands
# for codes that begin with it and a full stop. A number is written with its vendor,
# because vendors use the same numbers for different errors.
# Sources: the error pages of OpenAI, Google Cloud (`ErrorInfo.reason`), Alibaba Model
# Studio, Volcengine Ark, Z.ai, MiniMax and Moonshot, and public threads.
CODES: Mapping[str, Refusal] = MappingProxyType(
    {
        code: refusal
        for refusal, codes in (
            (
                BALANCE,
                "insufficient_quota insufficient_user_quota insufficient_balance "
                "billing_hard_limit_reached billing_not_active billing_disabled "
                "arrearage accountoverdueerror exceeded_current_quota_error "
                "pre_consume_token_quota_failed credit_balance_too_low "
                "zai:1113 minimax:1008 minimax:1028 minimax:1030",
            ),
            (
                USED_UP,
                "usage_limit_reached usage_limit_exceeded accountquotaexceeded "
                "quota_exhausted setlimitexceeded "
                "zai:1308 zai:1310 zai:1316 zai:1317 minimax:2056",
            ),
            (
                NOT_IN_PLAN,
                "usage_not_included allocationquota accessdenied.unpurchased "
                "zai:1309 zai:1311 minimax:2061",
            ),
            (DAY, "zai:1304"),
            (RATE, "rate_limit_exceeded ratelimitexceeded throttling zai:1302 zai:1303 "
                   "minimax:1002 minimax:1039 minimax:1041"),
            (BUSY, "model_capacity_exhausted serveroverloaded overloaded_error "
                   "server_is_overloaded zai:1305 zai:1312"),
            (FAILED, "minimax:1000 minimax:1001 minimax:1024 minimax:1033 "
                     "zai:1200 zai:1230 zai:1234"),
            (AUTH, "invalid_api_key api_key_invalid invalidapikey credentials_missing "
                   "zai:1000 zai:1001 zai:1002 zai:1003 zai:1004 "
                   "minimax:1004 minimax:2049"),
            (_NOT_ALLOWED, "service_disabled api_key_service_blocked consumer_invalid "
                           "zai:1110 zai:1111 zai:1112 zai:1121 zai:1220"),
            (
                Refusal(
                    RefusalKind.AUTH,
                    "A key of that plan works only with the clients that it names.",
                ),
                "access_terminated_error",
            ),
            (NOT_FOUND, "model_not_found invalidendpointormodel modelnotfound "
                        "modelnotopen zai:1211 zai:1221 zai:1222"),
            (FILTERED, "data_inspection_failed datainspectionfailed "
                       "sensitivecontentdetected inputtextsensitivecontentdetected "
                       "outputtextsensitivecontentdetected "
                       "zai:1301 minimax:1026 minimax:1027"),
            (TOO_LONG, "context_length_exceeded tokens_limit_reached "
                       "too_many_prompt_tokens zai:1261"),
            (_PARAMETER, "zai:1210"),
        )
        for code in codes.split()
    }
)  # fmt: skip

# Errors of models' chat templates, which llama.cpp, vLLM, LM Studio, TGI and Ollama
# pass on in different wordings, and those of Mistral, Perplexity and DashScope.
ROLE_ORDER = (
    r"roles? (?:must|should) (?:be )?alternat|must alternate between"
    r"|unexpected (?:message )?role"
    r"|system message must be (?:at the beginning|first)"
    r"|only user and assistant roles|no user query found|elements with the role of user"
)
# Anthropic and llama.cpp, Gemini, Mistral, DeepSeek.
LAST_ROLE = (
    r"pre-?fill|must end with a user message|ends? with a user role"
    r"|last (?:role|message)\b.{0,60}\buser\b"
)
# Z.ai, for all errors in the order of messages.
SOME_ORDER = r"messages (?:parameter is illegal|参数非法)"

# Patterns of refusals' texts: regular expressions for text in lower case. The first row
# with a match in the message or a code decides; `CODES` count before. Quotas and rate
# limits come before the context length, because their texts mention tokens, too. Words
# of one meaning in other languages are one pattern.
ROWS: tuple[RefusalRow, ...] = (
    (
        (r"extra usage is required",),
        Refusal(
            RefusalKind.QUOTA,
            "Start a new conversation, or allow extra usage in that account.",
        ),
    ),
    (
        (r"request too large .*per min",),
        Refusal(
            RefusalKind.RATE_LIMIT,
            "Your account may not send that much at once: start a new conversation, "
            "or raise its limit.",
        ),
    ),
    (
        (r"per[ _-]?day", r"daily (?:usage )?(?:limit|quota|free)", r"今日.{0,12}限额"),
        DAY,
    ),
    (
        (r"requires? an? (?:\w+ )?(?:subscription|plan)\b", r"free tier only",
         r"free tier.{0,40}(?:exhausted|not available)", r"\blimit: 0\b",
         r"not (?:included|available) (?:in|on|with|for) (?:your|the|this) "
         r"(?:\w+ ){0,3}(?:plan|tier|subscription)",
         r"plan does not (?:include|support)",
         r"套餐.{0,12}(?:到期|未开放|不支持|暂未)"),
        NOT_IN_PLAN,
    ),
    (
        (r"(?:usage|session|weekly|monthly|\d[ -]?hour)(?! spend)(?: \w+){0,2} "
         r"(?:limit|quota|allocation|cap)\b(?!.*context)",
         r"(?:hit|reached|exceeded) your (?:\w+ ){0,2}(?:limit|allowance)",
         r"\byou have no quota", r"quota will reset", r"usage limits?\b",
         r"使用上限|用量上限|限额.{0,40}重置|次数已用完|本周.{0,9}上限"),
        USED_UP,
    ),
    (
        (r"insufficient[ _](?:\w+[ _])?(?:quota|balance|credit|fund)",
         r"credit balance", r"requires more credits", r"spend(?:ing)? limit",
         r"\barrear",
         r"(?:billing|exceeded (?:your )?current(?! requests))(?!.*retry in)",
         r"(?:out of|no|available|purchase|more|your) credits?\b", r"overdue",
         r"quota (?:is )?(?:not enough|insufficient|exhausted|exceeded and account)",
         r"not[ _]enough[ _](?:\w+[ _])?(?:balance|quota|credit|fund)",
         r"balance (?:is |was )?(?:insufficient|too low|not enough|exhausted|negative)",
         r"(?:low|negative|zero|no) balance", r"payment (?:required|method|failed)",
         r"good standing", r"top[ -]?up|recharge",
         r"余额不足|额度不足|额度已|欠费|余额为|账户余额|配额不足|请充值|额度.{0,6}用[完尽]",
         r"saldo insuficiente|cr[eé]dit\w* insuf+ici?ent|solde insuffisant|guthaben|"
         r"недостаточно (?:средств|баланс)|残高|クレジット.{0,6}不足|잔액"),
        BALANCE,
    ),
    (
        (r"rate[ _-]?limit", r"too many (?:concurrent )?requests",
         r"resource (?:has been )?exhausted",
         r"resource_exhausted", r"per[ _]?(?:minute|second)", r"throttl",
         r"please wait before", r"(?:retry|try again) in \d", r"\bconcurren",
         r"quota exceeded|allocated quota|exceeded your current requests",
         r"too (?:quickly|fast|frequent)", r"slow down", r"increase limits",
         r"并发|限流|请求.{0,6}频繁|频率|速率限制|请求过多|请求数过多",
         r"レート制限|リクエストが多すぎ|demasiadas solicitudes|muitas solicita|"
         r"trop de requ[eê]tes|zu viele anfragen|слишком много запросов|"
         r"너무 많은 요청"),
        RATE,
    ),
    (
        (r"overload", r"over capacity", r"high (?:demand|load|traffic)",
         r"system_resource", r"temporarily unavailable", r"503 unavailable",
         r"too busy", r"serv(?:er|ice)s? (?:is |are )?(?:currently )?busy",
         r"capacity[_ ]exceeded", r"(?:at|no|insufficient) capacity", r"slow_down",
         r"queue (?:is )?full|maximum pending",
         r"负载|繁忙|过载|拥挤|访问量过大|混雑|überlastet|surcharg|sobrecarga|перегружен"),
        BUSY,
    ),
    (
        (r"(?<!error )loading model",),
        Refusal(RefusalKind.LOADING, "It loads its model: wait a little.", True),
    ),
    (
        (r"physical batch size",),
        Refusal(
            RefusalKind.CONTEXT_LENGTH, "Start llama.cpp with a larger --ubatch-size."
        ),
    ),
    (
        (r"'tools'.{0,3}(?:array too long|maximum number of items)",
         r"(?:at most|more than|maximum of|limit of|up to|too many) (?:\d+ )?"
         r"(?:tools|functions|function declarations)\b"),
        Refusal(RefusalKind.TOO_MANY_TOOLS, "Switch off some MCP servers."),
    ),
    (
        (r"invalid[ _](?:json |tool )?schema", r"schemas? contains too many",
         r"input_schema", r"invalid_function_parameters",
         r"function_?declarations?.*(?:parameters|schema)", r"moonshot flavored",
         r"schema validation failed", r"json schema not supported",
         r"schema (?:is )?too (?:complex|large|deep)", r"too many states",
         r"(?:parse|compiled?) grammar", r"grammar error", r"not supported by xgrammar",
         r"schema conversion failed", r"function parameters is empty",
         r"tool names must be unique", r"decoding guidance", r"invalid function format",
         r"\btools(?:\[\d+\]|\.\d+)\."),
        Refusal(
            RefusalKind.BAD_SCHEMA,
            "A tool's parameters are too unusual for it: switch off the MCP server "
            "of that tool, or choose another model.",
        ),
    ),
    (
        (r"expects the `?tools=?`? param", r"\btools: field required",
         r"toolconfig field must be defined", r"blocks must define tools"),
        Refusal(
            RefusalKind.NEEDS_TOOLS,
            "Start a new conversation: it wants tools with a history of tool calls.",
        ),
    ),
    (
        (r"image (?:is )?too large", r"image exceeds", r"image dimensions exceed",
         r"(?:at most|up to|maximum of|limit of|more than|too many) "
         r"(?:[1-9]\d* )?image"),
        Refusal(
            RefusalKind.TOO_LARGE,
            "Send fewer or smaller images, or start a new conversation.",
        ),
    ),
    (
        OVERFLOW_SIGNS,
        TOO_LONG,
    ),
    (
        (r"unsupported_country", r"country,? (?:region|or territory)",
         r"(?:country|region|location)(?: is)? not (?:supported|available)",
         r"not available in your (?:country|region)"),
        Refusal(
            RefusalKind.REGION,
            "That provider does not serve your place: choose another upstream.",
        ),
    ),
    (
        (r"matching your .{0,40}data policy",),
        Refusal(
            RefusalKind.NOT_FOUND,
            "Change the privacy settings of that account, which exclude every host of "
            "this model.",
        ),
    ),
    (
        (r"content[ _](?:filter|policy|management)", r"responsibleaipolicy",
         r"data_inspection_failed", r"inappropriate content", r"moderation",
         r"\bflagged\b",
         r"(?:safety|usage) (?:polic|guideline)", r"content exists risk",
         r"sensitive (?:content|information)",
         r"prohibited_content", r"guardrail", r"敏感|违规|不安全|审核"),
        FILTERED,
    ),
    (
        (r"requires --jinja",),
        Refusal(RefusalKind.NO_TOOLS, "Start llama-server with --jinja."),
    ),
    (
        (r"enable-auto-tool",),
        Refusal(
            RefusalKind.NO_TOOLS,
            "Start the server with --enable-auto-tool-choice and --tool-call-parser.",
        ),
    ),
    (
        (r"not support (?:tools|tool[ _](?:use|call))",
         r"not support function[ _]?call", r"function[ _]calling not support",
         r"not support parameters: \[[^\]]*'tools'",
         r"(?<!parallel )(?:tools? (?:are|is|calling`? is)|function[ _]calling is) not "
         r"(?:supported|enabled)",
         r"no endpoints found that support .*tool"),
        Refusal(
            RefusalKind.NO_TOOLS,
            "Choose a model that can call tools, or use the chat mode.",
        ),
    ),
    (
        (r"tool_use_failed", r"did not call a tool", r"failed to call a function",
         r"tool call validation failed", r"(?:error|failed to) pars\w+ tool[ _]call"),
        Refusal(
            RefusalKind.TOOL_FAILED,
            "The model called a tool wrongly: try again, or choose another model.",
            True,
        ),
    ),
    (
        (r"unknown variant `image_url`",
         # Not refusals of one picture format: the model accepts the others.
         r"not support (?:image|vision)(?!s? (?:\w+ )?(?:type|format|mime|url))",
         r"images?(?: inputs?| blocks?)? (?:is|are) not supported",
         r"image_url is only supported", r"at most 0 image",
         # of content that is a list, which only a picture makes it
         r"\['str'\], got list", r"single `text` element",
         r"missing data required for image input",
         r"unsupported content part type: .image",
         r"no endpoints found that support image",
         r"is not a multimodal model", r"not (?:support|compiled for) multimodal"),
        Refusal(
            RefusalKind.NO_IMAGES,
            "Choose a model that supports images, or start a conversation without one.",
        ),
    ),
    (
        (r"more system memory", r"out of memory",
         r"failed to load, .*resource limit"),
        Refusal(
            RefusalKind.NO_MEMORY,
            "Choose a smaller model, or give the server a smaller context.",
        ),
    ),
    (
        (r"(?:model|server|runner|process)(?: \w+)? (?:has |have )?(?:unexpectedly )?"
         r"(?:crashed|stopped|terminated|exited)", r"runner process no longer running",
         r"(?:failed|unable|error|could not) (?:to )?load(?:ing)? (?:the )?model"),
        Refusal(
            RefusalKind.FAILED,
            "Its model crashed: load it again, perhaps with a smaller context.",
            True,
        ),
    ),
    (
        (r"only (?:supported|available) (?:in|via|with) (?:the )?/?v1/",
         r"not (?:supported|accessible) (?:in|via|with) (?:the )?/?(?:v1/)?"
         r"(?:chat/completions|responses|messages)",
         r"not a chat model", r"use /?v1/(?:responses|completions|messages)",
         r"unsupported_api_for_model"),
        Refusal(
            RefusalKind.WRONG_API,
            "Choose another model, or set dialect in that upstream's section to the "
            "API that it names.",
        ),
    ),
    (
        (r"deploymentnotfound",),
        Refusal(
            RefusalKind.NOT_FOUND, "Azure wants the name of your deployment as model."
        ),
    ),
    (
        (r"no models? (?:is |are |has been )?loaded", r"model (?:is |was )?unloaded"),
        Refusal(RefusalKind.NOT_FOUND, "Load a model in that server first."),
    ),
    (
        (r"model[ _]not[ _](?:found|supported|exist)",
         r"\bmodel\b.* (?:does not exist|not found)", r"models?/\S+ is not found",
         r"model identifier is invalid", r"not a valid model",
         r"invalid[ _]model\b", r"unknown model", r"modelcode.* not exist",
         r"supported api model names", r"模型不存在", r"on-demand throughput",
         r"resolve the foundation model", r"have access to the model",
         r"reached its end of life", r"no healthy deployments", r"server is pinned to",
         r"\bmodel\b.{0,80} (?:was removed|is not available|has been (?:retired|"
         r"deprecated|decommissioned|shut ?down)|is deprecated and)",
         r"no (?:allowed|available) (?:providers|channels?)", r"no such model",
         r"try pulling it", r"does not exist or you do(?:n't| not) have access",
         r"无可用渠道|模型.{0,24}不存在|不支持.{0,4}模型|模型已下线"),
        NOT_FOUND,
    ),
    (
        (r"must be verified to", r"not allowed to use (?:\w+ )?model",),
        _NOT_ALLOWED,
    ),
    (
        (r"api[ _]?key[ _](?:is )?(?:not valid|invalid|expired|disabled|required)",
         r"(?:invalid|incorrect|wrong|missing|expired|no)[ _]"
         r"(?:api[ _-]?|access[ _])(?:key|token)",
         r"invalid (?:token|credential|x-api-key)", r"token (?:is |has )?expired",
         r"authentication", r"authorization header", r"unauthori[sz]ed",
         r"unauthenticated", r"not authori[sz]ed",
         r"(?:无效的?|未提供|过期|错误).{0,6}(?:令牌|密钥)|令牌.{0,9}(?:无效|过期|不可用|验证失败)"
         r"|未授权|鉴权失败|认证失败|身份验证失败"),
        AUTH,
    ),
    (
        (r"thought_signature", r"\bthinking`? (?:or|block)|expected `?thinking",
         r"must be passed back", r"reasoning_content`? (?:is missing|field in)",
         r"reasoning details to be preserved", r"message_order",
         ROLE_ORDER, LAST_ROLE, r"(?:invalid message|valid) role", r"role must be",
         r"tool[_ ]call[_ ]ids?\b", r"encrypted[ _]content",
         r"must be a response to a prece", SOME_ORDER,
         r"content\b.{0,60}non-(?:empty|whitespace)", r"non-empty content",
         r"either content or tool_calls", r"at least one (?:content|part)",
         r"tool_(?:use|result|call)s?\b.{0,80}"
         r"(?:without|unexpected|must (?:be|have)|corresponding|not found|match)",
         r"unexpected `?tool_(?:use|result)",
         r"no tool (?:output|call) found", r"tool (?:result|call)(?:'s)? .{0,60}"
         r"(?:not found|not match|does not follow|is invalid)",
         r"function arguments json", r"function (?:call|response)s? (?:turn|parts)",
         r"required following item|without its required|item .{0,80} not found"),
        _HISTORY,
    ),
    (
        (r"\bjinja\b", r"\bat row \d+, column \d+",
         r"while executing \w+(?:expression|statement)"),
        Refusal(
            RefusalKind.BAD_MESSAGES,
            "The chat template of that model fails: choose another template, or "
            "another build of the model.",
        ),
    ),
    (
        (r"max_?(?:completion_?|output_?|new_?)?tokens\b.*"
         r"(?:maximum|at most|too large|exceed|less than)",
         r"maximum tokens you requested"),
        Refusal(
            RefusalKind.BAD_PARAMETER,
            "Lower max_tokens in the settings: the model writes no answer that long.",
        ),
    ),
    (
        # The path of a message, whose content is refused.
        (r"\b(?:messages|input|contents)(?:\[|\.|/)\d", r"cannot make get request",
         r"support the \w*(?:uri|url|file|audio)\w* field"),
        Refusal(
            RefusalKind.BAD_MESSAGES,
            "Leave out the attachment that it does not take, or start a new "
            "conversation.",
        ),
    ),
    (
        (r"(?:unsupported|unknown|unrecogni[sz]ed|invalid)"
         r" (?:\w+ )?(?:param(?:eter)?s?\b|value|field|argument|setting|name\b)",
         r"\bparameters?\b.*(?:not (?:support|valid|allow)|invalid|illegal)",
         r"not support\w* param", r"extra (?:inputs|fields) (?:are )?not",
         r"not support (?:reasoning[_ ])?effort",
         r"effort\b.*(?:not support|invalid|should)",
         r"(?:missing|required) (?:required )?param", r"参数.{0,6}(?:错误|有误|非法)",
         r"\b(?:temperature|top_p|logprobs|tool_choice|parallel_tool_calls|"
         r"enable_thinking|budget_tokens)\b.*"
         r"(?:not |deprecated|only|must|should|range|below|incompatible)",
         r"does not match any of the expected",
         r"not support this tool_choice", r"cannot use both"),
        _PARAMETER,
    ),
)  # fmt: skip


_BY_STATUS = {
    401: AUTH,
    402: BALANCE,
    403: AUTH,
    404: NOT_FOUND,
    405: Refusal(RefusalKind.NOT_FOUND, "Check base_url: it usually ends in /v1."),
    413: Refusal(
        RefusalKind.TOO_LARGE, "Start a new conversation, or send fewer images."
    ),
    429: RATE,
    451: Refusal(
        RefusalKind.REGION,
        "That provider does not serve your place: choose another upstream.",
    ),
    529: BUSY,
}
_NOT_IMPLEMENTED = 501
# Inside a stream only the type of an error says that the request is at fault.
_REQUEST_FAULT = compile_late(
    r"invalid[_ ](?:request|argument|prompt)|bad[_ ]request|permission|failed_precond"
)
_MAX_RATE_SECONDS = 3600.0  # a limit that takes longer to reset is a plan's quota
_COMPILED_ROWS = tuple(
    (compile_late("|".join(words)), refusal) for words, refusal in ROWS
)
_MAX_READ_CHARS = 8192  # of a message and its codes
# Hints about a context window that is too small.
_RAISE_NUM_CTX = (
    "Raise num_ctx of this upstream, or choose a model with a larger window."
)
_RAISE_CONTEXT = (
    "Raise the context length of its server, or set context_window for this upstream."
)


def classify_refusal(
    message: str, codes: Iterable[str], error: Any, status: int
) -> Refusal:
    """Classify an error body; `status` 0 means that it came inside a stream.

    `codes` are the fields that name the kind of error, `error` is the object that has
    them.
    """
    names = [*codes, quotas_exceeded(error)]
    refusal = _read_structure(error, names)
    refusal = refusal or class_of(" ".join((message, *names)), status)
    if refusal.kind is RefusalKind.RATE_LIMIT:
        wait = requested_wait(message, error)
        if wait is not None and wait > _MAX_RATE_SECONDS:
            return USED_UP
    return refusal


def class_of_words(text: str) -> Refusal | None:
    """Classify a refusal by its words alone; None if no pattern matches.

    Only the beginning of the text is searched: the patterns may take quadratic time.
    """
    text = text[:_MAX_READ_CHARS].lower()
    return next((refusal for row, refusal in _COMPILED_ROWS if row.search(text)), None)


def class_of(text: str, status: int) -> Refusal:
    """Classify a refusal by its words and status; 0 is the status inside a stream."""
    if refusal := class_of_words(text):
        return refusal
    text = text[:_MAX_READ_CHARS].lower()
    if status == 413 and "token" in text:
        return TOO_LONG
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status == _NOT_IMPLEMENTED:
        return Refusal(RefusalKind.UNKNOWN, "", True)
    # An error inside a stream comes after the request was accepted, or denies it.
    if status >= 500 or (not status and not _REQUEST_FAULT.search(text)):
        return FAILED
    return Refusal(RefusalKind.UNKNOWN, "")


def _read_structure(error: Any, codes: Iterable[str]) -> Refusal | None:
    """Classify by Google's details, else by a code; None if neither is known."""
    if refusal := _read_google(error):
        return refusal
    for code in codes:
        code = code.lower()
        names = (code, code.partition(".")[0])
        if refusal := next((CODES[name] for name in names if name in CODES), None):
            return refusal
    return None


def _read_google(error: Any) -> Refusal | None:
    """Classify by the details of Google's APIs (`google.rpc.QuotaFailure` and others).

    Their messages say "exceeded your current quota" for every limit, also for limits
    per minute. So only the name of the quota tells how long its period is.
    """
    if not (details := read_objects(error, "details")):
        return None
    quotas = quotas_exceeded(error).lower()
    message = error.get("message") if isinstance(error, dict) else None
    if quotas and isinstance(message, str) and "limit: 0" in message:
        return NOT_IN_PLAN
    if "perday" in quotas:
        return None  # the words tell: a limit per day
    if "perminute" in quotas or "persecond" in quotas:
        return RATE
    for reason in read_error_reasons(error):
        if reason in CODES:
            return CODES[reason]
    has_delay = any("retryDelay" in detail for detail in details)
    return RATE if has_delay and (quotas or requested_wait("", error)) else None


def window_cure(vendor: str, dialect: str) -> str:
    """Return the hint how to enlarge the window of a vendor's server in a dialect."""
    if dialect == OLLAMA:
        return _RAISE_NUM_CTX
    return preset_of(vendor).window_cure or _RAISE_CONTEXT
