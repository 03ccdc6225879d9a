// Building the page: elements, tables, badges. Text is only ever set as text.

import { visible } from "./format.js";
import { t } from "./texts.js";

let saying = 0;

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

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

// Return a name that may be broken behind its parts, as `upstream:maker/model` has them.
export const breakable = (name) => visible(name).split(/(?<=[:/\\_])/u)
  .flatMap((part, place) => (place ? [h("wbr"), part] : [part]));

// Return a table. `columns` are {title, cell(row), numeric}; `rows` any values.
export function table(caption, columns, rows, { empty = t("none") } = {}) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const kind = (column) => (column.numeric ? "numeric" : null);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) =>
        h("th", { scope: "col", class: kind(column) }, column.title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((column) =>
        h("td", { class: kind(column) }, column.cell(row)))))),
    ),
  );
}

// Return a short word with a colour; `tone` is good, bad, warn or quiet.
export const badge = (tone, text) => h("span", { class: `badge ${tone}` }, text);

// Return a part of a panel with a heading.
export function section(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), children);
}

// Return a part whose heading has buttons or links beside it.
export function toolSection(title, tools, ...children) {
  return h("section", { class: "card" },
    h("div", { class: "head" }, h("h2", {}, title), h("div", { class: "row" }, tools)), children);
}

// Return pairs of a name and a value.
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

// Return an error as a user reads it: what happened, what to do, its code.
export function errorBox(error) {
  return h("div", { class: "error", role: "alert" },
    h("p", {}, error.message || String(error)),
    error.hint ? h("p", {}, error.hint) : null,
    error.code ? h("p", { class: "quiet" }, t("error.code", { code: error.code })) : null);
}

// Say something to the user, and to a screen reader; it is gone after a while.
export function announce(text) {
  const status = document.getElementById("status");
  replace(status, text);
  clearTimeout(saying);
  saying = setTimeout(() => replace(status), 8000);
}
