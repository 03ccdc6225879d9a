// Code search as agents use it: the files with their scores, and the text that an agent gets. The
// question is never in the address, because it would stay in the browser's history. The page stores
// it while it is open, with its filters and its answer, so that Back shows the same.

import { call, onSessionEnd } from "../api.js";
import {
  attempt, bar, emptyState, entryForm, errorBox, flushSection, h, menu, replace, searchBox,
  searchField, section,
} from "../dom.js";
import { duration, number, percent } from "../format.js";
import { icon } from "../icons.js";
import { t, textParts } from "../texts.js";
import { hitList, termList } from "./search-hits.js";
import { whyLine, whySection } from "./why-file.js";

const LENGTHS = [5_000, 20_000, 80_000]; // characters of the text for an agent
const LIMITS = [10, 20, 50]; // files
const MAX_QUERY_LENGTH = 10_000; // characters
let lastQuestion = null; // the question that is shown: {body, folder, answer, skipped}
onSessionEnd(() => { lastQuestion = null; });

export async function open(root, parts, signal) {
  const { workspaces } = await call("index", {}, { signal });
  const roots = workspaces.map((space) => space.root);
  const view = { signal, roots, names: shortNames(roots), results: h("div", { class: "stack" }),
    summary: h("p", { class: "summary quiet small", role: "status" }),
    skipped: h("div", { "aria-live": "polite" }) };
  if (!roots.length) {
    return replace(root, h("section", { class: "card" }, emptyState("index", t("search.none"),
      t("search.none.about"), h("a", { class: "button", href: "#/index" }, t("index.title")))));
  }
  if (lastQuestion?.body.workspaces.some((folder) => !roots.includes(folder))) lastQuestion = null;
  const form = searchForm(view);
  if (!lastQuestion) showInvitation(view);
  else if (lastQuestion.answer) show(view, lastQuestion);
  else runSearch(view, lastQuestion); // the user left before the answer came
  replace(root, form, h("div", { class: "two" }, h("div", {}, view.summary, view.results),
    h("div", { class: "stack" }, folderSection(workspaces, view.names), whySection(signal))));
}

// Return a map from each folder's path to its last part, or to the path where two parts are equal.
function shortNames(roots) {
  const lastPart = (root) => root.split(/[/\\]/u).findLast((part) => part) ?? root;
  const names = roots.map(lastPart);
  return new Map(roots.map((root, index) => [root,
    names.filter((name) => name === names[index]).length > 1 ? root : names[index]]));
}

function searchForm(view) {
  const query = searchField(t("search.query"), (words) => { if (!words.trim()) showInvitation(view); },
    { id: "search-query", required: true, maxlength: MAX_QUERY_LENGTH, placeholder: t("search.example"),
      value: lastQuestion?.body.query });
  const folder = menu(t("search.folder"), [["", t("index.all")],
    ...view.names.entries()], undefined, lastQuestion?.folder);
  const limit = menu(t("search.limit"),
    LIMITS.map((count) => [count, t("search.limit-of", { count: number(count) })]), undefined,
    lastQuestion?.body.limit);
  const submit = () => {
    if (!query.value.trim()) return;
    const workspaces = folder.value ? [folder.value] : view.roots.slice(0, 100);
    lastQuestion = { folder: folder.value, answer: null,
      body: { query: query.value, workspaces, limit: Number(limit.value) } };
    runSearch(view, lastQuestion);
  };
  return entryForm({ class: "asking row", role: "search" }, submit,
    searchBox(query), folder, limit,
    h("button", { class: "primary" }, t("search.submit")));
}

// Return the list of folders that are searched. The panel Index shows more about them.
function folderSection(workspaces, names) {
  const folderRow = ({ root, percentage, files_tracked: files }) => h("li", {},
    h("div", { class: "grow" }, h("div", { class: "row" },
      h("strong", { class: "grow path", title: root }, names.get(root)),
      percentage < 100 ? h("span", { class: "quiet small" }, percent(percentage / 100))
        : h("span", { class: "good small row tight" }, icon("check"), t("index.phase.complete"))),
    percentage < 100 ? bar([["", 0, percentage / 100]]) : null,
    h("span", { class: "quiet small" }, t("index.files", { count: number(files) }))));
  return flushSection(t("search.folders"), h("a", { href: "#/index" }, t("index.title")),
    h("ul", { class: "list" }, workspaces.map(folderRow)),
    h("p", { class: "quiet small" }, t("search.what")));
}

// Show what stands in the place of an answer while there is no question.
function showInvitation(view) {
  lastQuestion = null;
  replace(view.summary);
  replace(view.results, h("section", { class: "card" },
    emptyState("search", t("search.ask"), t("search.ask.about"))));
}

// Ask a question, and show its answer unless another question was asked meanwhile.
async function runSearch(view, question) {
  replace(view.summary, t("search.searching"));
  replace(view.results);
  try {
    question.answer = await call("search", question.body, { signal: view.signal });
    if (question === lastQuestion) show(view, question);
  } catch (error) {
    if (question !== lastQuestion || view.signal.aborted) return;
    replace(view.summary);
    replace(view.results, errorBox(error));
  }
}

function show(view, { body, answer: { hits, notes, seconds, terms } }) {
  replace(view.summary, t("search.found", { count: number(hits.length), time: duration(seconds) }));
  replace(view.results,
    h("div", { class: "quiet small" }, termList(terms)),
    notes.map((note) => h("p", { class: "note" }, note)),
    view.skipped, hitList(hits, view.names), answerSection(view, body));
  addSkipped(view, lastQuestion);
}

// Show which files would answer the question, but are not in the index.
async function addSkipped({ skipped, signal }, question) {
  const { query, workspaces } = question.body;
  replace(skipped);
  await attempt(skipped, signal, async () => {
    question.skipped ??= await call("search-skipped", { query, workspaces }, { signal });
    if (question !== lastQuestion) return;
    replace(skipped, question.skipped.files.map(({ file, path, reason }) => whyLine(file,
      textParts("search.skipped", { path: h("code", { class: "path" }, path), why: t(`skip.${reason}`) }),
      signal)));
  });
}

// Return the section for the exact text that an agent gets, which is loaded on demand.
function answerSection(view, { query, workspaces }) {
  const result = h("div", { role: "status" });
  const length = menu(t("search.length"),
    LENGTHS.map((count) => [count, t("search.length-of", { count: number(count) })]), undefined,
    20_000);
  const loadAnswer = async () => {
    const body = { query, workspaces, length: Number(length.value) };
    const { text, seconds } = await call("retrieval", body, { signal: view.signal });
    replace(result,
      h("p", {}, t("search.length-value", { count: number(text.length),
        bytes: number(new TextEncoder().encode(text).length), time: duration(seconds) })),
      h("pre", { class: "answer", tabindex: "0", role: "region",
        "aria-label": t("search.answer") }, text));
  };
  const submit = () => {
    replace(result, h("p", { class: "quiet" }, t("search.searching")));
    attempt(result, view.signal, loadAnswer);
  };
  return section(t("search.answer"),
    h("p", { class: "quiet" }, t("search.answer-what")),
    entryForm({ class: "row" }, submit, length, h("button", {}, t("search.answer-ask"))),
    result);
}
