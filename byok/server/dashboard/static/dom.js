// Building the page: elements, tables, badges. Text is only ever set as text.

import { agoText, clock, visible } from "./format.js";
import { icon, svg } from "./icons.js";
import { t } from "./texts.js";

let saying = 0;
const FORM = "dialog-form";
const WIDE_MARK = /[，。：；！？）]$/u; // it has its own room, so no space follows

// Return an element. `attributes` may hold `class`, `on` (listeners by event), and
// attributes; null and false leave one out. Children are elements, texts or null.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) {
        element.addEventListener(event, listener);
      }
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    if (child === " " && WIDE_MARK.test(element.textContent)) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

// Return a name that may be broken behind its parts, as `upstream:maker/model` and addresses have
// them.
export const breakable = (name) => visible(name).split(/(?<=[:/\\_])(?<!\/\/)(?![:/\\])/u)
  .flatMap((part, place) => (place ? [h("wbr"), part] : [part]));

// Return a table whose rows are cards on a narrow screen. `columns` are {title, cell(row)} and
// may be `numeric`, `lead` (what the row is), `aside` (stands beside it), `wide`, or sorted by
// a name in `sort`: then `sorted` is {by, down}, and `onSort(name)` is called.
export function table(caption, columns, rows,
  { empty = t("none"), sorted = null, onSort = null } = {}) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return tableFrame(caption, columns, h("tbody", { role: "rowgroup" },
    rows.map((row) => h("tr", { role: "row" },
      columns.map((column) => cellOf(column, column.cell(row)))))), sorted, onSort);
}

// Return a table without its rows, which `bodies` have.
export const tableFrame = (caption, columns, bodies, sorted = null, onSort = null) =>
  h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "cards", role: "table" }, h("caption", { class: "hidden" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map((column) =>
        h("th", { role: "columnheader", scope: "col", class: column.numeric ? "numeric" : null,
          "aria-sort": orderOf(column, sorted) }, headOf(column, sorted, onSort))))), bodies));

export function cellOf(column, content) {
  const kinds = ["numeric", "lead", "aside", "wide"].filter((kind) => column[kind]);
  if (content === "–" || content === null) kinds.push("nil"); // no line of a card
  return h("td", { role: "cell", class: kinds.join(" ") || null, "data-label": column.title },
    content);
}

function orderOf(column, sorted) {
  if (!column.sort || sorted?.by !== column.sort) return null;
  return sorted.down ? "descending" : "ascending";
}

function headOf(column, sorted, onSort) {
  if (!column.sort || !onSort) return column.title;
  const order = orderOf(column, sorted);
  return h("button", { type: "button", "data-key": `sort ${column.sort}`,
    on: { click: () => onSort(column.sort) } }, column.title,
  order && icon(order === "descending" ? "down" : "up"));
}

// Return a short word with a colour and a shape; `tone` is good, bad, warn, quiet, or info for
// what goes on just now.
export const badge = (tone, text) => h("span", { class: `badge ${tone}` }, text);

// Return a mark with that colour and shape.
export const dot = (tone) => h("span", { class: tone }, h("span", { class: `dot ${tone}`,
  "aria-hidden": "true" }));

// Return a button; `kind` is primary, danger, bare, little, or several of them. It does one thing at
// a time, and stays where the focus is meanwhile.
export function button(text, kind, run, attributes = {}) {
  const element = h("button", { type: "button", class: kind || null, ...attributes, on: {
    async click(event) {
      if (element.ariaDisabled) return;
      const done = run?.(event);
      if (!(done instanceof Promise)) return;
      element.ariaDisabled = "true";
      await done.finally(() => { element.ariaDisabled = null; });
    } } }, text);
  return element;
}

// Return a button that asks `sure` before it acts.
export function askingButton(text, sure, act) {
  const box = h("div", { class: "row" });
  const offer = () => {
    const hadFocus = box.contains(document.activeElement);
    replace(box, asking);
    if (hadFocus) asking.focus();
  };
  const asking = button(`${text}…`, "little", () => {
    const yes = button(text, "little danger", async () => { await act(); offer(); });
    replace(box, h("span", {}, sure), yes, button(t("cancel"), "little", offer));
    yes.focus();
  });
  offer();
  return box;
}

// Copy a text and say so; where the browser lets no page do that, show it selected.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = lineField({ id: "to-copy", value: text, readonly: true, class: "mono" });
    openDialog(t("copy"), [h("label", { for: field.id }, t("copy.refused")), field]);
    field.focus();
    return field.select();
  }
  announce(t("copied"));
}

// Return a button that copies a text; `what` names it.
export const copyButton = (text, what = text) =>
  button(icon("copy"), "bare little icon-only", () => copyText(text),
    { title: t("copy"), "aria-label": t("pair", { name: t("copy"), value: visible(what) }) });

