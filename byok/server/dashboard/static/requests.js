// What the journal tells of a request, in words. Names come from models and clients.

import { badge, dots, h, measured, withCode } from "./dom.js";
import { clock, dollars, duration, number, pause, percent, short, spent, time, visible } from "./format.js";
import { sentences, t, textOr } from "./texts.js";

const SHORTEST = 0.1; // seconds of writing that tell a speed

// Return what a request was for, in words where there are any, or its path.
export const kindOf = ({ purpose, endpoint }) =>
  textOr(`purpose.${purpose}`, purpose || endpoint);

// Return the full name of the model that answered, as lists and settings have it, "" without one.
export const modelOf = ({ upstream, model }) =>
  (upstream && model ? `byok:${upstream}:${model}` : upstream || model);

// Return US dollars per million tokens, in and out.
export function priceOf({ facts: { price } }) {
  if (!price) return t("unknown-price");
  const both = [price.input, price.output];
  return both.every((one) => one === 0) ? t("no-cost")
    : both.map((one) => (one === undefined ? "?" : number(one, 4))).join(" / ");
}

// Return what the client asked for, if that is not what answered.
export function askedOther(request) {
  const { model_asked: asked } = request;
  return [modelOf(request), `${request.upstream}:${request.model}`, request.model].includes(asked)
    ? "" : asked;
}

// Return the tokens in and out; those that nobody told are not 0.
export const tokensOf = (one) => (one.input_tokens || one.output_tokens
  ? `${short(one.input_tokens)} / ${short(one.output_tokens)}` : untold(one));

// Return what stands for a fact that is missing: it is unknown, unless there is nothing to tell.
export const untold = (one) => (one.outcome !== "open" && (one.input_tokens || costOf(one) === null)
  ? t("unknown") : "–");

// Return the cost of a sum, or null if nothing is known to have cost anything.
export const costOf = ({ cost, unpriced }) => (unpriced && !cost ? null : cost);

// Return the requests that have no part in the cost of a sum, "" if none or all have not.
export const unpricedText = ({ cost, unpriced }) =>
  (cost && unpriced ? `+ ${unpricedCount(unpriced)}` : "");

const unpricedCount = (count) =>
  t("request.unpriced", { count: number(count) });

// Return the cost of a sum in words, those that the command line has.
export const costText = (sums, write = spent) => (costOf(sums) === null
  ? unpricedCount(sums.unpriced) : `${write(sums.cost)} ${unpricedText(sums)}`.trimEnd());

// Return the cost of a sum for a table, with a bar beside that of the largest one.
export const costCell = (sums, most) => h("span", {},
  measured(sums.cost / most, spent(costOf(sums))),
  h("span", { class: "sub" }, unpricedText(sums)));

// Return what caches saved and what lost ones cost, each as [name, figure, note, links] if there is
// any; dollars are those of the tokens whose prices are known.
export const cacheFigures = (cache) => [
  ["saved", cache.read, cache.saved, cache.unpriced, 0],
  ["lost", cache.lost, cache.lost_cost, cache.lost_unpriced, cache.losses,
    ([turn, conversation, upstream]) => dots(
      h("a", { href: `${addressOf(conversation)}/${turn}` },
        t("request.cache-lost", { count: number(cache.losses) })), keepCache(upstream))],
].filter(([, tokens]) => tokens).map(([name, tokens, cost, unpriced, times, links]) => [name,
  dollars(unpriced === tokens ? null : cost),
  dots(t("request.cache-tokens", { tokens: short(tokens) }),
    times > 1 ? t("request.cache-times", { count: number(times) }) : null,
    unpriced && unpriced < tokens
      ? t("request.cache-unpriced", { tokens: short(unpriced) }) : null), links?.(cache.latest)]);

// Return the link to what keeps the caches of an upstream longer.
export const keepCache = (upstream, kind = null) => h("a", { class: kind,
  href: `#/settings/set/upstreams.${encodeURIComponent(upstream)}.long_cache` },
t("timeline.keep-cache"));

// Return what a request cost, if it came to a model and has ended.
export const paid = ({ model, outcome, cost }) => (model && outcome !== "open" ? spent(cost) : "–");

// Return how long a request waited for the first word of the model.
export const waitOf = ({ seconds, first_byte: first }) => Math.min(first ?? seconds, seconds);

// Return so many tokens per second in words.
export const speedText = (speed) => `${number(speed)}\u00a0${t("tile.speed.unit")}`;

