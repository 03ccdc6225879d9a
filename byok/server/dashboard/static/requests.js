// The journal's facts about requests and conversations, in words. The names in them come from
// models and clients.

import { badge, codeElement, h, joinWithDots, valueWithBar, withCode } from "./dom.js";
import {
  amountSpent, clock, dollars, duration, number, pauseText, percent, shortNumber, time, visible,
} from "./format.js";
import { joinSentences, t, textOr } from "./texts.js";

const MIN_WRITING_SECONDS = 0.1; // for less, no speed can be told

// Return what a request was for, in words if there are any, else its path.
export const kindOf = ({ purpose, endpoint }) =>
  textOr(`purpose.${purpose}`, purpose || endpoint);

// Return the full name of the model that answered, as in lists and settings, "" without one.
export const modelOf = ({ upstream, model }) =>
  (upstream && model ? `byok:${upstream}:${model}` : upstream || model);

// Return US dollars per million tokens, in and out.
export function priceOf({ facts: { price } }) {
  if (!price) return t("unknown-price");
  const prices = [price.input, price.output];
  return prices.every((value) => value === 0) ? t("no-cost")
    : prices.map((value) => (value === undefined ? "?" : number(value, 4))).join(" / ");
}

// Return the model that the client asked for if another one answered, else "".
export function otherModelAsked(request) {
  const { model_asked: asked } = request;
  return [modelOf(request), `${request.upstream}:${request.model}`, request.model].includes(asked)
    ? "" : asked;
}

// Return the input and output tokens of a request or a sum; unknown numbers are never shown as 0.
export function tokensOf(request) {
  const { input_tokens: input, output_tokens: output } = request;
  return input || output ? `${shortNumber(input)} / ${shortNumber(output)}` : missingText(request);
}

// Return what stands for a missing value: "unknown", or a dash where there is no value to know.
export const missingText = (request) => (request.outcome !== "open"
  && (request.input_tokens || costOf(request) === null) ? t("unknown") : "–");

// Return the cost of a sum, or null if all that is known is that prices are missing.
export const costOf = ({ cost, unpriced }) => (unpriced && !cost ? null : cost);

// Return how many requests are missing in the cost of a sum, "" if none or all are.
export const unpricedText = ({ cost, unpriced }) =>
  (cost && unpriced ? `+ ${unpricedCount(unpriced)}` : "");

// Return the cost of a sum in the words that the command line uses, too.
export const costText = (sums, format = amountSpent) => (costOf(sums) === null
  ? unpricedCount(sums.unpriced) : `${format(sums.cost)} ${unpricedText(sums)}`.trimEnd());

// Return the cost of a sum for a table, with a bar that compares it with the largest one.
export const costCell = (sums, largest) => h("span", {},
  valueWithBar(sums.cost / largest, amountSpent(costOf(sums))),
  h("span", { class: "sub" }, unpricedText(sums)));

// Return what caches saved and what lost caches cost, as far as there are any, each as [name,
// figure, note, links]. The dollars are those of the tokens whose prices are known.
export const cacheFigures = (cache) => [
  ["saved", cache.read, cache.saved, cache.unpriced, 0],
  ["lost", cache.lost, cache.lost_cost, cache.lost_unpriced, cache.losses,
    ([turn, conversation, upstream]) => joinWithDots(
      h("a", { href: `${conversationAddress(conversation)}/${turn}` },
        t("request.cache-lost", { count: number(cache.losses) })), keepCacheLink(upstream))],
].filter(([, tokens]) => tokens).map(([name, tokens, cost, unpriced, times, createLinks]) => [name,
  dollars(unpriced === tokens ? null : cost),
  joinWithDots(t("request.cache-tokens", { tokens: shortNumber(tokens) }),
    times > 1 ? t("request.cache-times", { count: number(times) }) : null,
    unpriced && unpriced < tokens
      ? t("request.cache-unpriced", { tokens: shortNumber(unpriced) }) : null), createLinks?.(cache.latest)]);

// Return the link to the setting that keeps the caches of an upstream longer.
export const keepCacheLink = (upstream, kind = null) => h("a", { class: kind,
  href: `#/settings/set/upstreams.${encodeURIComponent(upstream)}.long_cache` },
t("timeline.keep-cache"));

// Return what a request cost if it reached a model and has ended, else a dash.
export const paidText = ({ model, outcome, cost }) =>
  (model && outcome !== "open" ? amountSpent(cost) : "–");

// Return how many seconds a request waited for the first byte of the model's answer.
export const waitOf = ({ seconds, first_byte: first }) => Math.min(first ?? seconds, seconds);

// Return a speed in tokens per second in words.
export const speedText = (speed) => `${number(speed)}\u00a0${t("tile.speed.unit")}`;