// Return a command for a terminal, or lines for a file, with a button that copies them; `what` names
// them.
export const command = (text, what = text) =>
  h("div", { class: "command" }, h("code", {}, text), copyButton(text, what));

// Return how long ago a moment was, in seconds since 1970, which goes on while it is shown;
// the whole date stands behind it.
export const ago = (seconds) => h("time", { class: "ago nowrap", title: clock(seconds,
  { year: "numeric", month: "short", day: "numeric", second: "2-digit" }),
datetime: new Date(seconds * 1000).toISOString() }, agoText(seconds));

setInterval(() => {
  for (const one of document.hidden ? [] : document.querySelectorAll("time.ago")) {
    one.textContent = agoText(Date.parse(one.dateTime) / 1000);
  }
}, 30000);

// Return buttons of which one is pressed; `options` are [value, title], and `choose(value)` is
// called.
export function segments(label, options, chosen, choose) {
  const press = (value) => ({ currentTarget }) => {
    for (const one of element.children) {
      one.setAttribute("aria-pressed", String(one === currentTarget));
    }
    choose(value);
  };
  const element = h("div", { class: "segments", role: "group", "aria-label": label },
    options.map(([value, title]) => button(title, "", press(value),
      { "aria-pressed": String(value === chosen) })));
  return element;
}

// Return a menu of `options`, [value, title], of which one is chosen; `choose(value)` is called.
export const menu = (label, options, choose = () => {}, chosen = "") => h("select", {
  "aria-label": label, on: { change: ({ target }) => choose(target.value) } },
optionsOf(options, chosen));

export const optionsOf = (options, chosen) => options.map(([value, title]) =>
  h("option", { value: String(value), selected: String(value) === String(chosen) }, title));

// Return what sorts the rows of a table that are cards, which have no heads: a menu of `options`,
// [name, title], and a button that turns the order round. `onSort(name)` is called, as by a table;
// `show({by, down})` says how they are sorted.
export function cardOrder(options, onSort) {
  const names = menu(t("order"), options, onSort);
  const turn = button("", "icon-only", () => onSort(names.value),
    { title: t("order.turn"), "aria-label": t("order.turn") });
  return { element: h("span", { class: "row tight only-cards" }, names, turn),
    show({ by, down }) {
      names.value = by;
      turn.disabled = !by;
      replace(turn, icon(down ? "down" : "up"));
    } };
}

// Return a field for a line, of which the browser keeps and corrects nothing.
export const lineField = (attributes) =>
  h("input", { autocomplete: "off", spellcheck: "false", ...attributes });

// Return a field in which words are looked for: `run(words)` is called while they are entered.
export const seekField = (label, run, attributes = {}) => lineField({ type: "search",
  "aria-label": label, placeholder: label, maxlength: "200",
  on: { input: ({ target }) => run(target.value) }, ...attributes });

// Return the frame of such a field.
export const seeking = (field, role = null) =>
  h("div", { class: "seeking", role }, icon("search"), field);

// Return a form whose fields go to `run()`, and nowhere else.
export function entryForm(attributes, run, ...children) {
  const submit = (event) => {
    event.preventDefault();
    run();
  };
  return h("form", { ...attributes, on: { submit } }, children);
}

// Return parts of a line, with dots between those that are there.
export const dots = (...parts) => parts.filter((part) => part)
  .flatMap((part, place) => [place ? "\u00a0· " : null, h("span", { class: "facet" }, part)]);

// Return a bar of `parts`: [kind, where it begins, how long it is], both as shares of 1.
export function bar(parts, attributes = { "aria-hidden": "true" }) {
  const element = h("span", { class: "bar", ...attributes });
  for (const [kind, begin, length] of parts) {
    const part = h("i", { class: kind || null });
    part.style.setProperty("left", `${100 * begin}%`);
    part.style.setProperty("width", `${100 * length}%`);
    element.append(part);
  }
  return element;
}

// Return a value with a bar before it: its `part` of the largest one, if it is known.
export const measured = (part, ...value) => h("span", { class: "measured" },
  part ? bar([["", 0, part]]) : null, h("span", {}, value));

// Return small bars of a day's hours or of turns, and `what` they are, if one has any height; `tone`
// is "", warn or bad.
export function spark(values, tone, what) {
  if (!values.some(Boolean)) return null;
  const most = Math.max(...values, 1e-9);
  const width = 100 / values.length;
  const gap = Math.min(0.8, width / 4);
  return [svg("svg", { class: `spark ${tone}`, viewBox: "0 0 100 34", "aria-hidden": "true",
    preserveAspectRatio: "none" }, ...values.map((value, place) => {
    const height = value ? Math.max(2, 32 * value / most) : 1;
    return svg("rect", { x: place * width + gap / 2, y: 34 - height, width: width - gap, height,
      class: value ? "" : "nil" });
  })), h("span", { class: "small quiet" }, what)];
}