// Return in words where the time of a request went, and how fast it was answered; `before` is the
// turn before it, whose tools the client ran meanwhile.
export function timesOf(request, before = null) {
  const wait = waitOf(request);
  const tries = request.attempts > 1 && t("mend.retries", { count: number(request.attempts - 1) });
  const writing = request.seconds - wait;
  const speed = request.output_tokens && writing >= SHORTEST
    && speedText(request.output_tokens / writing);
  const noted = (text, note) => (note ? t("noted", { text, note }) : text);
  const gap = before?.tool_calls ? request.started - before.started - before.seconds : 0;
  return sentences(
    gap > 0 && t("request.tool-pause", { time: duration(gap) }),
    t(request.first_byte === null ? "request.unanswered"
      : writing < SHORTEST ? "request.at-once" : "request.times",
      { wait: noted(duration(wait), tries), answer: noted(duration(writing), speed) }),
  );
}

// Return what a turn used, in parts of a line: its tokens, and how many were in the cache.
export const usedOf = (turn) => [
  turn.input_tokens !== null ? t("timeline.tokens",
    { input: number(turn.input_tokens), output: number(turn.output_tokens) })
    : turn.attempts ? t("timeline.tokens-unknown") : null,
  turn.cached === null ? null : h("span", { class: turn.note ? "warn" : null },
    t("timeline.cached", { share: percent(turn.cached) }))];

// Say how long a lost cache was not used, and what that cost.
export const expiryOf = ({ pause: gap, extra_cost: extra }) => [
  t("timeline.expired", { pause: pause(gap) }),
  extra > 0 ? [" ", t("timeline.expired-cost", { cost: dollars(extra) })] : null];

// Return the address of a conversation's timeline.
export const addressOf = (conversation) =>
  `#/conversations/${encodeURIComponent(conversation)}`;

// Return the address of a model by its id.
export const modelAddress = (id) => `#/models/${encodeURIComponent(id)}`;

// Return the address of what to do about an error of that code.
export const problemOf = (code) => `#/problems/${encodeURIComponent(code)}`;

const shortId = (id) => cut(id, 12);

// Return the name of a client for people, without its version.
export function clientOf(client) {
  const family = client.split("/")[0];
  return textOr(`editors.name.${family}`, cut(family, 40));
}

// The journal has no text of a conversation: its name is made of the folder in which the
// client worked, the client, and when it began. Return what it is called first.
export const headOf = (sums) => sums.folder || clientOf(sums.client) || shortId(sums.conversation);

// Return the end of its id, which tells it from others of that minute; it breaks nowhere.
export const markOf = ({ folder, client, conversation }) => (folder || client
  ? `#${conversation.replace(/[^\p{L}\p{N}]/gu, "").slice(-4)}` : "");

export const startOf = (sums) => t("conversations.started", { time: clock(sums.first) });

// Return the rest of its name, with more facts of it: when it began is what tells it from others of
// its folder, and so stands out.
export const restOf = (sums, ...more) => [h("span", { class: "begun" }, startOf(sums)),
  sums.folder && clientOf(sums.client), ...more, markOf(sums)];

// Return the name of a conversation as a text.
export const nameOf = (sums) =>
  [headOf(sums), sums.folder && clientOf(sums.client), startOf(sums), markOf(sums)]
    .filter(Boolean).join(" · ");

// Return a link to a conversation; who hears it hears the whole name.
export const conversationLink = (sums) => h("a", { href: addressOf(sums.conversation),
  class: "clamp", dir: "auto", "data-key": sums.conversation, "aria-label": visible(nameOf(sums)) },
headOf(sums));

// Return a text, or as much of it as there is room for; its own view has all.
export const cut = (text, longest = 60) =>
  (text.length > longest ? `${text.slice(0, longest).replace(/\p{Cs}$/u, "")}…` : text);

// Return the columns of a table of requests; `key` tells their links from those of another.
export const requestColumns = (key) => ({
  time: { title: t("request.time"), lead: true, cell: ({ started }) => inOneLine(time(started)) },
  kind: { title: t("request.kind"), cell: (one) => inOneLine(kindOf(one)) },
  model: { title: t("request.model"), cell: (one) => inOneLine(modelOf(one)) },
  conversation: { title: t("conversations.id"), cell: (one) => (one.conversation
    ? h("a", { href: `${addressOf(one.conversation)}/${one.number}`, class: "clamp", dir: "auto",
      "data-key": `${key} ${one.number}` }, headOf(one)) : "–") },
});

const inOneLine = (name) => h("span", { class: "nowrap" }, cut(name, 40) || "–");

