// The index: each folder with its progress, the skipped files and the reasons, and the vectors.

import { call } from "../api.js";
import {
  announce, attempt, badge, bar, confirmButton, emptyState, entryForm, errorBox, factList,
  focusTitle, h, joinWithDots, lineField, replace, section, toolSection, withCode,
} from "../dom.js";
import { duration, number, percent } from "../format.js";
import { createPoller, followRequests } from "../refresh.js";
import { t, textOr } from "../texts.js";
import { skippedFiles } from "./skipped-files.js";
import { whySection } from "./why-file.js";

const BUSY_PHASES = ["scanning", "indexing"];
const PHASE_TONES = { complete: "good", "workspace-too-large": "bad", "folder-gone": "bad" };
const VECTOR_TONES = { complete: "good", failed: "bad", off: "quiet" };
// Counters of the last walk through a folder.
const SKIPPED_COUNTERS = ["ignored", "secret", "too_large", "not_plain_files", "not_accessible",
  "encoding_errors"];
const TIME_COUNTERS = ["walk_seconds", "stat_seconds", "read_seconds", "calculate_seconds"];
const COUNT_COUNTERS = ["accepted", "mtime_hits", "mtime_misses", "names_probed", "files_read",
  "blobs_uploaded", ...SKIPPED_COUNTERS];

// `#/index/why` leads to the section that explains why a file is not found.
export async function open(root, parts, signal) {
  const view = { signal, cards: new Map(), pollSoon: createPoller(signal), shownError: "" };
  view.totals = h("div");
  view.message = h("div");
  view.actionError = h("div");
  view.folders = h("div", { class: "panel" });
  view.vectors = vectorsPart(signal);
  view.refresh = (options) => refresh(view, options);
  replace(root,
    section(t("index.all"), view.message, view.totals, view.actionError,
      folderActions(view)),
    view.folders,
    whySection(signal),
    view.vectors.element);
  followRequests(() => refreshQuietly(view), signal);
  await view.refresh().catch((error) => showFailure(view, error));
  if (parts[0] === "why") root.querySelector("#index-path").focus();
}

const refreshQuietly = (view) =>
  view.refresh({ background: true }).catch((error) => showFailure(view, error));

function showFailure(view, error) {
  if (view.signal.aborted) return;
  view.shownError = null; // so that the next answer replaces this error, whatever it says
  replace(view.message, errorBox(error));
}

// Run an action of the user. Its error is shown until the next action.
function runAction(view, action) {
  replace(view.actionError);
  return attempt(view.actionError, view.signal, action);
}

async function refresh(view, { background = false } = {}) {
  view.pollSoon(null);
  const status = await call("index", {}, { signal: view.signal, background });
  if (status.error !== view.shownError) { // once, because an alert is read aloud
    view.shownError = status.error;
    replace(view.message, status.error ? errorBox({ message: status.error }) : null);
  }
  showTotals(view.totals, status);
  const roots = status.workspaces.map((space) => space.root);
  for (const [root, card] of view.cards) {
    if (!roots.includes(root)) {
      card.element.remove();
      view.cards.delete(root);
    }
  }
  for (const space of status.workspaces) showFolder(view, space);
  const isFilling = await view.vectors.load(background);
  const isIndexing = status.workspaces.some(({ phase }) => BUSY_PHASES.includes(phase));
  if (isFilling || isIndexing || status.waiting) view.pollSoon(() => refreshQuietly(view));
}

function showTotals(element, { state, mode, waiting, workspaces, totals }) {
  const tone = { indexed: "good", error: "bad", indexing: "warn" }[state] ?? "quiet";
  const heldText = totals.blobs_held
    ? t("index.held-value", { count: number(totals.blobs_held),
      size: number(totals.bytes_held / 1e6, 1) })
    : null;
  replace(element,
    factList([
      [t("request.state"), badge(tone, textOr(`index.state.${state}`, state))],
      [t("index.waiting"), waiting ? number(waiting) : null],
      [t("index.versions"), totals.blobs === undefined ? null : number(totals.blobs)],
      [t("index.chunks"), totals.chunks === undefined ? null : number(totals.chunks)],
      [t("index.held"), heldText],
      [t("index.mode"), mode === "auto" ? null : mode],
    ]),
    workspaces.length ? null : emptyState("index", t("index.none"), t("index.none.about")));
}

