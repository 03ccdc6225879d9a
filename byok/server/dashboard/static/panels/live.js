// Requests as they are answered, and the last that ended.

import { call, onEnd } from "../api.js";
import {
  attempt, button, copyButton, facts, h, replace, seekField, seeking, segments, showTools, withCode,
} from "../dom.js";
import { icon } from "../icons.js";
import { duration, number, spent, time } from "../format.js";
import { MOST_ENDED, onRequests, onState } from "../live.js";
import { renderAgain } from "../refresh.js";
import {
  addressOf, barLegend, clientOf, kindOf, mendList, modelOf, problemOf, timesOf,
} from "../requests.js";
import { t } from "../texts.js";
import { bytes, elapsed, LiveTable, stateOf, WHOLE } from "./live-table.js";

const TICK = 250; // milliseconds
const SAY = 10000; // milliseconds between two summaries for screen readers
const FILTERS = {
  models: (row) => Boolean(row.purpose || row.model || row.outcome === "failed"),
  all: () => true,
  open: (row) => row.outcome === "open",
  failed: (row) => row.outcome === "failed",
};
const begin = () => ({ filter: "models", words: [] });
let asked = begin(); // it stays while the page is open, so that Back leads to the same
onEnd(() => { asked = begin(); });

// `#/live/ID` shows the facts of a request.
export function open(root, rest, signal) {
  new LivePanel(root, signal, rest[0]);
}

class LivePanel {
  constructor(root, signal, wanted) {
    this.wanted = wanted; // the id of a request that is not told yet
    this.rows = new Map();
    this.paused = false;
    this.connected = false;
    this.chosen = null; // the id of the request whose facts are shown
    this.ticking = 0;
    this.said = "";
    this.errors = {}; // what is known of them, by code
    this.signal = signal;
    this.table = new LiveTable((id) => this.choose(id));
    this.build(root);
    onRequests((news) => this.take(news), signal);
    addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.chosen || document.querySelector("dialog[open]")) return;
      this.close();
    }, { signal });
    onState((state) => { this.connected = state === "on"; this.showCounts(); }, signal);
    const saying = setInterval(() => this.say(), SAY);
    signal.addEventListener("abort", () => {
      clearInterval(saying);
      clearInterval(this.ticking);
    });
  }

  build(root) {
    this.summary = h("span", { class: "quiet" });
    this.spoken = h("p", { class: "hidden", role: "status" });
    this.empty = h("p", { class: "empty" });
    this.more = button("", "", () => this.showMore());
    this.details = h("aside", { class: "card drawer", hidden: true,
      "aria-label": t("live.details-title") });
    this.pause = button("", "", () => this.toggle(), { "aria-pressed": "false" });
    const filters = segments(t("live.filter"),
      Object.keys(FILTERS).map((name) => [name, t(`live.filter.${name}`)]), asked.filter,
      (name) => { asked.filter = name; this.showAll(); });
    const search = seekField(t("live.find"), (words) => {
      asked.words = wordsOf(words);
      this.showAll();
    }, { value: asked.words.join(" ") });
    this.showPause();
    showTools(this.summary, this.pause);
    replace(root, h("div", { class: "row" }, filters, seeking(search)), this.spoken,
      h("div", { class: "card flush" }, this.table.element, this.empty, this.more),
      barLegend(t("live.scale", { time: duration(WHOLE) })),
      h("p", { class: "quiet small" }, t("live.since", { most: number(MOST_ENDED) }), " ",
        h("a", { href: "#/conversations" }, t("conversations.title"))),
      this.details);
    this.showAll();
  }

  take({ reset, changed, rows }) {
    this.rows = rows;
    if (this.paused) return;
    if (reset) this.showAll();
    else this.table.change(changed.filter((row) => this.fits(row)));
    this.removeOthers(changed);
    if (this.rows.has(this.wanted)) this.unfold(this.wanted);
    if (reset || changed.some((row) => row.request_id === this.chosen)) this.showDetails();
    this.showCounts();
  }

  fits(row) {
    return FILTERS[asked.filter](row)
      && (!asked.words.length || asked.words.every((word) => textOf(row).includes(word)));
  }

  showAll() {
    this.table.reset([...this.rows.values()].filter((row) => this.fits(row)));
    this.showCounts();
  }

  removeOthers(changed) {
    for (const row of changed) if (!this.fits(row)) this.table.remove(row.request_id);
  }

  toggle() {
    this.paused = !this.paused;
    this.showPause();
    if (!this.paused) this.showAll();
    this.showCounts();
  }

  showPause() {
    this.pause.setAttribute("aria-pressed", String(this.paused));
    replace(this.pause, icon(this.paused ? "play" : "pause"), t("live.pause"));
  }

  showMore() {
    this.table.showMost();
    this.showAll();
    this.table.element.focus();
  }

  showCounts() {
    const all = [...this.rows.values()].filter((row) => this.fits(row));
    const count = (name) => all.filter((row) => row.outcome === name).length;
    const opened = count("open");
    const text = t("live.summary", { open: number(opened), failed: number(count("failed")),
      ended: number(all.length - opened) });
    this.summary.textContent = this.paused ? t("live.paused") : text;
    this.empty.hidden = this.table.size > 0;
    this.table.element.hidden = this.table.size === 0;
    const rest = all.length - this.table.size;
    this.more.hidden = rest <= 0 || this.table.isFull || this.paused;
    this.more.textContent = t("live.more", { count: number(rest) });
    this.empty.textContent = t(this.rows.size ? "live.none-fits" : "live.empty");
    this.tickWhile(opened > 0 && this.connected && !this.paused);
  }

  tickWhile(wanted) {
    if (wanted && !this.ticking) {
      this.ticking = setInterval(() => this.table.tick(this.rows), TICK);
    } else if (!wanted && this.ticking) {
      clearInterval(this.ticking);
      this.ticking = 0;
    }
  }

  // Say the numbers if they differ from those that were said last.
  say() {
    const text = this.summary.textContent;
    if (text === this.said || this.paused) return;
    this.said = this.spoken.textContent = text;
  }

  choose(id) {
    if (!this.rows.has(id)) return;
    this.unfold(id);
    this.details.querySelector("h2").focus();
    setAddress(id);
  }

  unfold(id) {
    this.chosen = id;
    this.wanted = null;
    this.facts = h("div");
    this.links = h("div", { class: "row" });
    const close = button(icon("cross"), "bare little icon-only", () => this.close(),
      { "aria-label": t("close") });
    replace(this.details, h("div", { class: "head" }, h("h2", { tabindex: "-1" },
      t("live.request-title", { id })), h("div", { class: "row" },
      copyButton(id, t("request.id")), close)),
    this.facts, this.links);
    this.details.hidden = false;
    this.showDetails();
  }

  close() {
    const id = this.chosen;
    this.chosen = null;
    this.details.hidden = true;
    this.table.focusOn(id);
    setAddress("");
  }

  turnBefore({ conversation, started }) {
    return [...this.rows.values()].filter((row) => conversation && row.outcome !== "open"
      && row.conversation === conversation && row.started < started)
      .reduce((last, row) => (last?.started > row.started ? last : row), null);
  }

  // A request that is told no more keeps the facts that were shown last.
  showDetails() {
    const row = this.chosen && this.rows.get(this.chosen);
    if (!row) return;
    replace(this.facts, row.outcome === "open" ? null
      : h("p", {}, timesOf(row, this.turnBefore(row))),
    row.message ? h("p", { class: "bad" }, row.message) : null,
    mendList(row, this.errors),
    facts([...stateOfRow(row, this.errors), ...wayOfRow(row), ...usageOfRow(row)]));
    renderAgain(this.links, () => replace(this.links,
      row.conversation
        ? h("a", { href: addressOf(row.conversation) }, t("live.to-conversation")) : null,
      row.error ? h("a", { href: problemOf(row.error) }, t("live.to-problem")) : null));
    this.explain([row.error, ...row.retried?.split(" ") ?? []]
      .filter((code) => code && !(code in this.errors)));
  }

  // Find out what errors mean, and show it.
  explain(codes) {
    if (!codes.length) return;
    for (const code of codes) this.errors[code] = null; // it is asked for once
    attempt(h("div"), this.signal, async () => {
      Object.assign(this.errors, await call("errors", { codes },
        { signal: this.signal, background: true }));
      this.showDetails();
    });
  }
}

