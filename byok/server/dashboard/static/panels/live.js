// Live requests: those that are being answered, and the last ones that ended.

import { call, onSessionEnd } from "../api.js";
import {
  attempt, button, copyButton, factList, h, replace, searchBox, searchField, segments, showTools,
  withCode,
} from "../dom.js";
import { amountSpent, duration, number, time } from "../format.js";
import { icon } from "../icons.js";
import { MAX_ENDED, onRequests, onState } from "../live.js";
import { setAddress } from "../places.js";
import { renderAgain } from "../refresh.js";
import {
  barLegend, clientName, conversationAddress, kindOf, mendList, modelOf, problemAddress, timingText,
} from "../requests.js";
import { t } from "../texts.js";
import { bytesText, elapsed, FULL_BAR_SECONDS, LiveTable, stateOf } from "./live-table.js";

const TICK_MS = 250;
const SPOKEN_SUMMARY_MS = 10000; // between two summaries for screen readers
const FILTERS = {
  models: (row) => Boolean(row.purpose || row.model || row.outcome === "failed"),
  all: () => true,
  open: (row) => row.outcome === "open",
  failed: (row) => row.outcome === "failed",
};
const createQuery = () => ({ filter: "models", words: [] });
let query = createQuery(); // stays while the page is open, so that Back shows the same
onSessionEnd(() => { query = createQuery(); });

// `#/live/ID` shows the details of a request.
export function open(root, parts, signal) {
  new LivePanel(root, signal, parts[0]);
}

