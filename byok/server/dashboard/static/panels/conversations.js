// The list of conversations, filtered by words, client and cost. `#/conversations/ID` shows one of
// them, `#/conversations/ID/NUMBER` leads to a turn of it. The filters and the order are in the
// address, as in `#/conversations?client=vscode&sort=cost`, but not the words of a search.

import { call, onSessionEnd } from "../api.js";
import {
  ago, badge, breakable, button, cardSorter, emptyState, h, joinWithDots, menu, optionsOf, replace,
  searchBox, searchField, showTools, table,
} from "../dom.js";
import { dollars, number, percent } from "../format.js";
import { onRequests } from "../live.js";
import { setAddress } from "../places.js";
import { createPoller, createRefresher, renderAgain } from "../refresh.js";
import {
  clientName, conversationLink, costCell, costText, missingText, nameDetails, shorten, tokensOf,
} from "../requests.js";
import { pairOf, t } from "../texts.js";
import { openTimeline } from "../timeline.js";

const PAGE_SIZE = 50; // rows
const TYPING_PAUSE_MS = 250; // after the last key, before a search
const MAX_RELOADED = 500; // rows that are loaded again when the user comes back
const LEAST_COSTS = [0.1, 0.5, 1, 5]; // US dollars
const SORTS = { last: "conversations.sort.last", start: "request.time", cost: "request.cost",
  turns: "conversations.sort.turns", tokens: "request.tokens", errors: "problems.title",
  folder: "search.folder" };
const createQuery = () => ({ sort: "last", descending: true, find: "", client: "", least_cost: 0,
  errors: false });
let query = createQuery(); // stays while the page is open, unless an address has another one
let shownCount = 0; // rows that were shown last, so that Back finds the row that was left
onSessionEnd(() => { query = createQuery(); });

export async function open(root, parts, signal) {
  if (parts[0]) return openTimeline(root, parts, signal);
  readAddress();
  writeAddress();
  const panel = new ConversationsPanel(signal);
  const soughtCount = Math.min(shownCount, MAX_RELOADED);
  replace(root, panel.filters, panel.errorSlot, panel.list, panel.moreButton);
  await panel.reload(false);
  for (let rows = 0; rows < panel.rows.length && panel.rows.length < soughtCount;) {
    rows = panel.rows.length;
    await panel.runInOrder(() => panel.loadMore());
  }
}

function readAddress() {
  const [, queryText] = location.hash.split("?");
  if (!queryText) return;
  const parameters = new URLSearchParams(queryText);
  const valueOf = (name, values, fallback) =>
    values.find((value) => String(value) === parameters.get(name)) ?? fallback;
  const fallback = sortedBy(valueOf("sort", Object.keys(SORTS), "last"));
  query = { ...fallback, find: query.find, client: parameters.get("client") ?? "",
    least_cost: valueOf("least_cost", LEAST_COSTS, 0), errors: parameters.get("errors") === "true",
    descending: valueOf("descending", [true, false], fallback.descending) };
}

function writeAddress() {
  const defaults = { ...createQuery(), ...sortedBy(query.sort), sort: "last", find: query.find };
  const entries = Object.entries(query).filter(([name, value]) => value !== defaults[name]);
  setAddress(`#/conversations${entries.length ? `?${new URLSearchParams(entries)}` : ""}`);
}

class ConversationsPanel {
  constructor(signal) {
    this.signal = signal;
    this.rows = [];
    this.page = null; // the page that was loaded last
    this.shownQuery = ""; // the query of `rows`, as JSON
    this.runningIds = new Set();
    this.searchTimer = 0;
    this.pollSoon = createPoller(signal);
    Object.assign(this, createRefresher((options) => this.load(options), signal));
    this.count = h("span", { class: "quiet small", role: "status" });
    this.list = h("div", { class: "card flush" });
    this.moreButton = button(t("conversations.older"), "", () =>
      this.runInOrder(() => this.showMore()), { hidden: true });
    this.buildFilters();
    showTools(this.count, this.refreshButton);
    onRequests(({ rows }) => this.showRunning([...rows.values()]), signal);
    signal.addEventListener("abort", () => clearTimeout(this.searchTimer));
  }

  buildFilters() {
    const change = (values) => this.change(values);
    this.search = searchField(t("conversations.find"), (words) => {
      clearTimeout(this.searchTimer);
      this.searchTimer = setTimeout(change, TYPING_PAUSE_MS, { find: words.trim() });
    }, { value: query.find });
    this.client = menu(t("request.client"), [], (client) => change({ client }));
    this.amount = menu(t("request.cost"), [["0", t("conversations.any-cost")],
      ...LEAST_COSTS.map((amount) => [String(amount),
        t("conversations.at-least", { cost: dollars(amount) })])],
    (amount) => change({ least_cost: Number(amount) }));
    this.sorter = cardSorter(Object.entries(SORTS).map(([name, key]) => [name, t(key)]),
      (name) => this.sort(name));
    this.errorsBox = h("input", { type: "checkbox",
      on: { change: () => change({ errors: this.errorsBox.checked }) } });
    this.filters = h("div", { class: "row filters" },
      searchBox(this.search), this.client, this.amount, this.sorter.element,
      h("label", { class: "row tight" }, this.errorsBox, t("conversations.with-errors")));
  }

  get sorted() {
    return { by: query.sort, down: query.descending };
  }

  change(values) {
    shownCount = 0;
    Object.assign(query, values);
    writeAddress();
    this.reload(false);
  }

  showFilters() {
    const names = this.page.clients.map(({ client }) => client);
    if (query.client && !names.includes(query.client)) names.push(query.client);
    const options = [["", t("conversations.any-client")],
      ...names.map((name) => [name, clientName(name)])];
    if (this.client.length !== options.length) replace(this.client, optionsOf(options));
    this.client.value = query.client;
    this.amount.value = String(query.least_cost);
    this.sorter.show(this.sorted);
    this.errorsBox.checked = query.errors;
  }

