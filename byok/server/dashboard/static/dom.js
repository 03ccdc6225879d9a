// Building blocks of the page: elements, tables, badges, fields, dialogs. Text is only ever set as
// text, never parsed as HTML.

import { agoText, clock, visible } from "./format.js";
import { icon, svg } from "./icons.js";
import { t } from "./texts.js";

export const FORM_ID = "dialog-form"; // of the form in a dialog, for what is in the footer
// Such a character has its space within its own width, so no other space follows.
const FULL_WIDTH_PUNCTUATION = /[，。：；！？）]$/u;
const ROW_LINK = ".lead :is(a, button), a.clamp"; // of a row: by its name, or its conversation
const TONE_ICONS = { good: "check", warn: "problems", bad: "cross" };
let statusTimer = 0; // removes an announcement

// Return an element. `attributes` are HTML attributes, and `on` with listeners by event; one whose
// value is null or false is left out. Children are elements, texts, null, or lists of these.
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

// Append children to an element, texts with their invisible characters made visible.
function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    if (child === " " && FULL_WIDTH_PUNCTUATION.test(element.textContent)) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
}

// Replace what is in an element by `children`.
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

// Return a name, such as `upstream:maker/model` or an address, in which the line may break after
// each part.
export const breakable = (name) => visible(name).split(/(?<=[:/\\_])(?<!\/\/)(?![:/\\])/u)
  .flatMap((part, index) => (index ? [h("wbr"), part] : [part]));

// Return a table whose rows are cards on a narrow screen. A column is {title, cell(row)} and may
// have `numeric`, `lead` (the name of the row), `aside` (beside that name on a card), `wide` (a
// line of its own on a card), and `sort`, the name of an order. Then `sorted` is the order of now,
// {by, down}, and `onSort(name)` is called when the user chooses another one.
export function table(caption, columns, rows,
  { empty = t("none"), sorted = null, onSort = null } = {}) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return tableFrame(caption, columns, h("tbody", { role: "rowgroup" },
    rows.map((row) => h("tr", { role: "row" },
      columns.map((column) => tableCell(column, column.cell(row)))))), sorted, onSort);
}

// A click anywhere in a row opens what the link of the row opens; the keyboard has that link.
function openRow({ target }) {
  const isElsewhere = target.closest("a, button, thead") || getSelection().toString();
  if (!isElsewhere) target.closest("tr")?.querySelector(ROW_LINK)?.click();
}

// Return the table around `bodies`, the tbody elements with its rows.
export const tableFrame = (caption, columns, bodies, sorted = null, onSort = null) =>
  h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "cards", role: "table", on: { click: openRow } },
      h("caption", { class: "hidden" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map((column) =>
        h("th", { role: "columnheader", scope: "col", class: column.numeric ? "numeric" : null,
          "aria-sort": orderOf(column, sorted) }, headingOf(column, sorted, onSort))))), bodies));

export function tableCell(column, content) {
  const classes = ["numeric", "lead", "aside", "wide"].filter((kind) => column[kind]);
  if (content === "–" || content === null) classes.push("nil"); // a card leaves it out
  return h("td", { role: "cell", class: classes.join(" ") || null, "data-label": column.title },
    content);
}

function orderOf(column, sorted) {
  if (!column.sort || sorted?.by !== column.sort) return null;
  return sorted.down ? "descending" : "ascending";
}

function headingOf(column, sorted, onSort) {
  if (!column.sort || !onSort) return column.title;
  const order = orderOf(column, sorted);
  return h("button", { type: "button", "data-key": `sort ${column.sort}`,
    on: { click: () => onSort(column.sort) } }, column.title,
  order && icon(order === "descending" ? "down" : "up"));
}

// Return a short word with a colour and a shape; `tone` is good, bad, warn, quiet, or info (in
// progress).
export const badge = (tone, text) => h("span", { class: `badge ${tone}` }, text);

// Return a mark with the colour and shape of a tone.
export const dot = (tone) => h("span", { class: tone }, h("span", { class: `dot ${tone}`,
  "aria-hidden": "true" }));

