// The files of a folder that are not in the index: how many for each reason, and which.

import { call } from "../api.js";
import { attempt, button, h, replace, table } from "../dom.js";
import { number } from "../format.js";
import { t, textOr } from "../texts.js";
import { whyLine } from "./why-file.js";

const PAGE_SIZE = 100; // files

// Return an element that has the daemon walk the folder when it is opened.
export function skippedFiles(root, signal) {
  const view = { root, signal, reasons: h("div"), files: h("div") };
  return h("details", { on: { toggle: ({ target }) => target.open && showReasons(view) } },
    h("summary", {}, t("index.skipped")), h("p", { class: "quiet" }, t("index.skipped-how")),
    view.reasons, view.files);
}

// Load skipped files and call `show(answer)`, unless such a request is running.
async function loadSkipped(view, body, show) {
  if (view.reasons.ariaBusy) return;
  view.reasons.ariaBusy = "true";
  await attempt(view.files, view.signal, async () =>
    show(await call("index-skipped", { root: view.root, ...body }, { signal: view.signal })));
  view.reasons.ariaBusy = null;
}

const wordsOf = ({ reason, why }) => textOr(`skip.${reason}`, why);

async function showReasons(view) {
  replace(view.reasons);
  replace(view.files, h("p", { class: "quiet" }, t("overview.loading")));
  await loadSkipped(view, { limit: 1 }, (answer) => {
    replace(view.files);
    replace(view.reasons, answer.whole ? null : h("p", { class: "note" }, t("index.skipped-part")),
      table(t("index.skipped"), [
        { title: t("index.reason"), lead: true, cell: wordsOf },
        { title: t("index.count"), cell: (row) => number(row.count), numeric: true },
        { title: t("index.which"), aside: true, cell: (row) => button(t("index.list"), "little",
          () => loadList(view, row.reason, 0),
          { "aria-label": t("pair", { name: t("index.list"), value: wordsOf(row) }) }) },
      ], answer.reasons, { empty: t("index.skipped-none") }));
  });
}

const loadList = (view, reason, offset) =>
  loadSkipped(view, { reason, offset, limit: PAGE_SIZE }, (answer) => showList(view, reason, offset, answer));

function showList(view, reason, offset, page) {
  const row = page.reasons.find((entry) => entry.reason === reason);
  const total = row?.count ?? 0;
  const title = h("h3", { tabindex: "-1" }, total > PAGE_SIZE
    ? t("index.list-title", { reason: wordsOf(row), from: number(offset + 1),
      to: number(offset + page.files.length), count: number(total) })
    : t("pair", { name: row ? wordsOf(row) : reason, value: number(total) }));
  const pageButton = (text, to, isEnabled) =>
    button(t(text), "", () => loadList(view, reason, to), { disabled: !isEnabled });
  replace(view.files, title,
    h("ul", { class: "paths" }, page.files.map(({ path }) =>
      h("li", {}, whyLine(`${view.root}/${path}`, h("code", { class: "path" }, path),
        view.signal)))),
    total > PAGE_SIZE ? h("div", { class: "row" },
      pageButton("index.before", Math.max(0, offset - PAGE_SIZE), offset > 0),
      pageButton("index.next", offset + PAGE_SIZE, offset + PAGE_SIZE < total)) : null);
  title.focus();
}
