// Code search as an agent has it: the files with their scores, and the text of an answer.
// The question is never in the address: it would stay in the browser's history.

import { call } from "../api.js";
import { announce, errorBox, h, replace, section } from "../dom.js";
import { duration, number } from "../format.js";
import { t } from "../texts.js";
import { hitList, termList } from "./search-hits.js";

const LENGTHS = [5_000, 20_000, 80_000];
const LIMITS = [10, 20, 50];
const LONGEST = 10_000;

export async function open(root, rest, signal) {
  const { workspaces } = await call("index", {}, { signal });
  const roots = workspaces.map((space) => space.root);
  const view = { signal, roots, results: h("div", { class: "panel" }), asked: 0 };
  replace(root,
    section(t("search.ask"),
      roots.length ? form(view) : h("p", {}, t("search.none"), " ",
        h("a", { href: "#/index" }, t("index.title"))),
      h("p", { class: "quiet" }, t("search.what"))),
    view.results);
}

function form(view) {
  const query = h("textarea", { id: "search-query", rows: "2", required: true,
    maxlength: String(LONGEST), autocomplete: "off", spellcheck: "false" });
  const chosen = select("search-folder", [["", t("search.all")],
    ...view.roots.map((root) => [root, root])]);
  const limit = select("search-limit", LIMITS.map((count) => [String(count), number(count)]));
  const submit = (event) => {
    event.preventDefault();
    if (!query.value.trim()) return;
    const workspaces = chosen.value ? [chosen.value] : view.roots.slice(0, 100);
    search(view, { query: query.value, workspaces, limit: Number(limit.value) });
  };
  const enter = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.target.form.requestSubmit();
    event.preventDefault();
  };
  query.addEventListener("keydown", enter);
  return h("form", { on: { submit } },
    h("label", { for: "search-query" }, t("search.query")), query,
    h("div", { class: "row" },
      h("div", {}, h("label", { for: "search-folder" }, t("search.folder")), chosen),
      h("div", {}, h("label", { for: "search-limit" }, t("search.limit")), limit),
      h("button", { class: "primary" }, t("search.submit"))));
}

const select = (id, options) => h("select", { id }, options.map(([value, text]) =>
  h("option", { value }, text)));

async function search(view, body) {
  const turn = ++view.asked; // only the last question is shown
  replace(view.results, h("p", { class: "quiet" }, t("search.searching")));
  try {
    const found = await call("search", body, { signal: view.signal });
    if (turn !== view.asked) return;
    const summary = t("search.found", { count: number(found.hits.length),
      time: duration(found.seconds) });
    replace(view.results,
      section(t("search.files"), h("p", {}, summary),
        found.notes.map((note) => h("p", { class: "note" }, note)),
        termList(found.terms),
        hitList(found.hits)),
      answerSection(view, body));
    announce(summary);
  } catch (error) {
    if (turn === view.asked && !view.signal.aborted) replace(view.results, errorBox(error));
  }
}

// The exact text that an agent gets; it is only asked for on demand.
function answerSection(view, { query, workspaces }) {
  const shown = h("div", { role: "status" });
  const length = select("search-length", LENGTHS.map((count) => [String(count), number(count)]));
  length.value = "20000";
  const ask = async (event) => {
    event.preventDefault();
    replace(shown, h("p", { class: "quiet" }, t("search.searching")));
    try {
      const body = { query, workspaces, length: Number(length.value) };
      const { text, seconds } = await call("retrieval", body, { signal: view.signal });
      replace(shown,
        h("p", {}, t("search.length-value", { count: number(text.length),
          bytes: number(new TextEncoder().encode(text).length), time: duration(seconds) })),
        h("pre", { class: "answer", tabindex: "0", role: "region",
          "aria-label": t("search.answer") }, text));
    } catch (error) {
      if (!view.signal.aborted) replace(shown, errorBox(error));
    }
  };
  return section(t("search.answer"),
    h("p", { class: "quiet" }, t("search.answer-what")),
    h("form", { class: "inline", on: { submit: ask } },
      h("label", { for: "search-length" }, t("search.length")),
      h("div", { class: "row" }, length, h("button", {}, t("search.answer-ask")))),
    shown);
}
