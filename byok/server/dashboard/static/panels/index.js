// The index: each folder with its progress, what is left out and why, and the vectors.

import { call } from "../api.js";
import {
  announce, askingButton, attempt, badge, bar, dots, entryForm, errorBox, facts, h, lineField,
  nothing, replace, section, toolSection,
} from "../dom.js";
import { duration, number, percent } from "../format.js";
import { follow, pulse } from "../refresh.js";
import { t, textOr } from "../texts.js";
import { skippedFiles } from "./skipped-files.js";
import { whySection } from "./why-file.js";

const BUSY = ["scanning", "indexing"];
const TONES = { complete: "good", "workspace-too-large": "bad", "folder-gone": "bad" };

// `#/index/why` asks why a file is not found.
export async function open(root, rest, signal) {
  const view = { signal, cards: new Map(), soon: pulse(signal), said: "" };
  view.totals = h("div");
  view.message = h("div");
  view.failure = h("div");
  view.folders = h("div", { class: "panel" });
  view.vectors = vectorsPart(signal);
  view.refresh = (options) => refresh(view, options);
  replace(root,
    section(t("index.all"), view.message, view.totals, view.failure,
      allActions(view)),
    view.folders,
    whySection(signal),
    view.vectors.element);
  follow(() => lookAgain(view), signal);
  await view.refresh().catch((error) => fail(view, error));
  if (rest[0] === "why") root.querySelector("#index-path").focus();
}

const lookAgain = (view) =>
  view.refresh({ background: true }).catch((error) => fail(view, error));

function fail(view, error) {
  if (view.signal.aborted) return;
  view.said = null; // what the next answer says replaces it
  replace(view.message, errorBox(error));
}

// Do what the user wants; why that failed is shown until the next time.
function act(view, action) {
  replace(view.failure);
  return attempt(view.failure, view.signal, action);
}

async function refresh(view, { background = false } = {}) {
  view.soon(null);
  const status = await call("index", {}, { signal: view.signal, background });
  if (status.error !== view.said) { // an alert is read aloud, so once
    view.said = status.error;
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
  const filling = await view.vectors.load(background);
  const indexing = status.workspaces.some(({ phase }) => BUSY.includes(phase));
  if (filling || indexing || status.waiting) view.soon(() => lookAgain(view));
}

function showTotals(element, { state, mode, waiting, workspaces, totals }) {
  const tone = { indexed: "good", error: "bad", indexing: "warn" }[state] ?? "quiet";
  const held = totals.blobs_held
    ? t("index.held-value", { count: number(totals.blobs_held),
      size: number(totals.bytes_held / 1e6, 1) })
    : null;
  replace(element,
    facts([
      [t("request.state"), badge(tone, textOr(`index.state.${state}`, state))],
      [t("index.waiting"), waiting ? number(waiting) : null],
      [t("index.versions"), totals.blobs === undefined ? null : number(totals.blobs)],
      [t("index.chunks"), totals.chunks === undefined ? null : number(totals.chunks)],
      [t("index.held"), held],
      [t("index.mode"), mode === "auto" ? null : mode],
    ]),
    workspaces.length ? null : nothing("index", t("index.none"), t("index.none.about")));
}

function showFolder(view, space) {
  let card = view.cards.get(space.root);
  if (!card) {
    card = makeFolder(view, space.root);
    view.cards.set(space.root, card);
    view.folders.append(card.element);
  }
  const busy = BUSY.includes(space.phase);
  const done = percent(space.percentage / 100);
  replace(card.phase, badge(TONES[space.phase] ?? "warn",
    textOr(`index.phase.${space.phase}`, space.phase)));
  card.progress.hidden = !busy;
  card.progress.setAttribute("aria-valuenow", String(Math.round(space.percentage)));
  replace(card.progress, [...bar([["", 0, space.percentage / 100]]).children]);
  const skipped = SKIPPED.reduce((sum, name) => sum + (space.counters[name] ?? 0), 0);
  replace(card.numbers, busy
    ? t("index.doing", { percent: done, done: number(space.files_processed),
      files: number(space.files_tracked) })
    : dots(t("index.files", { count: number(space.files_tracked) }),
      skipped ? t("index.skipped-count", { count: number(skipped) }) : null));
  replace(card.note, space.note ? [badge("warn", t("index.note")), " ", space.note] : null);
  replace(card.counters, counters(space.counters));
}

function makeFolder(view, root) {
  const card = { phase: h("span"), numbers: h("p", { class: "quiet" }),
    note: h("p", { class: "note" }), counters: h("div"),
    progress: h("div", { class: "bar", role: "progressbar", "aria-valuemin": "0",
      "aria-valuemax": "100", "aria-label": t("index.progress", { root }) }) };
  const remove = askingButton(t("index.remove"), t("index.remove-sure"), () =>
    act(view, async () => {
      await call("index-remove", { root }, { signal: view.signal });
      announce(t("index.removed", { root }));
      await view.refresh();
      document.querySelector("h1").focus(); // the button is gone
    }));
  card.element = toolSection(root, [card.phase, remove], card.numbers, card.progress, card.note,
    skippedFiles(root, view.signal),
    h("details", {}, h("summary", {}, t("index.walk")), card.counters));
  return card;
}

const SKIPPED = ["ignored", "secret", "too_large", "not_plain_files", "not_accessible",
  "encoding_errors"];
const SECONDS = ["walk_seconds", "stat_seconds", "read_seconds", "calculate_seconds"];
const COUNTS = ["accepted", "mtime_hits", "mtime_misses", "names_probed", "files_read",
  "blobs_uploaded", ...SKIPPED];

function counters(values) {
  return facts([
    ...COUNTS.map((name) => [t(`index.counter.${name}`), number(values[name])]),
    ...SECONDS.map((name) => [t(`index.counter.${name}`), duration(values[name])]),
  ]);
}

function allActions(view) {
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
    entryForm({ class: "inline" }, () => act(view, add),
      h("label", { for: "index-folder" }, t("index.add-label")),
      h("div", { class: "row" }, field, h("button", {}, t("index.add")))),
    askingButton(t("index.rebuild"), t("index.rebuild-sure"), () => act(view, rebuild)));
}

const VECTORS = { complete: "good", failed: "bad", off: "quiet" };

// Return a section, and `load(background)`: it tells whether vectors are being made.
function vectorsPart(signal) {
  const body = h("div");
  const element = section(t("index.vectors"), body);
  element.hidden = true; // until something is known of them
  const load = async (background) => {
    let isFilling = false;
    await attempt(body, signal, async () => {
      const vectors = await call("index-vectors", {}, { signal, background });
      replace(body, describe(vectors));
      isFilling = vectors.state === "filling";
    });
    element.hidden = false;
    return isFilling;
  };
  return { element, load };
}

function describe(vectors) {
  const share = vectors.chunks
    ? t("index.vectors-of", { done: number(vectors.embedded), chunks: number(vectors.chunks) })
    : null;
  return [
    vectors.error ? errorBox({ message: vectors.error }) : null,
    facts([
      [t("request.state"), badge(VECTORS[vectors.state] ?? "warn",
        textOr(`vectors.${vectors.state}`, vectors.state))],
      [t("request.model"), vectors.model],
      [t("index.vectors-host"), vectors.host],
      [t("index.vectors-done"), share],
      [t("index.vectors-refused"), vectors.refused ? number(vectors.refused) : null],
      [t("index.vectors-note"), vectors.note],
    ])];
}