// Return a button; `classes` are primary, danger, bare, little, icon-only, or several of them. While
// the promise of `action` is pending, further clicks do nothing, and the button keeps the focus.
export function button(text, classes, action, attributes = {}) {
  const element = h("button", { type: "button", class: classes || null, ...attributes, on: {
    async click(event) {
      if (element.ariaDisabled) return;
      const result = action?.(event);
      if (!(result instanceof Promise)) return;
      element.ariaDisabled = "true";
      await result.finally(() => { element.ariaDisabled = null; });
    } } }, text);
  return element;
}

// Return a button that asks `question` before it runs `action`.
export function confirmButton(text, question, action) {
  const box = h("div", { class: "row" });
  const showOffer = () => {
    const hadFocus = box.contains(document.activeElement);
    replace(box, offerButton);
    if (hadFocus) offerButton.focus();
  };
  const offerButton = button(`${text}…`, "little", () => {
    const confirm = button(text, "little danger", async () => { await action(); showOffer(); });
    replace(box, h("span", {}, question), confirm, button(t("cancel"), "little", showOffer));
    confirm.focus();
  });
  showOffer();
  return box;
}

// Copy a text and announce it. Where the browser does not allow that, show the text selected.
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

// Return a button that copies a text; `name` is the text's name for screen readers.
export const copyButton = (text, name = text) =>
  button(icon("copy"), "bare little icon-only", () => copyText(text),
    { title: t("copy"), "aria-label": t("pair", { name: t("copy"), value: visible(name) }) });

// Return a command as it reaches this byok from the user's shell, any other text as it is.
const pasteable = (text) =>
  text.replace(/^byok(?= )/u, () => document.documentElement.dataset.program);

// Return a command for a terminal, or lines for a file, with a button that copies them.
export const commandBox = (text, name = text) =>
  h("div", { class: "command" }, h("code", {}, pasteable(text)), copyButton(pasteable(text), name));

// Return how long ago a time in seconds since 1970 was, with the full date as its title. The text
// is kept up to date while it is shown.
export const ago = (seconds) => h("time", { class: "ago nowrap", title: clock(seconds,
  { year: "numeric", month: "short", day: "numeric", second: "2-digit" }),
datetime: new Date(seconds * 1000).toISOString() }, agoText(seconds));

setInterval(() => {
  for (const element of document.hidden ? [] : document.querySelectorAll("time.ago")) {
    element.textContent = agoText(Date.parse(element.dateTime) / 1000);
  }
}, 30000);

// Return a segmented control: buttons of which one is pressed. `options` are [value, title], and
// `onChoose(value)` is called.
export function segments(label, options, chosen, onChoose) {
  const createPress = (value) => ({ currentTarget }) => {
    for (const segment of element.children) {
      segment.setAttribute("aria-pressed", String(segment === currentTarget));
    }
    onChoose(value);
  };
  const element = h("div", { class: "segments", role: "group", "aria-label": label },
    options.map(([value, title]) => button(title, "", createPress(value),
      { "aria-pressed": String(value === chosen) })));
  return element;
}

// Return a drop-down menu of `options`, [value, title]; `onChoose(value)` is called.
export const menu = (label, options, onChoose = () => {}, chosen = "") => h("select", {
  "aria-label": label, on: { change: ({ target }) => onChoose(target.value) } },
optionsOf(options, chosen));

export const optionsOf = (options, chosen) => options.map(([value, title]) =>
  h("option", { value: String(value), selected: String(value) === String(chosen) }, title));

// Return what sorts a table whose rows are cards, and so has no column heads to click: {element,
// show}. `options` are the orders, [name, title]; `onSort(name)` is called as by a table, with the
// name of now to reverse it. `show({by, down})` shows the order of now.
export function cardSorter(options, onSort) {
  const sortMenu = menu(t("order"), options, onSort);
  const reverse = button("", "icon-only", () => onSort(sortMenu.value),
    { title: t("order.turn"), "aria-label": t("order.turn") });
  return { element: h("span", { class: "row tight only-cards" }, sortMenu, reverse),
    show({ by, down }) {
      sortMenu.value = by;
      reverse.disabled = !by;
      replace(reverse, icon(down ? "down" : "up"));
    } };
}