class LivePanel {
  constructor(root, signal, soughtId) {
    this.soughtId = soughtId; // of a request whose details are opened once it is received
    this.rows = new Map();
    this.isPaused = false;
    this.isConnected = false;
    this.chosenId = null; // of the request whose details are shown
    this.ticker = 0; // the timer that updates durations
    this.lastSpoken = "";
    this.errors = {}; // rows of byok's table of errors by code, null while one is loaded
    this.signal = signal;
    this.table = new LiveTable((id) => this.choose(id));
    this.createContent(root);
    onRequests((update) => this.applyUpdate(update), signal);
    addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.chosenId || document.querySelector("dialog[open]")) return;
      this.close();
    }, { signal });
    onState((state) => { this.isConnected = state === "on"; this.showCounts(); }, signal);
    const spokenTimer = setInterval(() => this.speakSummary(), SPOKEN_SUMMARY_MS);
    signal.addEventListener("abort", () => {
      clearInterval(spokenTimer);
      clearInterval(this.ticker);
    });
  }

  createContent(root) {
    this.summary = h("span", { class: "quiet small" });
    this.spoken = h("p", { class: "hidden", role: "status" });
    this.emptyNote = h("p", { class: "empty" });
    this.moreButton = button("", "", () => this.showMore());
    this.details = h("aside", { class: "card drawer", hidden: true,
      "aria-label": t("live.details-title") });
    this.pauseButton = button("", "", () => this.togglePause(), { "aria-pressed": "false" });
    const filters = segments(t("live.filter"),
      Object.keys(FILTERS).map((name) => [name, t(`live.filter.${name}`)]), query.filter,
      (name) => { query.filter = name; this.showAll(); });
    const search = searchField(t("live.find"), (words) => {
      query.words = wordsOf(words);
      this.showAll();
    }, { value: query.words.join(" ") });
    this.showPause();
    showTools(this.summary, this.pauseButton);
    replace(root, h("div", { class: "row" }, filters, searchBox(search)), this.spoken,
      h("div", { class: "card flush" }, this.table.element, this.emptyNote, this.moreButton),
      barLegend(t("live.scale", { time: duration(FULL_BAR_SECONDS) })),
      h("p", { class: "quiet small" }, t("live.since", { most: number(MAX_ENDED) }), " ",
        h("a", { href: "#/conversations" }, t("conversations.title"))),
      this.details);
    this.showAll();
  }

  applyUpdate({ reset, changed, rows }) {
    this.rows = rows;
    if (this.isPaused) return;
    if (reset) this.showAll();
    else this.table.change(changed.filter((row) => this.isMatch(row)));
    this.removeOthers(changed);
    if (this.rows.has(this.soughtId)) this.openDetails(this.soughtId);
    if (reset || changed.some((row) => row.request_id === this.chosenId)) this.showDetails();
    this.showCounts();
  }

  isMatch(row) {
    return FILTERS[query.filter](row)
      && (!query.words.length || query.words.every((word) => textOf(row).includes(word)));
  }

  showAll() {
    this.table.reset([...this.rows.values()].filter((row) => this.isMatch(row)));
    this.showCounts();
  }

  removeOthers(changed) {
    for (const row of changed) if (!this.isMatch(row)) this.table.remove(row.request_id);
  }

  togglePause() {
    this.isPaused = !this.isPaused;
    this.showPause();
    if (!this.isPaused) this.showAll();
    this.showCounts();
  }

  showPause() {
    this.pauseButton.setAttribute("aria-pressed", String(this.isPaused));
    replace(this.pauseButton, icon(this.isPaused ? "play" : "pause"), t("live.pause"));
  }

  showMore() {
    this.table.showMost();
    this.showAll();
    this.table.element.focus();
  }

  showCounts() {
    const all = [...this.rows.values()].filter((row) => this.isMatch(row));
    const count = (name) => all.filter((row) => row.outcome === name).length;
    const openCount = count("open");
    const summary = t("live.summary", { open: number(openCount), failed: number(count("failed")),
      ended: number(all.length - openCount) });
    this.summary.textContent = this.isPaused ? t("live.paused")
      : this.rows.size < MAX_ENDED ? t("live.summary.all", { summary }) : summary;
    this.emptyNote.hidden = this.table.size > 0;
    this.table.element.hidden = this.table.size === 0;
    const hiddenCount = all.length - this.table.size;
    this.moreButton.hidden = hiddenCount <= 0 || this.table.isFull || this.isPaused;
    this.moreButton.textContent = t("live.more", { count: number(hiddenCount) });
    this.emptyNote.textContent = t(this.rows.size ? "live.none-fits" : "live.empty");
    this.tickWhile(openCount > 0 && this.isConnected && !this.isPaused);
  }

  tickWhile(isWanted) {
    if (isWanted && !this.ticker) {
      this.ticker = setInterval(() => this.table.tick(this.rows), TICK_MS);
    } else if (!isWanted && this.ticker) {
      clearInterval(this.ticker);
      this.ticker = 0;
    }
  }

  // Have screen readers read the summary, if it differs from the one that they read last.
  speakSummary() {
    const text = this.summary.textContent;
    if (text === this.lastSpoken || this.isPaused) return;
    this.lastSpoken = this.spoken.textContent = text;
  }

  choose(id) {
    if (!this.rows.has(id)) return;
    this.openDetails(id);
    this.details.querySelector("h2").focus();
    setAddress(`#/live/${encodeURIComponent(id)}`);
  }

  openDetails(id) {
    this.chosenId = id;
    this.soughtId = null;
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
    const id = this.chosenId;
    this.chosenId = null;
    this.details.hidden = true;
    this.table.focusOn(id);
    setAddress("#/live");
  }

  // Return the turn before a request in its conversation, as far as it is among the rows.
  previousTurn({ conversation, started }) {
    return [...this.rows.values()].filter((row) => conversation && row.outcome !== "open"
      && row.conversation === conversation && row.started < started)
      .reduce((last, row) => (last?.started > row.started ? last : row), null);
  }

  // Show the details of the chosen request. If it is among the rows no longer, what was shown last
  // stays.
  showDetails() {
    const row = this.chosenId && this.rows.get(this.chosenId);
    if (!row) return;
    replace(this.facts, row.outcome === "open" ? null
      : h("p", {}, timingText(row, this.previousTurn(row))),
    row.message ? h("p", { class: "bad" }, row.message) : null,
    mendList(row, this.errors),
    factList([...stateOfRow(row, this.errors), ...routeOfRow(row), ...usageOfRow(row)]));
    renderAgain(this.links,
      row.conversation
        ? h("a", { href: conversationAddress(row.conversation) }, t("live.to-conversation")) : null,
      row.error ? h("a", { href: problemAddress(row.error) }, t("live.to-problem")) : null);
    this.loadErrors([row.error, ...row.retried?.split(" ") ?? []]
      .filter((code) => code && !(code in this.errors)));
  }

  // Load what errors mean, and show it.
  loadErrors(codes) {
    if (!codes.length) return;
    for (const code of codes) this.errors[code] = null; // so that each is loaded once
    attempt(h("div"), this.signal, async () => {
      Object.assign(this.errors, await call("errors", { codes },
        { signal: this.signal, background: true }));
      this.showDetails();
    });
  }
}

const wordsOf = (text) => text.toLowerCase().split(/\s+/u).filter(Boolean);

// Return the text of a request in which the search looks for words.
const textOf = (row) => [kindOf(row), clientName(row.client), row.client, modelOf(row), row.model_asked,
  row.conversation, row.error, row.message, row.request_id].join("\n").toLowerCase();

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

function routeOfRow(row) {
  const pieces = (size, count) => (size === null || size === undefined
    ? t("live.not-counted")
    : t("live.pieces", { size: bytesText(size), count: number(count) }));
  return [
    [t("request.client"), row.client.includes("/")
      ? t("noted", { text: clientName(row.client), note: row.client }) : clientName(row.client)],
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
  const countText = (value) => (value === null ? null : number(value));
  return [
    [t("usage.figure.in"), countText(row.input_tokens)],
    [t("usage.figure.out"), countText(row.output_tokens)],
    [t("live.tokens-read"), countText(row.cache_read_tokens)],
    [t("live.tokens-written"), countText(row.cache_written_tokens)],
    [t("request.cost"), row.outcome === "open" ? null : amountSpent(row.cost)],
    [t("live.tools"), row.tool_calls],
    [t("live.prompt"), row.prompt],
  ];
}
