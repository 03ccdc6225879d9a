// Conversations, found by words, client and cost; `#/conversations/ID` is one of them,
// `#/conversations/ID/NUMBER` a turn of it. `#/conversations?client=vscode&sort=cost` keeps what is
// shown in which order, but not the words that somebody searches for.

import { call, onEnd } from "../api.js";
import {
  ago, badge, breakable, button, cardOrder, dots, h, menu, nothing, optionsOf, replace, seekField,
  seeking, showTools, table,
} from "../dom.js";
import { dollars, number, percent } from "../format.js";
import { onRequests } from "../live.js";
import { pulse, refresher, renderAgain } from "../refresh.js";
import {
  clientOf, conversationLink, costCell, costText, cut, restOf, tokensOf, untold,
} from "../requests.js";
import { pairOf, t } from "../texts.js";
import { openTimeline } from "../timeline.js";

const COUNT = 50; // of a page
const PAUSE = 250; // ms after a key before words are looked for
const MOST = 500; // rows that are asked for again
const AMOUNTS = [0.1, 0.5, 1, 5]; // US dollars
const SORTS = { last: "conversations.sort.last", start: "request.time", cost: "request.cost",
  turns: "conversations.sort.turns", tokens: "request.tokens", errors: "problems.title",
  folder: "search.folder" };
const begin = () => ({ sort: "last", descending: true, find: "", client: "", least_cost: 0,
  errors: false });
let asked = begin(); // it stays while the page is open, where an address tells nothing else
let reached = 0; // how many rows were shown last, so that Back finds the one that was left
onEnd(() => { asked = begin(); });

export async function open(root, rest, signal) {
  if (rest[0]) return openTimeline(root, rest, signal);
  readAddress();
  writeAddress();
  const list = new List(signal);
  const wanted = Math.min(reached, MOST);
  replace(root, list.filters, list.trouble, list.shown, list.more);
  await list.run(false);
  for (let rows = 0; rows < list.rows.length && list.rows.length < wanted;) {
    rows = list.rows.length;
    await list.attempt(() => list.loadMore());
  }
}

function readAddress() {
  const [, query] = location.hash.split("?");
  if (!query) return;
  const told = new URLSearchParams(query);
  const known = (name, values, usual) => values.find((one) => String(one) === told.get(name)) ?? usual;
  const usual = sortedBy(known("sort", Object.keys(SORTS), "last"));
  asked = { ...usual, find: asked.find, client: told.get("client") ?? "",
    least_cost: known("least_cost", AMOUNTS, 0), errors: told.get("errors") === "true",
    descending: known("descending", [true, false], usual.descending) };
}

function writeAddress() {
  const usual = { ...begin(), ...sortedBy(asked.sort), sort: "last", find: asked.find };
  const told = Object.entries(asked).filter(([name, value]) => value !== usual[name]);
  history.replaceState(history.state, "",
    `#/conversations${told.length ? `?${new URLSearchParams(told)}` : ""}`);
}

