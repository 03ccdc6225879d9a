// A table of requests whose rows are kept and changed in place: the open ones on top,
// then those that ended, the newest first.

import { badge, bar, breakable, cellOf, h, replace, tableFrame } from "../dom.js";
import { duration, number, time, visible } from "../format.js";
import { clientOf, cut, kindOf, mendsOf, modelOf, paid, tokensOf } from "../requests.js";
import { listed, t } from "../texts.js";

const MOST = 200; // rows, whatever is asked for
const FEW = 50; // a table of so many is painted in a few milliseconds
const STALE = 1500; // milliseconds after which what was told says nothing of the rate
export const WHOLE = 30; // seconds that a bar has room for
const TONES = { ok: "good", failed: "bad", cancelled: "warn", open: "info" };

// Columns: what they are called, the key of their title, what they show of a row, and how.
const COLUMNS = {
  kind: { title: "request.kind", lead: true,
    text: (row) => [kindOf(row), clientOf(row.client), cut(notes(row))].join("\n") },
  state: { title: "request.state", text: (row) => t(`live.state.${stateOf(row)}`), aside: true },
  model: { title: "request.model",
    text: (row) => cut(modelOf(row) || row.model_asked || "–") },
  duration: { title: "request.duration", text: (row) => duration(elapsed(row)), wide: true },
  first: { title: "live.first-byte", text: (row) => duration(row.first_byte), numeric: true },
  sent: { title: "live.sent", text: sent, numeric: true },
  tokens: { title: "request.tokens", text: tokensOf, numeric: true },
  cost: { title: "request.cost", numeric: true,
    text: paid },
  time: { title: "request.time", text: (row) => time(row.started), numeric: true },
};
const TICKING = ["duration", "sent"]; // what changes while nothing is told

export const elapsed = (row) =>
  (row.outcome === "open" ? row.seconds + (performance.now() - row.at) / 1000 : row.seconds);

export function stateOf(row) {
  if (row.outcome !== "open") return row.outcome;
  return row.first_byte === null && !row.sent ? "waiting" : "streaming";
}

// Return how much of its bar a request has waited, and been answered; the bar of a longer one than
// it has room for is full.
export function sharesOf(row) {
  const seconds = elapsed(row);
  const whole = Math.min(1, seconds / WHOLE);
  const waited = stateOf(row) === "waiting" || !seconds ? whole
    : whole * Math.min(1, (row.first_byte ?? 0) / seconds);
  return [waited, whole - waited];
}

function sent(row) {
  if (row.sent === null) return row.outcome === "open" ? t("live.uncounted") : "–";
  const size = bytes(row.sent);
  if (row.outcome !== "open") return size;
  if (!row.sent) return "–";
  const rate = performance.now() - row.at > STALE ? 0 : row.rate;
  return t("live.rate", { size, rate: bytes(rate) });
}

export function bytes(count) {
  if (count < 1000) return `${number(count)}\u00a0B`;
  return count < 1e6 ? `${number(count / 1e3, 1)}\u00a0kB` : `${number(count / 1e6, 1)}\u00a0MB`;
}

const notes = (row) => listed([...mendsOf(row).map(({ text }) => text),
  row.error && (row.message || row.error)].filter(Boolean));

export class LiveTable {
  // `onDetails` is called with the id of a request whose facts are asked for.
  constructor(onDetails) {
    this.most = FEW;
    this.lines = new Map(); // by id: the row's element, its cells and what they show
    this.onDetails = onDetails;
    this.open = h("tbody", { role: "rowgroup" });
    this.ended = h("tbody", { role: "rowgroup" });
    this.columns = Object.entries(COLUMNS).map(([name, column]) =>
      ({ ...column, name, title: t(column.title) }));
    this.element = tableFrame(t("usage.figure.requests"), this.columns, [this.open, this.ended]);
  }

  get isFull() {
    return this.lines.size >= MOST;
  }

  get size() {
    return this.lines.size;
  }

  // Show as many rows as there may be.
  showMost() {
    this.most = MOST;
  }