// Return a figure with its name, a note and a picture; one with an address leads there.
export const tile = (address, label, figure, unit, note, picture) =>
  h(address ? "a" : "div", { class: "card tile", href: address },
    h("span", { class: "label" }, label),
    h("span", { class: "figure" }, figure, unit ? h("small", {}, " ", unit) : null),
    h("span", { class: "note" }, note), picture);

const MARKS = { good: "check", warn: "clock", bad: "cross" };

// Return a card that says how something is: in one sentence, with a colour and a picture, and
// what follows. `tone` is good, warn, bad, calm or spent.
export const healthCard = (label, { tone, picture = MARKS[tone], say, next = null, act = null }) =>
  h("section", { class: `card health ${tone}`, "aria-label": label },
    h("span", { class: "mark" }, icon(picture)),
    h("div", { class: "grow" }, h("p", { class: "say" }, say), h("p", { class: "quiet" }, next)),
    act ? h("div", { class: "row" }, act) : null);

// Say what will appear in a place that is empty, and what makes it appear.
export const nothing = (picture, title, text, ...actions) => h("div", { class: "nothing" },
  icon(picture), h("strong", {}, title), h("p", {}, text), actions);

// Show a dialog and return it; `footer(close)` returns its buttons.
export function openDialog(title, body, footer = null) {
  const close = () => element.close();
  const element = h("dialog", { "aria-label": title },
    h("header", {}, h("h2", {}, title),
      button(icon("cross"), "bare icon-only", close, { "aria-label": t("close") })),
    h("div", { class: "body" }, body), footer && h("footer", {}, footer(close)));
  whileOpen(element);
  document.body.append(element);
  element.showModal();
  return element;
}

// Show a dialog with a form, until its button has done `run()`, or `signal` is aborted; return whether
// it was done. Why that failed is shown, and the user may try again.
export async function openForm(title, sure, fields, run, signal) {
  const trouble = h("div");
  let isDone = false;
  const submit = async () => {
    sure.disabled = true;
    await attempt(trouble, signal, async () => {
      await run();
      isDone = true;
      dialog.close();
    });
    sure.disabled = false;
  };
  const form = entryForm({ id: FORM }, submit, fields, trouble);
  const dialog = openDialog(title, form, (close) => [button(t("cancel"), "", close), sure]);
  form.elements[0].focus();
  const closed = new Promise((done) => dialog.addEventListener("close", done));
  signal.addEventListener("abort", () => dialog.close());
  await closed;
  return isDone;
}

// Return the button of such a form.
export const formButton = (text) => h("button", { class: "primary", form: FORM }, text);

// Close a dialog when its user goes elsewhere, as by Back, and remove it; return a signal that is
// aborted then.
export function whileOpen(dialog) {
  const left = new AbortController();
  dialog.addEventListener("close", () => { left.abort(); dialog.remove(); });
  addEventListener("hashchange", () => dialog.close(), { capture: true, signal: left.signal });
  return left.signal;
}

// Show another title than the panel's name, and what stands below it.
export function showTitle(title, ...below) {
  const heading = document.querySelector("#main h1");
  replace(heading, title);
  document.title = `${heading.textContent} · byok`;
  replace(heading.nextElementSibling, below);
}

// Put buttons, counts and links beside the panel's title.
export const showTools = (...tools) => replace(document.getElementById("tools"), tools);

// Return a part of a panel with a heading.
export function section(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), children);
}

// Return a part whose heading has buttons or links beside it.
export function toolSection(title, tools, ...children) {
  return h("section", { class: "card" },
    h("div", { class: "head" }, h("h2", {}, title), h("div", { class: "row" }, tools)), children);
}

// Return a part whose content, such as a table or a list, reaches its edges.
export function flushSection(title, tools, ...children) {
  const element = toolSection(title, tools, children);
  element.classList.add("flush");
  return element;
}

// Return pairs of a name and a value.
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

// Return a text whose parts in backticks are code.
export const withCode = (text, codeOf = (part) => h("code", {}, part)) => text.split("`")
  .map((part, place) => (place % 2 ? codeOf(part) : part));

// Return an error as a user reads it: what happened, what to do, its code.
export function errorBox(error) {
  return h("div", { class: "error", role: "alert" },
    h("p", {}, withCode(error.message || String(error))),
    error.hint ? h("p", {}, withCode(error.hint)) : null,
    error.code ? h("p", { class: "quiet" }, t("error.code", { code: error.code })) : null);
}

// Do something; why it failed is shown in `place`, unless the user has left the panel.
export async function attempt(place, signal, work) {
  try {
    await work();
  } catch (error) {
    if (!signal.aborted) replace(place, errorBox(error));
  }
}

// Say something to the user, and to a screen reader; it is gone after a while.
export function announce(text) {
  const status = document.getElementById("status");
  replace(status, text);
  clearTimeout(saying);
  saying = setTimeout(() => replace(status), 8000);
}