function showFolder(view, space) {
  let card = view.cards.get(space.root);
  if (!card) {
    card = createFolder(view, space.root);
    view.cards.set(space.root, card);
    view.folders.append(card.element);
  }
  const isBusy = BUSY_PHASES.includes(space.phase);
  const percentage = percent(space.percentage / 100);
  replace(card.phase, badge(PHASE_TONES[space.phase] ?? "warn",
    textOr(`index.phase.${space.phase}`, space.phase)));
  card.progress.hidden = !isBusy;
  card.progress.setAttribute("aria-valuenow", String(Math.round(space.percentage)));
  replace(card.progress, [...bar([["", 0, space.percentage / 100]]).children]);
  const skipped = SKIPPED_COUNTERS.reduce((sum, name) => sum + (space.counters[name] ?? 0), 0);
  replace(card.numbers, isBusy
    ? t("index.doing", { percent: percentage, done: number(space.files_processed),
      files: number(space.files_tracked) })
    : joinWithDots(t("index.files", { count: number(space.files_tracked) }),
      skipped ? t("index.skipped-count", { count: number(skipped) }) : null));
  replace(card.note, space.note ? [badge("warn", t("index.note")), " ", space.note] : null);
  replace(card.counters, counterList(space.counters));
}

function createFolder(view, root) {
  const card = { phase: h("span"), numbers: h("p", { class: "quiet" }),
    note: h("p", { class: "note" }), counters: h("div"),
    progress: h("div", { class: "bar", role: "progressbar", "aria-valuemin": "0",
      "aria-valuemax": "100", "aria-label": t("index.progress", { root }) }) };
  const removeButton = confirmButton(t("index.remove"), t("index.remove-sure"), () =>
    runAction(view, async () => {
      await call("index-remove", { root }, { signal: view.signal });
      announce(t("index.removed", { root }));
      await view.refresh();
      focusTitle();
    }));
  card.element = toolSection(root, [card.phase, removeButton], card.numbers, card.progress, card.note,
    skippedFiles(root, view.signal),
    h("details", {}, h("summary", {}, t("index.walk")), card.counters));
  return card;
}

function counterList(values) {
  return factList([
    ...COUNT_COUNTERS.map((name) => [t(`index.counter.${name}`), number(values[name])]),
    ...TIME_COUNTERS.map((name) => [t(`index.counter.${name}`), duration(values[name])]),
  ]);
}

function folderActions(view) {
  const field = lineField({ id: "index-folder", name: "folder", required: true,
    maxlength: "4096" });
  const add = async () => {
    const body = { root: field.value.trim() };
    const { workspace } = await call("index-add", body, { signal: view.signal });
    field.value = "";
    await view.refresh();
    announce(t("index.added", { root: workspace.root }));
  };
  const rebuild = async () => {
    const { files } = await call("index-rebuild", {}, { signal: view.signal });
    await view.refresh();
    announce(t("index.rebuilding", { count: number(files) }));
  };
  return h("div", { class: "actions" },
    entryForm({ class: "inline" }, () => runAction(view, add),
      h("label", { for: "index-folder" }, t("index.add-label")),
      h("div", { class: "row" }, field, h("button", {}, t("index.add")))),
    confirmButton(t("index.rebuild"), t("index.rebuild-sure"), () => runAction(view, rebuild)));
}

// Return {element, load}: a section, and `load(background)`, which fills it and resolves to whether
// vectors are being computed.
function vectorsPart(signal) {
  const body = h("div");
  const element = section(t("index.vectors"), body);
  element.hidden = true; // until the first answer
  const load = async (background) => {
    let isFilling = false;
    await attempt(body, signal, async () => {
      const vectors = await call("index-vectors", {}, { signal, background });
      replace(body, describeVectors(vectors));
      isFilling = vectors.state === "filling";
    });
    element.hidden = false;
    return isFilling;
  };
  return { element, load };
}

function describeVectors(vectors) {
  const share = vectors.chunks
    ? t("index.vectors-of", { done: number(vectors.embedded), chunks: number(vectors.chunks) })
    : null;
  return [
    vectors.error ? errorBox({ message: vectors.error }) : null,
    factList([
      [t("request.state"), badge(VECTOR_TONES[vectors.state] ?? "warn",
        withCode(textOr(`vectors.${vectors.state}`, vectors.state)))],
      [t("request.model"), vectors.model],
      [t("index.vectors-host"), vectors.host],
      [t("index.vectors-done"), share],
      [t("index.vectors-refused"), vectors.refused ? number(vectors.refused) : null],
      [t("index.vectors-note"), vectors.note],
    ]),
    vectors.state === "off" ? h("p", { class: "quiet" }, t("vectors.off.about"), " ",
      h("a", { href: "#/settings/find/embeddings" }, t("settings.title"))) : null];
}
