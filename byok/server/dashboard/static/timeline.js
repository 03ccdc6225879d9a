// One conversation: what it cost and why, then a row for each turn, the oldest first.

import { call } from "./api.js";
import {
  badge, bar, breakable, button, copyText, flushSection, h, healthCard, joinWithDots, replace,
  showTitle, showTools, sparkline, tile,
} from "./dom.js";
import { amountSpent, clock, dollars, duration, number, pauseText, percent } from "./format.js";
import { icon } from "./icons.js";
import { createRefresher, renderAgain } from "./refresh.js";
import {
  barLegend, cacheFigures, cacheLossText, clientName, conversationAddress, costOf, endBadge,
  firstAid, idMark, keepCacheLink, kindOf, mendList, missingText, modelOf, otherModelAsked,
  paidText, problemAddress, promptChangeText, shorten, shortName, startText, timingText, tokensOf,
  toolTags, unpricedText, usageParts, waitOf,
} from "./requests.js";
import { joinList, t, textParts } from "./texts.js";

const MIN_PAUSE_SECONDS = 180; // a pause between requests that gets a row of its own

// Show a conversation. Turns are loaded in pages, the latest page first, earlier ones on a button or
// until the turn with the number `soughtNumber` is found, to which the user is led.
export async function openTimeline(root, [conversation, soughtNumber], signal) {
  const timeline = new Timeline(conversation, signal);
  const { refreshButton, reload, runInOrder, errorSlot } =
    createRefresher((options) => timeline.load(options), signal);
  timeline.earlierButton.addEventListener("click", () => runInOrder(() => timeline.loadEarlier()));
  showTools(h("a", { class: "button", href: "#/conversations" }, t("overview.all-conversations")),
    button([icon("copy"), t("timeline.copy")], "", () => copyText(location.href)), refreshButton);
  replace(root, errorSlot, timeline.tiles, timeline.reason, timeline.section);
  await reload(false);
  const findRow = () => timeline.rows.get(Number(soughtNumber));
  while (soughtNumber && !findRow() && !timeline.earlierButton.hidden) await timeline.loadEarlier();
  findRow()?.classList.add("sought");
  findRow()?.focus();
}

class Timeline {
  constructor(conversation, signal) {
    this.conversation = conversation;
    this.signal = signal;
    this.turns = []; // shown turns, the oldest first
    this.rows = new Map(); // elements of these turns by number
    this.latest = null; // the page of the latest turns, as loaded last
    this.tiles = h("div", { class: "tiles" });
    this.reason = h("div", { hidden: true });
    this.heading = h("span");
    this.list = h("ol", { class: "turns", "aria-label": t("timeline.turns") });
    this.earlierButton = button(t("timeline.earlier"), "", () => {}, { hidden: true });
    this.section = flushSection(this.heading, [barLegend(t("timeline.scale"))],
      this.earlierButton, this.list);
  }

  async load(options) {
    const page = await call("conversation", { conversation: this.conversation }, options);
    this.latest = page;
    if (page.requests.some(({ number: id }) => this.rows.has(id))) {
      this.list.append(...this.buildRows(page)); // the other rows are shown already
    } else {
      this.rows.clear(); // the first page, or one behind a gap of more than a page
      this.turns = [];
      replace(this.list, this.buildRows(page));
      this.earlierButton.hidden = !page.more;
    }
    this.show();
  }

  async loadEarlier() {
    const page = await call("conversation",
      { conversation: this.conversation, before: this.turns[0]?.number }, { signal: this.signal });
    const first = this.list.querySelector(".turn");
    const later = this.turns;
    this.turns = [];
    this.list.prepend(...this.buildRows(page));
    this.turns.push(...later);
    this.earlierButton.hidden = !page.more;
    this.show();
    if (!page.more) first?.focus(); // the button is gone
  }

