// A table of live requests, whose rows are changed in place: the open ones on top, then those that
// ended, the newest first.

import { badge, bar, breakable, h, replace, tableCell, tableFrame } from "../dom.js";
import { duration, number, time, visible } from "../format.js";
import {
  clientName, kindOf, listMends, modelOf, paidText, shorten, tokensOf,
} from "../requests.js";
import { joinList, t } from "../texts.js";

export const FULL_BAR_SECONDS = 30; // the duration that fills a bar
const MAX_ROWS = 200;
const FIRST_ROWS = 50; // at first: browsers paint so many rows in a few milliseconds
const MAX_RATE_AGE_MS = 1500; // of the last update of a row, from which on its rate counts as 0
const TONES = { ok: "good", failed: "bad", cancelled: "warn", open: "info" }; // by outcome

// The columns by name: the key of the title, the text of a row (a cell is changed when it differs),
// and options of `table`.
const COLUMNS = {
  kind: { title: "request.kind", lead: true,
    text: (row) => [kindOf(row), clientName(row.client), shorten(notesText(row))].join("\n") },
  state: { title: "request.state", text: (row) => t(`live.state.${stateOf(row)}`), aside: true },
  model: { title: "request.model",
    text: (row) => shorten(modelOf(row) || row.model_asked || "–") },
  duration: { title: "request.duration", text: (row) => duration(elapsed(row)), wide: true },
  first: { title: "live.first-byte", text: (row) => duration(row.first_byte), numeric: true },
  sent: { title: "live.sent", text: sentText, numeric: true },
  tokens: { title: "request.tokens", text: tokensOf, numeric: true },
  cost: { title: "request.cost", text: paidText, numeric: true },
  time: { title: "request.time", text: (row) => time(row.started), numeric: true },
};
const TICKING_COLUMNS = ["duration", "sent"]; // change with the time alone

// Return the seconds that a request has taken until now.
export const elapsed = (row) =>
  (row.outcome === "open" ? row.seconds + (performance.now() - row.at) / 1000 : row.seconds);

// Return the outcome of a request, of an open one waiting or streaming.
export function stateOf(row) {
  if (row.outcome !== "open") return row.outcome;
  return row.first_byte === null && !row.sent ? "waiting" : "streaming";
}

// Return how much of its bar a request was waiting, and was being answered, as shares of 1. The bar
// of a request that takes longer than FULL_BAR_SECONDS is full.
export function sharesOf(row) {
  const seconds = elapsed(row);
  const whole = Math.min(1, seconds / FULL_BAR_SECONDS);
  const waitShare = stateOf(row) === "waiting" || !seconds ? whole
    : whole * Math.min(1, (row.first_byte ?? 0) / seconds);
  return [waitShare, whole - waitShare];
}

export function bytesText(count) {
  if (count < 1000) return `${number(count)}\u00a0B`;
  return count < 1e6 ? `${number(count / 1e3, 1)}\u00a0kB` : `${number(count / 1e6, 1)}\u00a0MB`;
}

// The table; `onDetails` is called with the id of a request whose details the user opens.
export class LiveTable {
  constructor(onDetails) {
    this.maxRows = FIRST_ROWS;
    this.lines = new Map(); // by request id: {element, cells, button, shown}, texts in `shown`
    this.onDetails = onDetails;
    this.openBody = h("tbody", { role: "rowgroup" });
    this.endedBody = h("tbody", { role: "rowgroup" });
    this.columns = Object.entries(COLUMNS).map(([name, column]) =>
      ({ ...column, name, title: t(column.title) }));
    this.element = tableFrame(t("usage.figure.requests"), this.columns,
      [this.openBody, this.endedBody]);
  }

  get isFull() {
    return this.lines.size >= MAX_ROWS;
  }

  get size() {
    return this.lines.size;
  }

  // Allow as many rows as possible, from the next reset on.
  showMost() {
    this.maxRows = MAX_ROWS;
  }

  // Show these rows and no others; of too many, the newest, which come last.
  reset(all) {
    const open = all.filter((row) => row.outcome === "open").slice(-this.maxRows);
    const ended = all.filter((row) => row.outcome !== "open");
    const rows = [...ended.slice(Math.max(0, ended.length + open.length - this.maxRows)),
      ...open];
    const focused = this.element.contains(document.activeElement)
      ? document.activeElement.dataset.request : null;
    this.openBody.replaceChildren();
    this.endedBody.replaceChildren();
    this.lines.clear();
    this.change(rows);
    if (focused) this.focusOn(focused);
  }