// Return in words how a request's time was spent, and how fast the model wrote. `previous` is the
// turn before it, whose tools the client ran in between.
export function timingText(request, previous = null) {
  const wait = waitOf(request);
  const retries = request.attempts > 1 && t("mend.retries", { count: number(request.attempts - 1) });
  const writingSeconds = request.seconds - wait;
  const speed = request.output_tokens && writingSeconds >= MIN_WRITING_SECONDS
    && speedText(request.output_tokens / writingSeconds);
  const withNote = (text, note) => (note ? t("noted", { text, note }) : text);
  const gap = previous?.tool_calls ? request.started - previous.started - previous.seconds : 0;
  return joinSentences(
    gap > 0 && t("request.tool-pause", { time: duration(gap) }),
    t(request.first_byte === null ? "request.unanswered"
      : writingSeconds < MIN_WRITING_SECONDS ? "request.at-once" : "request.times",
      { wait: withNote(duration(wait), retries), answer: withNote(duration(writingSeconds), speed) }),
  );
}

// Return what a turn used as parts of a line: its tokens, and the share of them from the cache.
export const usageParts = (turn) => [
  turn.input_tokens !== null ? t("timeline.tokens",
    { input: number(turn.input_tokens), output: number(turn.output_tokens) })
    : turn.attempts ? t("timeline.tokens-unknown") : null,
  turn.cached === null ? null : h("span", { class: turn.note ? "warn" : null },
    t("timeline.cached", { share: percent(turn.cached) }))];

// Return how long a cache was unused until it was lost, and what that cost.
export const cacheLossText = ({ pause: gap, extra_cost: extra }) => [
  t("timeline.expired", { pause: pauseText(gap) }),
  extra > 0 ? [" ", t("timeline.expired-cost", { cost: dollars(extra) })] : null];

// The addresses of a conversation, of a model, and of what to do about an error.
export const conversationAddress = (id) => `#/conversations/${encodeURIComponent(id)}`;
export const modelAddress = (id) => `#/models/${encodeURIComponent(id)}`;
export const problemAddress = (code) => `#/problems/${encodeURIComponent(code)}`;

// Return the name of a client in words, without its version.
export function clientName(client) {
  const family = client.split("/")[0];
  return textOr(`editors.name.${family}`, shorten(family, 40));
}

// Return the first part of a conversation's name. The journal has no text of a conversation, so its
// name consists of the folder in which the client worked, the client, the start, and a mark.
export const shortName = (sums) =>
  sums.folder || clientName(sums.client) || shorten(sums.conversation, 12);

// Return the mark that tells a conversation from others of the same minute: the end of its id. It
// has only letters and digits, so that no line breaks in it.
export const idMark = ({ folder, client, conversation }) => (folder || client
  ? `#${conversation.replace(/[^\p{L}\p{N}]/gu, "").slice(-4)}` : "");

export const startText = (sums) => t("conversations.started", { time: clock(sums.first) });

// Return the further parts of a conversation's name, and `more` between them. The start stands out,
// because it tells the conversation from others of its folder.
export const nameDetails = (sums, ...more) => [h("span", { class: "begun" }, startText(sums)),
  sums.folder && clientName(sums.client), ...more, idMark(sums)];

export const fullName = (sums) =>
  [shortName(sums), sums.folder && clientName(sums.client), startText(sums), idMark(sums)]
    .filter(Boolean).join(" · ");

// Return a link to a conversation; screen readers read its full name.
export const conversationLink = (sums) => h("a", { href: conversationAddress(sums.conversation),
  class: "clamp", dir: "auto", "data-key": sums.conversation, "aria-label": visible(fullName(sums)) },
shortName(sums));

export const shorten = (text, maxLength = 60) =>
  (text.length > maxLength ? `${text.slice(0, maxLength).replace(/\p{Cs}$/u, "")}…` : text);

// Return the columns of a table of requests; `key` tells the keys of its links from those of
// another table.
export const requestColumns = (key) => ({
  time: { title: t("request.time"), lead: true, cell: ({ started }) => inOneLine(time(started)) },
  kind: { title: t("request.kind"), cell: (request) => inOneLine(kindOf(request)) },
  model: { title: t("request.model"), cell: (request) => inOneLine(modelOf(request)) },
  conversation: { title: t("conversations.id"), cell: (request) => (request.conversation
    ? h("a", { href: `${conversationAddress(request.conversation)}/${request.number}`,
      class: "clamp", dir: "auto", "data-key": `${key} ${request.number}` }, shortName(request))
    : "–") },
});