  // Return rows for the turns of a page that are not shown yet, and for the pauses before them.
  buildRows(page) {
    let previousEnd = page.previous;
    let previous = null;
    const rows = [];
    for (const turn of page.requests) {
      if (!this.rows.has(turn.number)) {
        const gap = previousEnd === null ? 0 : turn.started - previousEnd;
        if (gap > MIN_PAUSE_SECONDS) rows.push(pauseRow(gap));
        const row = turnRow(turn, previous, gap, page);
        this.rows.set(turn.number, row);
        this.turns.push(turn);
        rows.push(row);
      }
      previousEnd = turn.started + turn.seconds;
      previous = turn;
    }
    return rows;
  }

  // Show what depends on all turns: sums, numbers, the scale of the bars, the most expensive turn.
  show() {
    const { sums, dearest } = this.latest;
    replace(this.heading, sums ? t("timeline.count", { count: number(sums.requests) })
      : t("timeline.turns"));
    if (!sums) return replace(this.tiles, h("p", { class: "empty" }, t("timeline.empty")));
    showTitle([h("bdi", {}, shortName(sums)), h("span", { class: "quiet" },
      sums.folder && sums.client ? [" · ", clientName(sums.client)] : null)],
    joinWithDots(startText(sums), idMark(sums), joinList(sums.models.map((name) => shorten(name)))));
    replace(this.tiles, createTiles(this.latest, this.turns));
    const longest = Math.max(...this.turns.map(({ seconds }) => seconds), 0.001);
    this.list.style.setProperty("--longest", longest);
    this.list.classList.toggle("many", this.turns.length > 200);
    const first = this.earlierButton.hidden ? 1 : Math.max(1, sums.requests - this.turns.length + 1);
    this.turns.forEach((turn, index) => {
      const row = this.rows.get(turn.number);
      row.firstElementChild.textContent = number(first + index);
      row.classList.toggle("dearest", turn.number === dearest?.number && sums.requests > 1);
    });
    this.reason.hidden = sums.requests < 2;
    const reason = describeReason(this.latest, this.turns, first);
    const actions = [reason.actions, reason.number ? h("a", { class: "button",
      href: `${conversationAddress(this.conversation)}/${reason.number}` }, t("timeline.show")) : null];
    renderAgain(this.reason, healthCard(t("timeline.reason"), { ...reason, actions }));
  }
}

function createTiles(latest, turns) {
  const { sums, cache, window } = latest;
  const turnSparkline = (value) => (turns.length > 1
    ? sparkline(turns.map((turn) => value(turn) ?? 0), "", t("timeline.each")) : null);
  const last = turns.findLast((turn) => turn.input_tokens);
  const cost = costOf(sums);
  return [
    tile(null, t("request.cost"), amountSpent(cost), "",
      unpricedText(sums)
        || (cache.saved > 0 && !cache.unpriced
          ? t("timeline.without-cache", { cost: dollars(cost + cache.saved) }) : ""),
      turnSparkline((turn) => turn.cost)),
    tile(null, t("timeline.worked"), duration(sums.seconds), "",
      t("timeline.within", { time: duration(sums.last - sums.first) }),
      turnSparkline(({ seconds }) => seconds)),
    tile(null, t("request.cached"), sums.cached === null ? missingText(sums) : percent(sums.cached), "",
      sums.cached === null ? "" : [t("timeline.cached-of", {
        count: number(sums.cache_read_tokens), all: number(sums.cache_input_tokens) }),
      cacheFigures(cache).map(([name, figure, note]) => h("span", { class: "sub" },
        textParts("pair", { name: t(`usage.figure.${name}`),
          value: name === "lost" ? textParts("noted", { text: figure, note }) : figure })))],
      turnSparkline(({ cached }) => cached)),
    window && last
      ? tile(null, t("timeline.window"), percent(last.input_tokens / window), "",
        t("timeline.cached-of", { count: number(last.input_tokens), all: number(window) }),
        turnSparkline((turn) => turn.input_tokens))
      : tile(null, t("request.tokens"), tokensOf(sums), "",
        last ? t("timeline.last-prompt", { count: number(last.input_tokens) }) : "",
        turnSparkline((turn) => turn.input_tokens)),
  ];
}