  // Show rows that are new or have changed.
  change(rows) {
    for (const row of rows) {
      const line = this.lines.get(row.request_id) ?? this.add(row);
      if (!line) continue;
      const body = row.outcome === "open" ? this.openBody : this.endedBody;
      if (line.element.parentNode !== body) moveLine(line.element, body);
      fillLine(line, row);
    }
    this.trim();
  }

  add(row) {
    // A row that `trim` would remove at once is not created, or that would repeat at each change.
    if (row.outcome === "open" && this.openBody.rows.length >= this.maxRows) return null;
    const id = row.request_id;
    const on = { click: () => this.onDetails(id) };
    const button = h("button", { class: "link", "data-request": id, "data-key": id, on });
    const line = { element: h("tr", { role: "row" }), cells: {}, button, shown: {} };
    for (const column of this.columns) line.cells[column.name] = tableCell(column);
    line.element.append(...Object.values(line.cells));
    line.cells.kind.append(button, " ", h("span", { class: "small quiet" }),
      h("span", { class: "sub clamp" }));
    this.lines.set(id, line);
    return line;
  }

  trim() {
    const hasFocus = (element) => element?.contains(document.activeElement);
    while (this.lines.size > this.maxRows) {
      const { rows } = this.endedBody.rows.length ? this.endedBody : this.openBody;
      const last = rows[rows.length - 1];
      // A removed row would lose the focus.
      const removable = hasFocus(last) ? rows[rows.length - 2] : last;
      if (!removable) return;
      this.remove(removable.querySelector("button").dataset.request);
    }
  }

  remove(id) {
    const line = this.lines.get(id);
    if (line?.element.contains(document.activeElement)) this.element.focus();
    line?.element.remove();
    this.lines.delete(id);
  }

  // Update what changes with the time in open rows; `rows` are all requests by id.
  tick(rows) {
    for (const [id, line] of this.lines) {
      if (line.element.parentNode !== this.openBody) continue;
      for (const name of TICKING_COLUMNS) showColumn(line, name, rows.get(id));
    }
  }

  focusOn(id) {
    (this.lines.get(id)?.button ?? this.element).focus();
  }
}

// Move a row to the top of a body. A moved element loses the focus, so it gets it again.
function moveLine(element, body) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  body.prepend(element);
  focused?.focus({ preventScroll: true });
}

const fillLine = (line, row) => Object.keys(COLUMNS).forEach((name) => showColumn(line, name, row));

// Show a row in a column, if its text has changed.
function showColumn(line, name, row) {
  const text = COLUMNS[name].text(row);
  if (line.shown[name] === text) return;
  line.shown[name] = text;
  const cell = line.cells[name];
  if (name === "kind") showKind(line, row);
  else if (name === "state") replace(cell, badge(TONES[row.outcome] ?? "quiet", text));
  else if (name === "duration") showDuration(cell, text, row);
  else if (name === "model") replace(cell, breakable(text));
  else cell.textContent = visible(text);
  cell.classList.toggle("nil", text === "–");
}

// Show what was asked, by which client, and notes such as mends and errors.
function showKind({ button, cells: { kind } }, row) {
  replace(button, kindOf(row), h("span", { class: "hidden" },
    ` ${t("live.details", { id: row.request_id })}`));
  kind.children[1].textContent = visible(clientName(row.client));
  kind.lastElementChild.textContent = visible(shorten(notesText(row)));
}

// Show a duration, and a bar of how much of it was waiting. They are created once and then changed.
function showDuration(cell, text, row) {
  if (!cell.firstChild) {
    replace(cell, h("span", { class: "duration" }, h("span", {}),
      bar([["waiting", 0, 0], ["", 0, 0]])));
  }
  const [timeText, { children: [waiting, answer] }] = cell.firstChild.children;
  const [waitShare, answerShare] = sharesOf(row);
  timeText.textContent = text;
  waiting.style.setProperty("width", `${100 * waitShare}%`);
  answer.style.setProperty("left", `${100 * waitShare}%`);
  answer.style.setProperty("width", `${100 * answerShare}%`);
  waiting.className = row.outcome === "failed" ? "bad" : "waiting";
  answer.className = row.outcome === "failed" ? "bad" : "";
}

function sentText(row) {
  if (row.sent === null) return row.outcome === "open" ? t("live.uncounted") : "–";
  const size = bytesText(row.sent);
  if (row.outcome !== "open") return size;
  if (!row.sent) return "–";
  const rate = performance.now() - row.at > MAX_RATE_AGE_MS ? 0 : row.rate;
  return t("live.rate", { size, rate: bytesText(rate) });
}

const notesText = (row) => joinList([...listMends(row).map(({ text }) => text),
  row.error && (row.message || row.error)].filter(Boolean));
