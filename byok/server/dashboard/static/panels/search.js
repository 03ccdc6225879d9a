// Code search as an agent has it: the files with their scores, and the text of an answer.
// The question is never in the address: it would stay in the browser's history. The page keeps it
// while it is open, with its filters and what was found, so that Back leads to the same.

import { call, onEnd } from "../api.js";
import {
  attempt, bar, entryForm, errorBox, flushSection, h, menu, nothing, replace, section,
  seekField, seeking,
} from "../dom.js";
import { duration, number, percent } from "../format.js";
import { icon } from "../icons.js";
import { parts, t } from "../texts.js";
import { hitList, termList } from "./search-hits.js";
import { whyLine, whySection } from "./why-file.js";

const LENGTHS = [5_000, 20_000, 80_000];
const LIMITS = [10, 20, 50];
const LONGEST = 10_000;
let last = null; // the question that is shown: {body, folder, found, skipped}
onEnd(() => { last = null; });

export async function open(root, rest, signal) {
  const { workspaces } = await call("index", {}, { signal });
  const roots = workspaces.map((space) => space.root);
  const view = { signal, roots, names: shortNames(roots), results: h("div", { class: "stack" }),
    summary: h("p", { class: "summary quiet small", role: "status" }),
    skipped: h("div", { "aria-live": "polite" }) };
  if (!roots.length) {
    return replace(root, h("section", { class: "card" }, nothing("index", t("search.none"),
      t("search.none.about"), h("a", { class: "button", href: "#/index" }, t("index.title")))));
  }
  if (last?.body.workspaces.some((one) => !roots.includes(one))) last = null;
  const filled = form(view);
  if (!last) invite(view);
  else if (last.found) show(view, last);
  else search(view, last); // it was left before there was an answer
  replace(root, filled, h("div", { class: "two" }, h("div", {}, view.summary, view.results),
    h("div", { class: "stack" }, folders(workspaces, view.names), whySection(signal))));
}

// Return the short name of each folder by its path; two of the same name keep their paths.
function shortNames(roots) {
  const last = (root) => root.split(/[/\\]/u).findLast((part) => part) ?? root;
  const names = roots.map(last);
  return new Map(roots.map((root, place) => [root,
    names.filter((name) => name === names[place]).length > 1 ? root : names[place]]));
}

function form(view) {
  const query = seekField(t("search.query"), (words) => { if (!words.trim()) invite(view); },
    { id: "search-query", required: true, maxlength: LONGEST, placeholder: t("search.example"),
      value: last?.body.query });
  const chosen = menu(t("search.folder"), [["", t("index.all")],
    ...view.names.entries()], undefined, last?.folder);
  const limit = menu(t("search.limit"),
    LIMITS.map((count) => [count, t("search.limit-of", { count: number(count) })]), undefined,
    last?.body.limit);
  const submit = () => {
    if (!query.value.trim()) return;
    const workspaces = chosen.value ? [chosen.value] : view.roots.slice(0, 100);
    last = { folder: chosen.value, found: null,
      body: { query: query.value, workspaces, limit: Number(limit.value) } };
    search(view, last);
  };
  return entryForm({ class: "asking row", role: "search" }, submit,
    seeking(query), chosen, limit,
    h("button", { class: "primary" }, t("search.submit")));
}

// The folders that are searched; all else about them is on the panel Index.
function folders(workspaces, names) {
  const row = ({ root, percentage, files_tracked: files }) => h("li", {},
    h("div", { class: "grow" }, h("div", { class: "row" },
      h("strong", { class: "grow path", title: root }, names.get(root)),
      percentage < 100 ? h("span", { class: "quiet small" }, percent(percentage / 100))
        : h("span", { class: "good small row tight" }, icon("check"), t("search.ready"))),
    percentage < 100 ? bar([["", 0, percentage / 100]]) : null,
    h("span", { class: "quiet small" }, t("index.files", { count: number(files) }))));
  return flushSection(t("search.folders"), h("a", { href: "#/index" }, t("index.title")),
    h("ul", { class: "list" }, workspaces.map(row)),
    h("p", { class: "quiet small" }, t("search.what")));
}

// An empty question has no answer.
function invite(view) {
  last = null;
  replace(view.summary);
  replace(view.results, h("section", { class: "card" },
    nothing("search", t("search.ask"), t("search.ask.about"))));
}

// Ask; only the last question is shown.
async function search(view, mine) {
  replace(view.summary, t("search.searching"));
  replace(view.results);
  try {
    mine.found = await call("search", mine.body, { signal: view.signal });
    if (mine === last) show(view, mine);
  } catch (error) {
    if (mine !== last || view.signal.aborted) return;
    replace(view.summary);
    replace(view.results, errorBox(error));
  }
}

function show(view, { body, found: { hits, notes, seconds, terms } }) {
  replace(view.summary, t("search.found", { count: number(hits.length), time: duration(seconds) }));
  replace(view.results,
    h("div", { class: "quiet small" }, termList(terms)),
    notes.map((note) => h("p", { class: "note" }, note)),
    view.skipped, hitList(hits, view.names), answerSection(view, body));
  addSkipped(view, last);
}

// Say which files are no answer only because they are left out.
async function addSkipped({ skipped, signal }, mine) {
  const { query, workspaces } = mine.body;
  replace(skipped);
  await attempt(skipped, signal, async () => {
    mine.skipped ??= await call("search-skipped", { query, workspaces }, { signal });
    if (mine !== last) return;
    replace(skipped, mine.skipped.files.map(({ file, path, reason }) => whyLine(file,
      parts("search.skipped", { path: h("code", { class: "path" }, path), why: t(`skip.${reason}`) }),
      signal)));
  });
}

// The exact text that an agent gets; it is only asked for on demand.
function answerSection(view, { query, workspaces }) {
  const shown = h("div", { role: "status" });
  const length = menu(t("search.length"),
    LENGTHS.map((count) => [count, t("search.length-of", { count: number(count) })]), undefined, 20_000);
  const ask = async () => {
    const body = { query, workspaces, length: Number(length.value) };
    const { text, seconds } = await call("retrieval", body, { signal: view.signal });
    replace(shown,
      h("p", {}, t("search.length-value", { count: number(text.length),
        bytes: number(new TextEncoder().encode(text).length), time: duration(seconds) })),
      h("pre", { class: "answer", tabindex: "0", role: "region",
        "aria-label": t("search.answer") }, text));
  };
  const submit = () => {
    replace(shown, h("p", { class: "quiet" }, t("search.searching")));
    attempt(shown, view.signal, ask);
  };
  return section(t("search.answer"),
    h("p", { class: "quiet" }, t("search.answer-what")),
    entryForm({ class: "row" }, submit, length, h("button", {}, t("search.answer-ask"))),
    shown);
}
