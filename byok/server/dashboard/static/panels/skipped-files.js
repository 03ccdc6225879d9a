// The files of a folder that are not searchable: how many for each reason, and which.

import { call } from "../api.js";
import { button, errorBox, h, replace, table } from "../dom.js";
import { number } from "../format.js";
import { t, textOr } from "../texts.js";
import { whyLine } from "./why-file.js";

const PAGE = 100;

// Return an element that walks the folder when it is unfolded.
export function skippedFiles(root, signal) {
  const view = { root, signal, reasons: h("div"), files: h("div"), busy: false };
  return h("details", { on: { toggle: ({ target }) => target.open && count(view) } },
    h("summary", {}, t("index.skipped")), h("p", { class: "quiet" }, t("index.skipped-how")),
    view.reasons, view.files);
}

async function ask(view, body) {
  if (view.busy) return null;
  view.busy = true;
  view.reasons.setAttribute("aria-busy", "true");
  try {
    return await call("index-skipped", { root: view.root, ...body }, { signal: view.signal });
  } catch (error) {
    if (!view.signal.aborted) replace(view.files, errorBox(error));
    return null;
  } finally {
    view.busy = false;
    view.reasons.removeAttribute("aria-busy");
  }
}

const wordsOf = ({ reason, why }) => textOr(`skip.${reason}`, why);

async function count(view) {
  replace(view.files);
  replace(view.reasons, h("p", { class: "quiet" }, t("overview.loading")));
  const found = await ask(view, { limit: 1 });
  replace(view.reasons, found && [
    found.whole ? null : h("p", { class: "note" }, t("index.skipped-part")),
    table(t("index.skipped"), [
      { title: t("index.reason"), lead: true, cell: wordsOf },
      { title: t("index.count"), cell: (row) => number(row.count), numeric: true },
      { title: t("index.which"), aside: true, cell: (row) => button(t("index.list"), "little",
        () => list(view, row.reason, 0, true),
        { "aria-label": t("pair", { name: t("index.list"), value: wordsOf(row) }) }) },
    ], found.reasons, { empty: t("index.skipped-none") })]);
}

async function list(view, reason, offset, focus) {
  const found = await ask(view, { reason, offset, limit: PAGE });
  if (!found) return;
  const row = found.reasons.find((one) => one.reason === reason);
  const total = row?.count ?? 0;
  const title = h("h3", { tabindex: "-1" }, total > PAGE
    ? t("index.list-title", { reason: wordsOf(row), from: number(offset + 1),
      to: number(offset + found.files.length), count: number(total) })
    : t("pair", { name: row ? wordsOf(row) : reason, value: number(total) }));
  const go = (text, to, possible) =>
    button(t(text), "", () => list(view, reason, to, true), { disabled: !possible });
  replace(view.files, title,
    h("ul", { class: "paths" }, found.files.map(({ path }) =>
      h("li", {}, whyLine(`${view.root}/${path}`, h("code", { class: "path" }, path),
        view.signal)))),
    total > PAGE ? h("div", { class: "row" },
      go("index.before", Math.max(0, offset - PAGE), offset > 0),
      go("index.next", offset + PAGE, offset + PAGE < total)) : null);
  if (focus) title.focus();
}