class List {
  constructor(signal) {
    this.signal = signal;
    this.rows = [];
    this.told = null; // the last answer
    this.shownFor = ""; // what was asked for
    this.running = new Set();
    this.timer = 0;
    this.soon = pulse(signal);
    Object.assign(this, refresher((options) => this.load(options), signal));
    this.count = h("span", { class: "quiet small", role: "status" });
    this.shown = h("div", { class: "card flush" });
    this.more = button(t("conversations.older"), "", () =>
      this.attempt(() => this.goOn()), { hidden: true });
    this.buildFilters();
    showTools(this.count, this.refresh);
    onRequests(({ rows }) => this.takeLive([...rows.values()]), signal);
    signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  buildFilters() {
    const change = (values) => this.change(values);
    this.search = seekField(t("conversations.find"), (words) => {
      clearTimeout(this.timer);
      this.timer = setTimeout(change, PAUSE, { find: words.trim() });
    }, { value: asked.find });
    this.client = menu(t("request.client"), [], (client) => change({ client }));
    this.amount = menu(t("request.cost"), [["0", t("conversations.any-cost")],
      ...AMOUNTS.map((amount) => [String(amount),
        t("conversations.at-least", { cost: dollars(amount) })])],
    (amount) => change({ least_cost: Number(amount) }));
    this.order = cardOrder(Object.entries(SORTS).map(([name, key]) => [name, t(key)]),
      (name) => this.sort(name));
    this.failed = h("input", { type: "checkbox",
      on: { change: () => change({ errors: this.failed.checked }) } });
    this.filters = h("div", { class: "row filters" },
      seeking(this.search), this.client, this.amount, this.order.element,
      h("label", { class: "row tight" }, this.failed, t("conversations.with-errors")));
  }

  get sorted() {
    return { by: asked.sort, down: asked.descending };
  }

  change(values) {
    reached = 0;
    Object.assign(asked, values);
    writeAddress();
    this.run(false);
  }

  showFilters() {
    const names = this.told.clients.map(({ client }) => client);
    if (asked.client && !names.includes(asked.client)) names.push(asked.client);
    const options = [["", t("conversations.any-client")],
      ...names.map((name) => [name, clientOf(name)])];
    if (this.client.length !== options.length) replace(this.client, optionsOf(options));
    this.client.value = asked.client;
    this.amount.value = String(asked.least_cost);
    this.order.show(this.sorted);
    this.failed.checked = asked.errors;
  }

  takeLive(rows) {
    const running = new Set(rows.filter(({ outcome }) => outcome === "open")
      .map(({ conversation }) => conversation));
    const isSame = running.size === this.running.size
      && [...running].every((id) => this.running.has(id));
    this.running = running;
    if (!isSame && this.rows.length) this.show();
  }

  // Ask for the first page; what else is shown stays below it, unless it was asked otherwise.
  async load(options) {
    const wanted = JSON.stringify(asked);
    this.shown.setAttribute("aria-busy", "true");
    const told = await call("conversations", { ...asked, count: COUNT }, options)
      .finally(() => this.shown.removeAttribute("aria-busy"));
    const known = new Set(told.conversations.map(({ conversation }) => conversation));
    const others = wanted === this.shownFor && told.more
      ? this.rows.filter(({ conversation }) => !known.has(conversation)) : [];
    this.take(told, wanted, [...told.conversations, ...others]);
    this.soon(!told.total && (() => this.run(true))); // it is counted meanwhile
  }

  async loadMore() {
    const known = new Set(this.rows.map(({ conversation }) => conversation));
    const told = await call("conversations",
      { ...asked, count: COUNT, offset: this.rows.length }, { signal: this.signal });
    const more = told.conversations.filter(({ conversation }) => !known.has(conversation));
    this.take(told, this.shownFor, [...this.rows, ...more]);
    return more[0]?.conversation;
  }

  // Lead the user to the first of the older ones.
  async goOn() {
    const first = await this.loadMore();
    [...this.shown.querySelectorAll("td.lead a")].find((link) => link.dataset.key === first)
      ?.focus();
  }

  take(told, wanted, rows) {
    Object.assign(this, { told, shownFor: wanted, rows });
    reached = Math.max(reached, rows.length);
    this.showFilters();
    this.show();
  }

  show() {
    const { told, rows } = this;
    const { total, known } = told;
    replace(this.count, !total ? t("conversations.counting") : known === 0 ? null
      : dots(total.conversations === known ? t("conversations.count", { count: number(known) })
        : t("conversations.found", { count: number(total.conversations), known: number(known) }),
      t("conversations.kept", { count: number(told.keep_days) }),
      !total.requests ? null : total.conversations < known ? costText(total)
        : t("conversations.cost", { cost: costText(total) })));
    renderAgain(this.shown, () => replace(this.shown, rows.length
      ? table(t("conversations.title"), this.columns(), rows,
        { sorted: this.sorted, onSort: (name) => this.sort(name) })
      : this.none()));
    this.more.hidden = !(total ? rows.length < total.conversations : told.more);
  }

  sort(name) {
    this.change(asked.sort === name ? { descending: !asked.descending } : sortedBy(name));
  }

  none() {
    if (this.told.known) {
      return nothing("search", t("conversations.none-fits"), t("conversations.none-fits.why"),
        button(t("conversations.show-all"), "", () => this.showAll()));
    }
    return nothing("conversations", t("conversations.empty"),
      t(this.told.keep_days === 0 ? "journal.off" : "conversations.empty.why"),
      h("a", { class: "button", href: "#/overview" }, t("overview.title")));
  }

  showAll() {
    this.search.value = "";
    this.search.focus();
    this.change(begin());
  }

  columns() {
    const most = Math.max(...this.rows.map(({ cost }) => cost), 1e-9);
    return [
      { title: t("conversations.id"), sort: "folder", lead: true, cell: (one) =>
        [conversationLink(one), h("span", { class: "sub" }, dots(...restOf(one)))] },
      { title: t("request.model"), cell: models },
      { title: t("conversations.sort.turns"), sort: "turns", numeric: true,
        cell: (one) => number(one.requests) },
      { title: t("request.tokens"), sort: "tokens", numeric: true, cell: tokensOf },
      { title: t("conversations.cached"), numeric: true, cell: cacheCell },
      { title: t("request.cost"), sort: "cost", numeric: true, aside: true,
        cell: (one) => costCell(one, most) },
      { title: t("problems.title"), sort: "errors", numeric: true, cell: troubles },
      { title: t("conversations.sort.last"), sort: "last", numeric: true, cell: (one) =>
        (this.running.has(one.conversation) ? badge("info", t("conversations.running"))
          : ago(one.last)) },
    ];
  }
}

// What is large, late or many comes first; names go from A to Z.
const sortedBy = (name) => ({ sort: name, descending: name !== "folder" });

function cacheCell(one) {
  if (!one.expired) return one.cached === null ? untold(one) : percent(one.cached);
  const { times, extra_cost: extra } = one.expired;
  return [percent(one.cached), h("span", { class: "sub" }, badge("warn",
    pairOf(t("conversations.lost", { count: number(times) }), extra > 0 && `+${dollars(extra)}`)))];
}

function troubles(one) {
  const mended = one.repairs + one.dropped_calls;
  if (!one.failed && !mended) return "–";
  return h("span", { class: "row tight" }, one.failed ? badge("bad", number(one.failed)) : null,
    mended ? badge("warn", t("mend.repairs", { count: number(mended) })) : null);
}

function models(one) {
  const [first = "", ...others] = one.models;
  if (!first) return "–";
  return [h("span", { class: "names" }, breakable(cut(first))),
  others.length ? h("span", { class: "sub" },
    t("conversations.models", { count: number(others.length) })) : null];
}