const wordsOf = (text) => text.toLowerCase().split(/\s+/u).filter(Boolean);

// Return what is searched of a request.
const textOf = (row) => [kindOf(row), clientOf(row.client), row.client, modelOf(row), row.model_asked,
  row.conversation, row.error, row.message, row.request_id].join("\n").toLowerCase();

// So that Back, and another language, show the same request.
function setAddress(id) {
  const address = id ? `#/live/${encodeURIComponent(id)}` : "#/live";
  history.replaceState(history.state, "", address);
}

function stateOfRow(row, errors) {
  const { what } = errors[row.error] ?? {};
  return [
    [t("request.state"), t(`live.state.${stateOf(row)}`)],
    [t("live.error"), what ? [withCode(what), " ", h("code", {}, row.error)]
      : [row.error, row.error_class].filter(Boolean).join(", ")],
    [t("live.status"), row.status || null],
    [t("request.time"), time(row.started)],
    [t("request.duration"), duration(elapsed(row))],
    [t("live.first-byte"), row.first_byte === null ? null : duration(row.first_byte)],
  ];
}

function wayOfRow(row) {
  const pieces = (size, count) => (size === null || size === undefined
    ? t("live.not-counted")
    : t("live.pieces", { size: bytes(size), count: number(count) }));
  return [
    [t("request.client"), row.client.includes("/")
      ? t("noted", { text: clientOf(row.client), note: row.client }) : clientOf(row.client)],
    [t("conversations.id"), row.conversation],
    [t("live.endpoint"), row.endpoint],
    [t("usage.by.purpose"), row.purpose && kindOf(row)],
    [t("live.model-asked"), row.model_asked],
    [t("live.upstream"), row.upstream],
    [t("live.model-used"), row.model],
    [t("live.to-client"), pieces(row.sent, row.pieces)],
    [t("live.from-upstream"), pieces(row.received, row.reads)],
  ];
}

function usageOfRow(row) {
  const known = (value) => (value === null ? null : number(value));
  return [
    [t("usage.figure.in"), known(row.input_tokens)],
    [t("usage.figure.out"), known(row.output_tokens)],
    [t("live.tokens-read"), known(row.cache_read_tokens)],
    [t("live.tokens-written"), known(row.cache_written_tokens)],
    [t("request.cost"), row.outcome === "open" ? null : spent(row.cost)],
    [t("live.tools"), row.tool_calls],
    [t("live.prompt"), row.prompt],
  ];
}