// Return a one-line field whose text the browser neither remembers nor corrects.
export const lineField = (attributes) =>
  h("input", { autocomplete: "off", spellcheck: "false", ...attributes });

// Return a search field; `onInput(words)` is called at each change of its text.
export const searchField = (label, onInput, attributes = {}) => lineField({ type: "search",
  "aria-label": label, placeholder: label, maxlength: "200",
  on: { input: ({ target }) => onInput(target.value) }, ...attributes });

export const searchBox = (field, role = null) =>
  h("div", { class: "seeking", role }, icon("search"), field);

// Return a form that calls `onSubmit()` instead of sending its fields.
export function entryForm(attributes, onSubmit, ...children) {
  const submit = (event) => {
    event.preventDefault();
    onSubmit();
  };
  return h("form", { ...attributes, on: { submit } }, children);
}

// Return the parts of a line with dots between them; empty ones are left out.
export const joinWithDots = (...parts) => parts.filter((part) => part)
  .flatMap((part, index) => [index ? "\u00a0· " : null, h("span", { class: "facet" }, part)]);

// Return a bar of `parts`, [class, start, length]; start and length are shares of 1.
export function bar(parts, attributes = { "aria-hidden": "true" }) {
  const element = h("span", { class: "bar", ...attributes });
  for (const [kind, start, length] of parts) {
    const part = h("i", { class: kind || null });
    part.style.setProperty("left", `${100 * start}%`);
    part.style.setProperty("width", `${100 * length}%`);
    element.append(part);
  }
  return element;
}

// Return a value with a bar before it: its share of the largest value, if that is known.
export const valueWithBar = (share, ...value) => h("span", { class: "measured" },
  share ? bar([["", 0, share]]) : null, h("span", {}, value));

// Return small bars, such as one for each hour, with a label; null if all values are 0. `tone` is
// "", warn or bad.
export function sparkline(values, tone, label) {
  if (!values.some(Boolean)) return null;
  const max = Math.max(...values, 1e-9);
  const width = 100 / values.length;
  const gap = Math.min(0.8, width / 4);
  return [svg("svg", { class: `spark ${tone}`, viewBox: "0 0 100 34", "aria-hidden": "true",
    preserveAspectRatio: "none" }, ...values.map((value, index) => {
    const height = value ? Math.max(2, 32 * value / max) : 1;
    return svg("rect", { x: index * width + gap / 2, y: 34 - height, width: width - gap, height,
      class: value ? "" : "nil" });
  })), h("span", { class: "small quiet" }, label)];
}

// Return a figure with its name, a note and a picture; with an address it is a link.
export const tile = (address, label, figure, unit, note, picture) =>
  h(address ? "a" : "div", { class: "card tile", href: address },
    h("span", { class: "label" }, label),
    h("span", { class: "figure" }, figure, unit ? h("small", {}, " ", unit) : null),
    h("span", { class: "note" }, note), picture);

// Return a card with a state in one sentence, a colour and an icon, then details and buttons.
// `tone` is good, warn, bad, calm or spent.
export const healthCard = (label,
  { tone, picture = TONE_ICONS[tone], headline, detail = null, actions = null }) =>
  h("section", { class: `card health ${tone}`, "aria-label": label },
    h("span", { class: "mark" }, icon(picture)),
    h("div", { class: "grow" }, h("p", { class: "say" }, headline), h("p", { class: "quiet" }, detail)),
    actions ? h("div", { class: "row" }, actions) : null);

// Return what stands in an empty part: what will appear there, and what makes it appear.
export const emptyState = (picture, title, text, ...actions) => h("div", { class: "nothing" },
  icon(picture), h("strong", {}, title), h("p", {}, text), actions);

