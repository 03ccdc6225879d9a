// A table of requests whose rows are kept and changed in place: the open ones on top,
// then those that ended, the newest first.

import { badge, breakable, h, replace } from "../dom.js";
import { dollars, duration, number, time, visible } from "../format.js";
import { cut, kindOf, modelOf, tokensOf } from "../requests.js";
import { t } from "../texts.js";

const MOST = 200; // rows, whatever is asked for
const FEW = 50; // a table of so many is painted in a few milliseconds
const LONGEST = 60; // characters of a name or of notes; the details have all
const STALE = 1500; // milliseconds after which what was told says nothing of the rate
const TONES = { ok: "good", failed: "bad", cancelled: "warn" };

// Columns: the key of their title, what they show of a row, and whether it is a number.
const COLUMNS = [
  ["request.time", (row) => time(row.started)],
  ["request.state", (row) => t(`live.state.${stateOf(row)}`)],
  ["request.kind", kindOf],
  ["request.model", (row) => cut(modelOf(row) || row.model_asked || "–", LONGEST)],
  ["request.duration", (row) => duration(elapsed(row)), true],
  ["live.first-byte", (row) => duration(row.first_byte), true],
  ["live.sent", sent, true],
  ["request.tokens", tokensOf, true],
  ["request.cost", (row) => (row.outcome === "open" ? "–" : dollars(row.cost)), true],
  ["live.notes", (row) => cut(notes(row), LONGEST)],
];
const BROKEN = ["request.model", "live.notes"]; // the columns whose texts take several lines
const TICKING = [4, 6]; // the columns that change while nothing is told

export const elapsed = (row) =>
  (row.outcome === "open" ? row.seconds + (performance.now() - row.at) / 1000 : row.seconds);

export function stateOf(row) {
  if (row.outcome !== "open") return row.outcome;
  return row.first_byte === null && !row.sent ? "waiting" : "streaming";
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
  if (count < 1000) return `${number(count)} B`;
  return count < 1e6 ? `${number(count / 1e3, 1)} kB` : `${number(count / 1e6, 1)} MB`;
}

function notes(row) {
  const found = [];
  if (row.error) found.push(row.error);
  if (row.attempts > 1) found.push(t("live.note.attempts", { count: row.attempts }));
  for (const name of ["repairs", "dropped_calls", "notices"]) {
    if (row[name]) found.push(t(`live.note.${name}`, { count: row[name] }));
  }
  if (row.loop) found.push(t("live.note.loop"));
  return found.join(", ");
}

export class LiveTable {
  // `onDetails` is called with the id of a request whose facts are asked for.
  constructor(onDetails) {
    this.most = FEW;
    this.lines = new Map(); // by id: the row's element, its cells and what they show
    this.onDetails = onDetails;
    this.open = h("tbody");
    this.ended = h("tbody");
    const heads = COLUMNS.map(([name, , numeric]) =>
      h("th", { scope: "col", class: numeric ? "numeric" : null }, t(name)));
    this.element = h("div", { class: "scroll", tabindex: "0", role: "region",
      "aria-label": t("live.table") },
    h("table", {},
      h("caption", { class: "hidden" }, t("live.table")),
      h("thead", {}, h("tr", {}, heads)),
      this.open, this.ended));
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
    const cells = COLUMNS.map(([, , numeric]) => h("td", { class: numeric ? "numeric" : null }));
    const id = row.request_id;
    const name = h("span");
    const on = { click: () => this.onDetails(id) };
    const button = h("button", { "data-request": id, "data-key": id, on },
      name, h("span", { class: "hidden" }, t("live.details", { id })));
    const at = COLUMNS.findIndex(([column]) => column === "request.kind");
    cells[at].append(button);
    const line = { element: h("tr", {}, cells), cells, button, shown: [] };
    line.cells[at] = name;
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
      for (const column of TICKING) show(line, column, COLUMNS[column][1](rows.get(id)));
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

function fill(line, row) {
  COLUMNS.forEach(([name, text], column) => {
    if (name === "request.state") showState(line, row, column, text(row));
    else if (BROKEN.includes(name)) showBroken(line, column, text(row));
    else show(line, column, text(row));
  });
}

function show(line, column, text) {
  if (line.shown[column] === text) return;
  line.shown[column] = text;
  line.cells[column].textContent = visible(text);
}

function showBroken(line, column, text) {
  if (line.shown[column] === text) return;
  line.shown[column] = text;
  replace(line.cells[column], breakable(text));
}

function showState(line, row, column, text) {
  if (line.shown[column] === text) return;
  line.shown[column] = text;
  line.cells[column].replaceChildren(badge(TONES[row.outcome] ?? "quiet", text));
}