  // Show these rows and no others, or the newest of them; the later ones are newer.
  reset(all) {
    const opened = all.filter((row) => row.outcome === "open").slice(-this.most);
    const ended = all.filter((row) => row.outcome !== "open");
    const rows = [...ended.slice(Math.max(0, ended.length + opened.length - this.most)),
      ...opened];
    const focused = this.element.contains(document.activeElement)
      ? document.activeElement.dataset.request : null;
    this.open.replaceChildren();
    this.ended.replaceChildren();
    this.lines.clear();
    this.change(rows);
    if (focused) this.focusOn(focused);
  }

  // Show rows that are new or differ.
  change(rows) {
    for (const row of rows) {
      const line = this.lines.get(row.request_id) ?? this.add(row);
      if (!line) continue;
      const body = row.outcome === "open" ? this.open : this.ended;
      if (line.element.parentNode !== body) move(line.element, body);
      fill(line, row);
    }
    this.trim();
  }

  add(row) {
    // What has no room is not made only to be removed, at each of its changes.
    if (row.outcome === "open" && this.open.rows.length >= this.most) return null;
    const id = row.request_id;
    const on = { click: () => this.onDetails(id) };
    const button = h("button", { class: "link", "data-request": id, "data-key": id, on });
    const line = { element: h("tr", { role: "row" }), cells: {}, button, shown: {} };
    for (const column of this.columns) line.cells[column.name] = cellOf(column);
    line.element.append(...Object.values(line.cells));
    line.cells.kind.append(button, " ", h("span", { class: "small quiet" }),
      h("span", { class: "sub clamp" }));
    this.lines.set(id, line);
    return line;
  }

  trim() {
    const isUsed = (element) => element?.contains(document.activeElement);
    while (this.lines.size > this.most) {
      const { rows } = this.ended.rows.length ? this.ended : this.open;
      const last = rows[rows.length - 1];
      const next = isUsed(last) ? rows[rows.length - 2] : last; // its focus would be lost
      if (!next) return;
      this.remove(next.querySelector("button").dataset.request);
    }
  }

  remove(id) {
    const line = this.lines.get(id);
    if (line?.element.contains(document.activeElement)) this.element.focus();
    line?.element.remove();
    this.lines.delete(id);
  }

  // Show the time that has passed in rows that are open; `rows` are all of them.
  tick(rows) {
    for (const [id, line] of this.lines) {
      if (line.element.parentNode !== this.open) continue;
      for (const name of TICKING) show(line, name, rows.get(id));
    }
  }

  focusOn(id) {
    (this.lines.get(id)?.button ?? this.element).focus();
  }
}

// An element that is moved loses the focus.
function move(element, body) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  body.prepend(element);
  focused?.focus({ preventScroll: true });
}

const fill = (line, row) => Object.keys(COLUMNS).forEach((name) => show(line, name, row));

// Show a row's text in a column, if it is another than before.
function show(line, name, row) {
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

// What was asked, by whom, and what was remarkable.
function showKind({ button, cells: { kind } }, row) {
  replace(button, kindOf(row), h("span", { class: "hidden" },
    ` ${t("live.details", { id: row.request_id })}`));
  kind.children[1].textContent = visible(clientOf(row.client));
  kind.lastElementChild.textContent = visible(cut(notes(row)));
}

// A time, and a bar of how much of it was waiting; they are made once and changed in place.
function showDuration(cell, text, row) {
  if (!cell.firstChild) {
    replace(cell, h("span", { class: "duration" }, h("span", {}),
      bar([["waiting", 0, 0], ["", 0, 0]])));
  }
  const [words, { children: [waiting, answer] }] = cell.firstChild.children;
  const [waited, answered] = sharesOf(row);
  words.textContent = text;
  waiting.style.setProperty("width", `${100 * waited}%`);
  answer.style.setProperty("left", `${100 * waited}%`);
  answer.style.setProperty("width", `${100 * answered}%`);
  waiting.className = row.outcome === "failed" ? "bad" : "waiting";
  answer.className = row.outcome === "failed" ? "bad" : "";
}
