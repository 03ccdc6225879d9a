// One conversation: what it cost and why, then a row for each turn, the oldest first.

import { call } from "./api.js";
import {
  badge, bar, breakable, button, copyText, dots, flushSection, h, healthCard, replace, showTitle,
  showTools, spark, tile,
} from "./dom.js";
import { clock, dollars, duration, number, pause, percent, spent } from "./format.js";
import { icon } from "./icons.js";
import { refresher, renderAgain } from "./refresh.js";
import {
  addressOf, askedOther, barLegend, cacheFigures, clientOf, costOf, cut, endBadge, expiryOf,
  firstAid, headOf, keepCache, kindOf, markOf, mendList, modelOf, paid, problemOf, promptChange,
  startOf, timesOf, tokensOf, toolTags, unpricedText, untold, usedOf, waitOf,
} from "./requests.js";
import { listed, parts, t } from "./texts.js";

const PAUSE = 180; // seconds without a request that are worth a row

// Show a conversation; turns come in pages, the latest first, earlier ones on a button; the
// one of the number `wanted` is sought.
export async function openTimeline(root, [conversation, wanted], signal) {
  const turns = new Turns(conversation, signal);
  const { refresh, run, attempt, trouble } = refresher((options) => turns.load(options), signal);
  turns.earlier.addEventListener("click", () => attempt(() => turns.loadEarlier()));
  showTools(h("a", { class: "button", href: "#/conversations" }, t("overview.all-conversations")),
    button([icon("copy"), t("timeline.copy")], "", () => copyText(location.href)), refresh);
  replace(root, trouble, turns.tiles, turns.reason, turns.section);
  await run(false);
  const row = () => turns.rows.get(Number(wanted));
  while (wanted && !row() && !turns.earlier.hidden) await turns.loadEarlier();
  row()?.classList.add("sought");
  row()?.focus();
}

class Turns {
  constructor(conversation, signal) {
    this.conversation = conversation;
    this.signal = signal;
    this.turns = []; // those that are shown, the oldest first
    this.rows = new Map(); // their rows, by number
    this.told = null; // the last answer for the latest turns
    this.tiles = h("div", { class: "tiles" });
    this.reason = h("div", { hidden: true });
    this.heading = h("span");
    this.list = h("ol", { class: "turns", "aria-label": t("timeline.turns") });
    this.earlier = button(t("timeline.earlier"), "", () => {}, { hidden: true });
    this.section = flushSection(this.heading, [barLegend(t("timeline.scale"))], this.earlier, this.list);
  }

  async load(options) {
    const told = await call("conversation", { conversation: this.conversation }, options);
    this.told = told;
    if (told.requests.some(({ number: id }) => this.rows.has(id))) {
      this.list.append(...this.make(told)); // the others are there
    } else {
      this.rows.clear(); // the first time, or after more turns than a page has
      this.turns = [];
      replace(this.list, this.make(told));
      this.earlier.hidden = !told.more;
    }
    this.show();
  }

  async loadEarlier() {
    const told = await call("conversation",
      { conversation: this.conversation, before: this.turns[0]?.number }, { signal: this.signal });
    const first = this.list.querySelector(".turn");
    const shown = this.turns;
    this.turns = [];
    this.list.prepend(...this.make(told));
    this.turns.push(...shown);
    this.earlier.hidden = !told.more;
    this.show();
    if (!told.more) first?.focus(); // the button is gone
  }

  // Return the rows of turns that are not shown yet, with those of pauses before them.
  make(told) {
    let end = told.previous;
    let before = null;
    const made = [];
    for (const turn of told.requests) {
      if (!this.rows.has(turn.number)) {
        const gap = end === null ? 0 : turn.started - end;
        if (gap > PAUSE) made.push(pauseRow(gap));
        const row = turnRow(turn, before, gap, told);
        this.rows.set(turn.number, row);
        this.turns.push(turn);
        made.push(row);
      }
      end = turn.started + turn.seconds;
      before = turn;
    }
    return made;
  }

  // Show what follows from all turns: sums, numbers, the scale of the bars, the dearest one.
  show() {
    const { sums, dearest } = this.told;
    replace(this.heading, sums ? t("timeline.count", { count: number(sums.requests) })
      : t("timeline.turns"));
    if (!sums) return replace(this.tiles, h("p", { class: "empty" }, t("timeline.empty")));
    showTitle([h("bdi", {}, headOf(sums)), h("span", { class: "quiet" },
      sums.folder && sums.client ? [" · ", clientOf(sums.client)] : null)],
    dots(startOf(sums), markOf(sums), listed(sums.models.map((name) => cut(name)))));
    replace(this.tiles, tilesOf(this.told, this.turns));
    const longest = Math.max(...this.turns.map(({ seconds }) => seconds), 0.001);
    this.list.style.setProperty("--longest", longest);
    this.list.classList.toggle("many", this.turns.length > 200);
    const first = this.earlier.hidden ? 1 : Math.max(1, sums.requests - this.turns.length + 1);
    this.turns.forEach((turn, place) => {
      const row = this.rows.get(turn.number);
      row.firstElementChild.textContent = number(first + place);
      row.classList.toggle("dearest", turn.number === dearest?.number && sums.requests > 1);
    });
    this.reason.hidden = sums.requests < 2;
    const reason = reasonOf(this.told, this.turns, first);
    const act = [reason.act, reason.number ? h("a", { class: "button",
      href: `${addressOf(this.conversation)}/${reason.number}` }, t("timeline.show")) : null];
    renderAgain(this.reason, () => replace(this.reason,
      healthCard(t("timeline.reason"), { ...reason, act })));
  }
}