// Return what byok mended in a request, as {tone, text, why}; `why` is a sentence. `errors` are the
// known rows of byok's table of errors by code.
export function listMends(request, errors) {
  const mends = [];
  const add = (count, name, why) => {
    if (count > 0) mends.push(createMend(name, number(count), why));
  };
  add(request.repairs, "repairs");
  add(request.dropped_calls, "dropped");
  add(request.attempts - 1, "retries", retryReasons(request, errors));
  if (request.loop) mends.push(describeLoop(request.loop));
  add(request.notices, "notices");
  return mends;
}

// Return the failures after which a request was tried again, as links to their cards; null if they
// are unknown.
export const retryReasons = ({ retried }, errors = {}) => (retried ? [t("request.retried-after"),
  retried.split(" ").flatMap((code) => [" ", h("a", { href: problemAddress(code) },
    withCode(errors[code]?.what ?? code))])] : null);

// Return where a prompt changed, and the effect on the cache if the upstream reports it.
export const promptChangeText = ({ prompt_change: part, cache_read_tokens: tokensRead }) =>
  t(tokensRead === null ? "mend.prompt.untold" : "mend.prompt.why", { place: part });

// Return what byok mended as a list of badges with sentences, null if there was nothing.
export function mendList(request, errors) {
  const mends = listMends(request, errors);
  if (request.prompt_change) {
    mends.push({ tone: "quiet", text: t("mend.prompt"), why: promptChangeText(request) });
  }
  return mends.length === 0 ? null : h("ul", { class: "mends" },
    mends.map(({ tone, text, why }) => h("li", {}, badge(tone, text), " ", why)));
}

// Return what byok mended as badges only, for a table that is explained elsewhere.
export const mendBadges = (request) => h("div", { class: "row" },
  listMends(request).map(({ tone, text }) => badge(tone, text)));

// Return the legend of the bars of requests; `scale` is the text about their length.
export const barLegend = (scale) => h("div", { class: "keys-legend" }, ["waiting", "answer"].map(
  (name) => h("span", {}, h("i", { class: `key ${name}` }), " ", t(`timeline.${name}`))),
h("span", {}, scale));

// Return the tools that an answer called; `calls` is a text such as "read x2, write".
export function toolTags(calls) {
  if (!calls) return null;
  return h("ul", { class: "tools", "aria-label": t("request.tools") }, calls.split(", ")
    .map((name) => h("li", { class: "tag" }, name.replace(/ x(\d+)$/u, " ×$1"))));
}

// Return how a request ended as a badge, null if it succeeded. An error that is not in byok's table
// is shown by its code.
export function endBadge({ outcome, error }, errors) {
  if (outcome === "ok") return null;
  if (outcome === "cancelled") return badge("quiet", t("live.state.cancelled"));
  return badge("bad", !errors[error] && error || t("live.state.failed"));
}

// Return what happened by a row of byok's table of errors, and what to do first.
export const firstAid = ({ what, cures }) => h("span", {},
  h("strong", { class: "bad" }, withCode(what)), " ", withSettingLinks(cures[0] ?? ""));

export const sentenceList = (sentences) => h("ul", {},
  sentences.map((sentence) => h("li", {}, withCode(sentence))));

// Return advice in which each setting that it names is a link to that setting, to the one of
// `upstream` if it has it.
export const withSettingLinks = (text, upstream = "") => withCode(text, (part) => {
  const [name] = part.match(/(?<=^\[?)[a-z][a-z_.]+(?=\]?$)/u) ?? [];
  const isOfUpstream = upstream && textOr(`upstream.${name}`, "");
  const address = isOfUpstream ? `set/upstreams.${encodeURIComponent(upstream)}.${name}`
    : `find/${name}`;
  const code = codeElement(part);
  return name ? h("a", { href: `#/settings/${address}` }, code) : code;
});

const unpricedCount = (count) => t("request.unpriced", { count: number(count) });

const inOneLine = (name) => h("span", { class: "nowrap" }, shorten(name, 40) || "–");

function createMend(name, count, why) {
  const tone = name === "notices" ? "quiet" : "warn";
  return { tone, text: t(`mend.${name}`, { count }), why: why ?? t(`mend.${name}.why`) };
}

// Return the mend of a loop, which the journal writes as `warned-failing-3` or `ended-steps-120`.
function describeLoop(loop) {
  const [end, kind, count] = loop.split("-");
  const isKnown = ["failing", "repeated", "steps"].includes(kind);
  const hasEnded = end === "ended";
  const reason = isKnown ? t(`mend.loop.${kind}`, { count }) : loop;
  return { tone: hasEnded ? "bad" : "warn", text: t(hasEnded ? "mend.loop.end" : "mend.loop", { count }),
    why: joinSentences(reason, t(hasEnded ? "mend.loop.ended" : "mend.loop.warned")) };
}