// Open a dialog and return it; `createFooter(close)` returns its buttons.
export function openDialog(title, body, createFooter = null) {
  const close = () => element.close();
  const element = h("dialog", { "aria-label": title },
    h("header", {}, h("h2", {}, title),
      button(icon("cross"), "bare icon-only", close, { "aria-label": t("close") })),
    h("div", { class: "body" }, body), createFooter && h("footer", {}, createFooter(close)));
  closeWhenLeft(element);
  document.body.append(element);
  element.showModal();
  return element;
}

// Open a dialog with a form. It closes when `action()` succeeded after a submit, when the user
// closes it, or when `signal` is aborted; an error is shown, and the user may try again. Resolves
// to whether `action()` succeeded. `submitButton` is one of `formButton`; `choice`, beside it, is a
// label with a box of the form.
export async function openForm(title, submitButton, fields, action, signal, choice = null) {
  const errorSlot = h("div");
  let isDone = false;
  const submit = async () => {
    submitButton.disabled = true;
    await attempt(errorSlot, signal, async () => {
      await action();
      isDone = true;
      dialog.close();
    });
    submitButton.disabled = false;
  };
  const form = entryForm({ id: FORM_ID }, submit, fields, errorSlot);
  const dialog = openDialog(title, form, (close) =>
    [choice, button(t("cancel"), "", close), submitButton]);
  form.elements[0].focus();
  const closed = new Promise((done) => dialog.addEventListener("close", done));
  signal.addEventListener("abort", () => dialog.close());
  await closed;
  return isDone;
}

// Return the submit button for `openForm`.
export const formButton = (text) => h("button", { class: "primary", form: FORM_ID }, text);

// Close a dialog when the user goes to another address, as by Back, and remove it once it is
// closed. Return a signal that is aborted then.
export function closeWhenLeft(dialog) {
  const closed = new AbortController();
  dialog.addEventListener("close", () => { closed.abort(); dialog.remove(); });
  addEventListener("hashchange", () => dialog.close(), { capture: true, signal: closed.signal });
  return closed.signal;
}

// Show a title instead of the panel's name, and a line below it.
export function showTitle(title, ...below) {
  const heading = document.querySelector("#main h1");
  replace(heading, title);
  document.title = `${heading.textContent} · byok`;
  replace(heading.nextElementSibling, below);
}

// Focus the panel's title after the focused element is gone, so that a screen reader says where the
// user is now.
export const focusTitle = () => document.querySelector("#main h1").focus();

// Put buttons, counts and links beside the panel's title.
export const showTools = (...tools) => replace(document.getElementById("tools"), tools);

export function section(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), children);
}

// Return a section whose heading has buttons or links beside it.
export function toolSection(title, tools, ...children) {
  return h("section", { class: "card" },
    h("div", { class: "head" }, h("h2", {}, title), h("div", { class: "row" }, tools)), children);
}

// Return such a section whose content, for example a table or a list, reaches its edges.
export function flushSection(title, tools, ...children) {
  const element = toolSection(title, tools, children);
  element.classList.add("flush");
  return element;
}

// Return a list of names with their values; pairs without a value are left out.
export function factList(pairs) {
  return h("dl", { class: "facts" }, pairs
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

export const codeElement = (text) => h("code", {}, pasteable(text));

// Return a text whose parts in backticks are shown as code, commands as the user can run them.
export const withCode = (text, codeOf = codeElement) => text.split("`")
  .map((part, index) => (index % 2 ? codeOf(part) : part));

// Return an error for the user: what happened, what to do, and its code.
export function errorBox(error) {
  return h("div", { class: "error", role: "alert" },
    h("p", {}, withCode(error.message || String(error))),
    error.hint ? h("p", {}, withCode(error.hint)) : null,
    error.code ? h("p", { class: "quiet" }, t("error.code", { code: error.code })) : null);
}

// Run an action. Its error is shown in `container`, unless the user has left the panel.
export async function attempt(container, signal, action) {
  try {
    await action();
  } catch (error) {
    if (!signal.aborted) replace(container, errorBox(error));
  }
}

// Show a message for a few seconds; screen readers read it aloud.
export function announce(text) {
  const status = document.getElementById("status");
  replace(status, text);
  clearTimeout(statusTimer);
  statusTimer = setTimeout(() => replace(status), 8000);
}