function tilesOf(told, turns) {
  const { sums, cache, window } = told;
  const sparkOf = (value) => (turns.length > 1
    ? spark(turns.map((turn) => value(turn) ?? 0), "", t("timeline.each")) : null);
  const last = turns.findLast((turn) => turn.input_tokens);
  const cost = costOf(sums);
  return [
    tile(null, t("request.cost"), spent(cost), "",
      unpricedText(sums)
        || (cache.saved > 0 && !cache.unpriced
          ? t("timeline.without-cache", { cost: dollars(cost + cache.saved) }) : ""),
      sparkOf((turn) => turn.cost)),
    tile(null, t("timeline.worked"), duration(sums.seconds), "",
      t("timeline.within", { time: duration(sums.last - sums.first) }),
      sparkOf(({ seconds }) => seconds)),
    tile(null, t("request.cached"), sums.cached === null ? untold(sums) : percent(sums.cached), "",
      sums.cached === null ? "" : [t("timeline.cached-of", {
        count: number(sums.cache_read_tokens), all: number(sums.cache_input_tokens) }),
      cacheFigures(cache).map(([name, figure, note]) => h("span", { class: "sub" },
        parts("pair", { name: t(`usage.figure.${name}`),
          value: name === "lost" ? parts("noted", { text: figure, note }) : figure })))],
      sparkOf(({ cached }) => cached)),
    window && last
      ? tile(null, t("timeline.window"), percent(last.input_tokens / window), "",
        t("timeline.cached-of", { count: number(last.input_tokens), all: number(window) }),
        sparkOf((turn) => turn.input_tokens))
      : tile(null, t("request.tokens"), tokensOf(sums), "",
        last ? t("timeline.last-prompt", { count: number(last.input_tokens) }) : "",
        sparkOf((turn) => turn.input_tokens)),
  ];
}

// Return what made the conversation dear, or slow if nothing of it has a price: {tone, picture,
// say, next, act, number}.
function reasonOf({ dearest, requests }, turns, first) {
  const found = dearest?.number
    ?? [...turns].sort((one, other) => other.seconds - one.seconds)[0]?.number;
  const place = turns.findIndex((turn) => turn.number === found);
  const turn = turns[place];
  const count = number(turn ? first + place : dearest?.turn);
  const reason = { tone: "calm", picture: "usage", number: found, act: null };
  if (!dearest) {
    return { ...reason, picture: "clock", next: turn ? timesOf(turn) : "",
      say: t("timeline.slowest", { count, time: duration(turn?.seconds) }) };
  }
  const say = t("timeline.dearest",
    { count, cost: dollars(dearest.cost), share: percent(dearest.share) });
  if (!turn) return { ...reason, say, next: requests.length ? t("timeline.above") : "" };
  if (!turn.note) return { ...reason, say, next: whyDear(turn, first + place) };
  return { ...reason, tone: "warn", say, next: expiryOf(turn.note),
    act: keepCache(turn.upstream, "button") };
}

function whyDear(turn, count) {
  if (turn.prompt_change) return promptChange(turn);
  return [count === 1 && !(turn.cached > 0.5) ? [t("timeline.why-first"), " "] : null,
    dots(...usedOf(turn))];
}

const pauseRow = (gap) => h("li", { class: "pause" }, icon("clock"),
  t("timeline.pause", { time: pause(gap) }));

function turnRow(turn, before, gap, { sums, errors }) {
  const failed = turn.outcome === "failed";
  return h("li", { class: failed ? "turn failed" : "turn", tabindex: "-1" },
    h("span", { class: "no" }),
    h("div", {},
      h("div", { class: "row tight" },
        h("strong", {}, kindOf(turn)),
        endBadge(turn, errors), toolTags(turn.tool_calls)),
      h("div", { class: "small quiet" }, dots(...factsOf(turn, gap, sums))),
      h("div", { class: "small quiet" }, timesOf(turn, gap > PAUSE ? null : before))),
    h("div", { class: "took" }, took(turn), h("span", { class: "small" }, duration(turn.seconds))),
    h("span", { class: "price" }, paid(turn)),
    moreOf(turn, failed ? errors[turn.error] : null, errors));
}

function factsOf(turn, gap, sums) {
  const asked = askedOther(turn);
  return [clock(turn.started), gap < 0 ? t("timeline.beside") : null,
    sums.models.length > 1 ? breakable(modelOf(turn)) : null,
    asked ? t("timeline.asked", { model: asked }) : null, ...usedOf(turn)];
}

// Return how long a turn took, beside the longest one: the wait, then the answer.
function took(turn) {
  const waited = turn.seconds ? waitOf(turn) / turn.seconds : 0;
  const parts = bar([["waiting", 0, waited], [turn.outcome === "failed" ? "bad" : "", waited,
    1 - waited]], { class: "whole" });
  parts.style.setProperty("--seconds", turn.seconds);
  return h("span", { class: "bar", role: "img", "aria-label": timesOf(turn) }, parts);
}

function moreOf(turn, row, errors) {
  const mends = mendList(turn, errors);
  if (!turn.note && !mends && !row) return null;
  return h("div", { class: "more" },
    turn.note ? h("p", {}, badge("warn", t("timeline.cache-lost")), " ",
      expiryOf(turn.note)) : null,
    mends,
    row ? h("p", {}, firstAid(row), " ",
      h("a", { href: problemOf(turn.error) }, t("live.to-problem"))) : null);
}