// Return what made the conversation expensive, or slow if none of its prices is known, as options
// of a health card, with the `number` of the turn. `first` is the position of the first shown turn.
function describeReason({ dearest, requests }, turns, first) {
  const turnNumber = dearest?.number
    ?? [...turns].sort((one, other) => other.seconds - one.seconds)[0]?.number;
  const index = turns.findIndex((turn) => turn.number === turnNumber);
  const turn = turns[index];
  const count = number(turn ? first + index : dearest?.turn);
  const reason = { tone: "calm", picture: "usage", number: turnNumber, actions: null };
  if (!dearest) {
    return { ...reason, picture: "clock", detail: turn ? timingText(turn) : "",
      headline: t("timeline.slowest", { count, time: duration(turn?.seconds) }) };
  }
  const headline = t("timeline.dearest",
    { count, cost: dollars(dearest.cost), share: percent(dearest.share) });
  if (!turn) return { ...reason, headline, detail: requests.length ? t("timeline.above") : "" };
  if (!turn.note) return { ...reason, headline, detail: costReason(turn, first + index) };
  return { ...reason, tone: "warn", headline, detail: cacheLossText(turn.note),
    actions: keepCacheLink(turn.upstream, "button") };
}

function costReason(turn, count) {
  if (turn.prompt_change) return promptChangeText(turn);
  return [count === 1 && !(turn.cached > 0.5) ? [t("timeline.why-first"), " "] : null,
    joinWithDots(...usageParts(turn))];
}

const pauseRow = (gap) => h("li", { class: "pause" }, icon("clock"),
  t("timeline.pause", { time: pauseText(gap) }));

function turnRow(turn, previous, gap, { sums, errors }) {
  const failed = turn.outcome === "failed";
  return h("li", { class: failed ? "turn failed" : "turn", tabindex: "-1" },
    h("span", { class: "no" }),
    h("div", {},
      h("div", { class: "row tight" },
        h("strong", {}, kindOf(turn)),
        endBadge(turn, errors), toolTags(turn.tool_calls)),
      h("div", { class: "small quiet" }, joinWithDots(...turnFacts(turn, gap, sums))),
      h("div", { class: "small quiet" }, timingText(turn, gap > MIN_PAUSE_SECONDS ? null : previous))),
    h("div", { class: "took" }, durationBar(turn), h("span", { class: "small" }, duration(turn.seconds))),
    h("span", { class: "price" }, paidText(turn)),
    turnNotes(turn, failed ? errors[turn.error] : null, errors));
}

function turnFacts(turn, gap, sums) {
  const otherModel = otherModelAsked(turn);
  return [clock(turn.started), gap < 0 ? t("timeline.beside") : null,
    sums.models.length > 1 ? breakable(modelOf(turn)) : null,
    otherModel ? t("timeline.asked", { model: otherModel }) : null, ...usageParts(turn)];
}

// Return a bar of a turn's duration relative to the longest one: the wait, then the answer.
function durationBar(turn) {
  const waitShare = turn.seconds ? waitOf(turn) / turn.seconds : 0;
  const shares = bar([["waiting", 0, waitShare], [turn.outcome === "failed" ? "bad" : "", waitShare,
    1 - waitShare]], { class: "whole" });
  shares.style.setProperty("--seconds", turn.seconds);
  return h("span", { class: "bar", role: "img", "aria-label": timingText(turn) }, shares);
}

function turnNotes(turn, errorRow, errors) {
  const mends = mendList(turn, errors);
  if (!turn.note && !mends && !errorRow) return null;
  return h("div", { class: "more" },
    turn.note ? h("p", {}, badge("warn", t("timeline.cache-lost")), " ",
      cacheLossText(turn.note)) : null,
    mends,
    errorRow ? h("p", {}, firstAid(errorRow), " ",
      h("a", { href: problemAddress(turn.error) }, t("live.to-problem"))) : null);
}