// Return what byok mended on the request's way: {tone, text, why} each, `why` is a sentence; `errors`
// are rows of byok's table, as far as they are known.
export function mendsOf(request, errors) {
  const found = [];
  const add = (count, name, why) => {
    if (count > 0) found.push(mend(name, number(count), why));
  };
  add(request.repairs, "repairs");
  add(request.dropped_calls, "dropped");
  add(request.attempts - 1, "retries", retriedAfter(request, errors));
  if (request.loop) found.push(loopOf(request.loop));
  add(request.notices, "notices");
  return found;
}

function mend(name, count, why) {
  const tone = name === "notices" ? "quiet" : "warn";
  return { tone, text: t(`mend.${name}`, { count }), why: why ?? t(`mend.${name}.why`) };
}

// Return after which failures a request was tried again, as links to what they are; null if that is
// not known.
export const retriedAfter = ({ retried }, errors = {}) => (retried ? [t("request.retried-after"),
  retried.split(" ").flatMap((code) => [" ", h("a", { href: problemOf(code) },
    withCode(errors[code]?.what ?? code))])] : null);

// Explain a loop, which the journal writes as `warned-failing-3` or `ended-steps-120`.
function loopOf(loop) {
  const [end, kind, count] = loop.split("-");
  const isKnown = ["failing", "repeated", "steps"].includes(kind);
  const ended = end === "ended";
  const what = isKnown ? t(`mend.loop.${kind}`, { count }) : loop;
  return { tone: ended ? "bad" : "warn", text: t(ended ? "mend.loop.end" : "mend.loop", { count }),
    why: sentences(what, t(ended ? "mend.loop.ended" : "mend.loop.warned")) };
}

// Say where a prompt changed, and what that meant for the cache, if the upstream tells.
export const promptChange = ({ prompt_change: place, cache_read_tokens: read }) =>
  t(read === null ? "mend.prompt.untold" : "mend.prompt.why", { place });

// Return a list of badges with their sentences, null if there is nothing to say.
export function mendList(request, errors) {
  const told = mendsOf(request, errors);
  if (request.prompt_change) {
    told.push({ tone: "quiet", text: t("mend.prompt"), why: promptChange(request) });
  }
  return told.length === 0 ? null : h("ul", { class: "mends" },
    told.map(({ tone, text, why }) => h("li", {}, badge(tone, text), " ", why)));
}

// Return badges only, for a page that explains them elsewhere.
export const mendBadges = (request) => h("div", { class: "row" },
  mendsOf(request).map(({ tone, text }) => badge(tone, text)));

// Explain the bars of requests; `scale` says how much a whole one is.
export const barLegend = (scale) => h("div", { class: "keys-legend" }, ["waiting", "answer"].map(
  (name) => h("span", {}, h("i", { class: `key ${name}` }), " ", t(`timeline.${name}`))),
h("span", {}, scale));

// Return the tools that an answer called, with a name for those who hear them.
export function toolTags(calls) {
  if (!calls) return null;
  return h("ul", { class: "tools", "aria-label": t("request.tools") }, calls.split(", ")
    .map((name) => h("li", { class: "tag" }, name.replace(/ x(\d+)$/u, " ×$1"))));
}

// Return how a request ended, as a badge; null if it went well. Of an error that is not in byok's
// table there is only the code.
export function endBadge({ outcome, error }, errors) {
  if (outcome === "ok") return null;
  if (outcome === "cancelled") return badge("quiet", t("live.state.cancelled"));
  return badge("bad", !errors[error] && error || t("live.state.failed"));
}

// Return an error of byok's table: what happened and what to do first.
export const firstAid = ({ what, cures }) => h("span", {},
  h("strong", { class: "bad" }, withCode(what)), " ", withSettings(cures[0] ?? ""));

export const list = (sentences) => h("ul", {},
  sentences.map((sentence) => h("li", {}, withCode(sentence))));

// Return what to do about an error: a setting that it names is a link to that, of the upstream if it
// is known.
export const withSettings = (text, upstream = "") => withCode(text, (part) => {
  const [name] = part.match(/(?<=^\[?)[a-z][a-z_.]+(?=\]?$)/u) ?? [];
  const isIts = upstream && textOr(`upstream.${name}`, "");
  const address = isIts ? `set/upstreams.${encodeURIComponent(upstream)}.${name}` : `find/${name}`;
  return name ? h("a", { href: `#/settings/${address}` }, h("code", {}, part))
    : h("code", {}, part);
});