  showRunning(rows) {
    const running = new Set(rows.filter(({ outcome }) => outcome === "open")
      .map(({ conversation }) => conversation));
    const isUnchanged = running.size === this.runningIds.size
      && [...running].every((id) => this.runningIds.has(id));
    this.runningIds = running;
    if (!isUnchanged && this.rows.length) this.show();
  }

  // Load the first page. Further rows stay below it, unless they are of another query.
  async load(options) {
    const queryKey = JSON.stringify(query);
    this.list.setAttribute("aria-busy", "true");
    const page = await call("conversations", { ...query, count: PAGE_SIZE }, options)
      .finally(() => this.list.removeAttribute("aria-busy"));
    const pageIds = new Set(page.conversations.map(({ conversation }) => conversation));
    const others = queryKey === this.shownQuery && page.more
      ? this.rows.filter(({ conversation }) => !pageIds.has(conversation)) : [];
    this.showPage(page, queryKey, [...page.conversations, ...others]);
    this.pollSoon(!page.total && (() => this.reload(true))); // the daemon is still counting
  }

  async loadMore() {
    const shownIds = new Set(this.rows.map(({ conversation }) => conversation));
    const page = await call("conversations",
      { ...query, count: PAGE_SIZE, offset: this.rows.length }, { signal: this.signal });
    const added = page.conversations.filter(({ conversation }) => !shownIds.has(conversation));
    this.showPage(page, this.shownQuery, [...this.rows, ...added]);
    return added[0]?.conversation;
  }

  // Load a further page, and lead the user to its first row.
  async showMore() {
    const first = await this.loadMore();
    [...this.list.querySelectorAll("td.lead a")].find((link) => link.dataset.key === first)
      ?.focus();
  }

  showPage(page, queryKey, rows) {
    Object.assign(this, { page, shownQuery: queryKey, rows });
    shownCount = Math.max(shownCount, rows.length);
    this.showFilters();
    this.show();
  }

  show() {
    const { page, rows } = this;
    const { total, known } = page;
    replace(this.count, !total ? t("conversations.counting") : known === 0 ? null
      : joinWithDots(total.conversations === known ? t("conversations.count", { count: number(known) })
        : t("conversations.found", { count: number(total.conversations), known: number(known) }),
      t("conversations.kept", { count: number(page.keep_days) }),
      !total.requests ? null : total.conversations < known ? costText(total)
        : t("conversations.cost", { cost: costText(total) })));
    renderAgain(this.list, rows.length
      ? table(t("conversations.title"), this.columns(), rows,
        { sorted: this.sorted, onSort: (name) => this.sort(name) })
      : this.emptyContent());
    this.moreButton.hidden = !(total ? rows.length < total.conversations : page.more);
  }

  sort(name) {
    this.change(query.sort === name ? { descending: !query.descending } : sortedBy(name));
  }

  emptyContent() {
    if (this.page.known) {
      return emptyState("search", t("conversations.none-fits"), t("conversations.none-fits.why"),
        button(t("conversations.show-all"), "", () => this.showAll()));
    }
    return emptyState("conversations", t("conversations.empty"),
      t(this.page.keep_days === 0 ? "journal.off" : "conversations.empty.why"),
      h("a", { class: "button", href: "#/overview" }, t("overview.title")));
  }

  showAll() {
    this.search.value = "";
    this.search.focus();
    this.change(createQuery());
  }

  columns() {
    const largestCost = Math.max(...this.rows.map(({ cost }) => cost), 1e-9);
    return [
      { title: t("conversations.id"), sort: "folder", lead: true, cell: (row) =>
        [conversationLink(row), h("span", { class: "sub" }, joinWithDots(...nameDetails(row)))] },
      { title: t("request.model"), cell: modelsCell },
      { title: t("conversations.sort.turns"), sort: "turns", numeric: true,
        cell: (row) => number(row.requests) },
      { title: t("request.tokens"), sort: "tokens", numeric: true, cell: tokensOf },
      { title: t("conversations.cached"), numeric: true, cell: cacheCell },
      { title: t("request.cost"), sort: "cost", numeric: true, aside: true,
        cell: (row) => costCell(row, largestCost) },
      { title: t("problems.title"), sort: "errors", numeric: true, cell: errorsCell },
      { title: t("conversations.sort.last"), sort: "last", numeric: true, cell: (row) =>
        (this.runningIds.has(row.conversation) ? badge("info", t("conversations.running"))
          : ago(row.last)) },
    ];
  }
}

// Return the usual order for a column: the largest, latest or most first, but names from A to Z.
const sortedBy = (name) => ({ sort: name, descending: name !== "folder" });

function cacheCell(row) {
  if (!row.expired) return row.cached === null ? missingText(row) : percent(row.cached);
  const { times, extra_cost: extra } = row.expired;
  return [percent(row.cached), h("span", { class: "sub" }, badge("warn",
    pairOf(t("conversations.lost", { count: number(times) }), extra > 0 && `+${dollars(extra)}`)))];
}

function errorsCell(row) {
  const mended = row.repairs + row.dropped_calls;
  if (!row.failed && !mended) return "–";
  return h("span", { class: "row tight" }, row.failed ? badge("bad", number(row.failed)) : null,
    mended ? badge("warn", t("mend.repairs", { count: number(mended) })) : null);
}

function modelsCell(row) {
  const [first = "", ...others] = row.models;
  if (!first) return "–";
  return [h("span", { class: "names" }, breakable(shorten(first))),
  others.length ? h("span", { class: "sub" },
    t("conversations.models", { count: number(others.length) })) : null];
}
