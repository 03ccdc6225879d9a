// The files of a folder that are not searchable: how many for each reason, and which.

import { call } from "../api.js";
import { attempt, button, h, replace, table } from "../dom.js";
import { number } from "../format.js";
import { t, textOr } from "../texts.js";
import { whyLine } from "./why-file.js";

const PAGE = 100;

// Return an element that walks the folder when it is unfolded.
export function skippedFiles(root, signal) {
  const view = { root, signal, reasons: h("div"), files: h("div") };
  return h("details", { on: { toggle: ({ target }) => target.open && count(view) } },
    h("summary", {}, t("index.skipped")), h("p", { class: "quiet" }, t("index.skipped-how")),
    view.reasons, view.files);
}

async function ask(view, body, show) {
  if (view.reasons.ariaBusy) return;
  view.reasons.ariaBusy = "true";
  await attempt(view.files, view.signal, async () =>
    show(await call("index-skipped", { root: view.root, ...body }, { signal: view.signal })));
  view.reasons.ariaBusy = null;
}

const wordsOf = ({ reason, why }) => textOr(`skip.${reason}`, why);

async function count(view) {
  replace(view.reasons);
  replace(view.files, h("p", { class: "quiet" }, t("overview.loading")));
  await ask(view, { limit: 1 }, (found) => {
    replace(view.files);
    replace(view.reasons, found.whole ? null : h("p", { class: "note" }, t("index.skipped-part")),
      table(t("index.skipped"), [
        { title: t("index.reason"), lead: true, cell: wordsOf },
        { title: t("index.count"), cell: (row) => number(row.count), numeric: true },
        { title: t("index.which"), aside: true, cell: (row) => button(t("index.list"), "little",
          () => list(view, row.reason, 0),
          { "aria-label": t("pair", { name: t("index.list"), value: wordsOf(row) }) }) },
      ], found.reasons, { empty: t("index.skipped-none") }));
  });
}

const list = (view, reason, offset) =>
  ask(view, { reason, offset, limit: PAGE }, (found) => showList(view, reason, offset, found));

function showList(view, reason, offset, found) {
  const row = found.reasons.find((one) => one.reason === reason);
  const total = row?.count ?? 0;
  const title = h("h3", { tabindex: "-1" }, total > PAGE
    ? t("index.list-title", { reason: wordsOf(row), from: number(offset + 1),
      to: number(offset + found.files.length), count: number(total) })
    : t("pair", { name: row ? wordsOf(row) : reason, value: number(total) }));
  const go = (text, to, possible) =>
    button(t(text), "", () => list(view, reason, to), { disabled: !possible });
  replace(view.files, title,
    h("ul", { class: "paths" }, found.files.map(({ path }) =>
      h("li", {}, whyLine(`${view.root}/${path}`, h("code", { class: "path" }, path),
        view.signal)))),
    total > PAGE ? h("div", { class: "row" },
      go("index.before", Math.max(0, offset - PAGE), offset > 0),
      go("index.next", offset + PAGE, offset + PAGE < total)) : null);
  title.focus();
}
