// The settings: upstreams, common settings in words, then all others of the file, filtered by words.
// Changes are saved into the file, and take effect at once.

import { call } from "../api.js";
import { captureSection } from "../capture.js";
import {
  announce, attempt, button, commandBox, copyButton, emptyState, errorBox, flushSection, h, openDialog,
  replace, searchBox, searchField, showTools,
} from "../dom.js";
import { icon } from "../icons.js";
import { setAddress } from "../places.js";
import { createPoller, renderAgain } from "../refresh.js";
import { joinSentences, t, textOr } from "../texts.js";
import { createUpstreamLook } from "../upstream-state.js";
import { addressesOf } from "./settings/address.js";
import { ChangesBar, conflictBox, listDifferences, storeFaults } from "./settings/bar.js";
import { commonSection, isCommon } from "./settings/common.js";
import { Draft } from "./settings/draft.js";
import {
  fieldRow, focusFault, idOf, offerModels, openDetails, removeFields,
} from "./settings/fields.js";
import { fileOnlySection } from "./settings/file-only.js";
import { Keys } from "./settings/keys.js";
import { openRestart, restartBox } from "./settings/restart.js";
import { openAddition, stateLine, upstreamRow } from "./settings/upstreams.js";

const draft = new Draft(); // outlives the panel

// The panel's addresses after `#/settings/`: `find/WORDS` filters settings, `set/NAME` leads to one,
// `set/NAME/VALUE` enters a value there that is not saved yet, `choose/NAME` offers models for it,
// `key/NAME` asks for a key, `add` adds an upstream, and `add/KIND` one of that kind.
export async function open(root, [action, name, value], signal) {
  draft.adopt(await call("settings", {}, { signal }));
  const view = new SettingsView(root, signal, action === "find" ? name ?? "" : "", { name, value });
  view.render();
  signal.addEventListener("abort", () => {
    draft.onChange = () => {};
    if (draft.size) announce(t("settings.kept"));
  });
  const facts = view.loadFacts();
  if (action === "set" || action === "choose") view.showSetting(name, value);
  if (action === "key") view.enterKey(name, facts);
  if (["add", "key"].includes(action)) {
    setAddress("#/settings"); // so that neither a reload nor Back asks again
  }
  if (action === "add") view.add(name);
  if (action === "choose") await view.choose(name);
}

class SettingsView {
  constructor(root, signal, words, sought) {
    this.root = root;
    this.sought = sought; // {name, value} of the setting that the address leads to
    this.signal = signal;
    this.conflicts = []; // settings that somebody else has changed
    this.pollSoon = createPoller(signal);
    this.keys = new Keys(signal, draft);
    this.bar = new ChangesBar(draft, { save: () => this.save(),
      discard: () => this.discard(), signal });
    this.errorSlot = h("div");
    this.upstreams = h("ul", { class: "list upstreams" });
    this.upstreamStates = [];
    this.loadStates = createUpstreamLook((states) => {
      this.upstreamStates = states;
      this.showStates();
    }, this.errorSlot, signal);
    addEventListener("byok-upstreams", () => this.updateStates(), { signal });
    this.capture = captureSection(signal);
    this.shownRemovals = ""; // `draft.removals` when the upstreams were rendered last
    this.finder = searchField(t("settings.find"), () => this.filter(),
      { id: "find-setting", value: words });
    this.emptyNote = emptyState("search", t("settings.unfound"), t("settings.unfound.about"));
  }

  // Render everything again.
  render() {
    removeFields();
    this.openParts = openPartsIn(this.root);
    const { form } = draft;
    draft.onChange = () => {
      draft.faults.clear();
      if (this.shownRemovals !== draft.removals) this.renderUpstreams();
      this.bar.refresh();
    };
    this.renderUpstreams();
    showTools(fileName(form), button(t("settings.restart.do"), "", () => openRestart()));
    replace(this.errorSlot);
    replace(this.root,
      searchBox(this.finder, "search"),
      this.errorSlot, formMessage(form),
      this.conflicts.length
        ? conflictBox(draft, this.conflicts, (row) => this.dropChange(row)) : null,
      restartBox(form), this.emptyNote, this.upstreamsSection(), commonSection(draft),
      this.capture,
      h("section", { class: "card", "data-part": "all" }, h("h2", {}, t("settings.all")),
        form.groups.map((group) => this.groupDetails(group))),
      fileOnlySection(form, this.openParts.includes("file"), this.sought), this.bar.element);
    this.filter();
    this.bar.refresh();
    this.pollSoon(form.error && (() => this.reloadForm()));
  }

  // Load the file's settings again until it has changed: the user mends its error in an editor.
  async reloadForm() {
    const form = await call("settings", {}, { signal: this.signal, background: true })
      .catch((error) => this.showFailure(error));
    if (!form) return;
    const isSame = ["revision", "error"].every((name) => form[name] === draft.form[name]);
    if (isSame || draft.size) return this.pollSoon(() => this.reloadForm());
    draft.adopt(form);
    this.renderInPlace([]);
    this.loadFacts();
  }

  upstreamsSection() {
    const add = button([icon("plus"), t("settings.add")], "primary little", () => this.add());
    const element = flushSection(t("overview.upstreams"), draft.form.blocked ? null : add,
      draft.form.upstreams.length ? null : h("p", { class: "empty" }, t("settings.no-upstream")),
      this.upstreams);
    element.dataset.part = "upstreams";
    return element;
  }

  renderUpstreams() {
    this.shownRemovals = draft.removals;
    removeFields(["upstreams"]);
    const openParts = openPartsIn(this.upstreams);
    const hadFocus = this.upstreams.contains(document.activeElement);
    replace(this.upstreams, draft.form.upstreams.map((upstream) =>
      upstreamRow(draft, upstream, this.keys, openParts)));
    if (hadFocus) this.upstreams.querySelector("button")?.focus();
    this.showStates();
  }

  showStates() {
    for (const upstream of this.upstreamStates) {
      const row = this.upstreams.querySelector(`[data-upstream="${CSS.escape(upstream.name)}"]`);
      const slot = row?.querySelector(".state"); // not there if the upstream is to be removed
      if (slot) renderAgain(slot, stateLine(upstream));
    }
  }

  groupDetails({ name, fields }) {
    const rare = fields.filter((field) => !isCommon(field));
    const rows = rare.map((field) => fieldRow(draft, field));
    const count = rare.filter((field) => draft.shownValue(field) !== undefined).length;
    const isOpen = this.openParts.includes(name)
      || rare.some(({ path }) => draft.faultOf(path) || draft.isChanged(path));
    const isOfficial = name === "official" && fields[0].value; // it has an address
    return h("details", { open: isOpen, "data-part": name },
      h("summary", {}, textOr(`settings.group.${name}`, name), " ",
        count ? h("span", { class: "quiet" }, t("settings.count", { count })) : null),
      isOfficial ? this.keys.line("official") : null, h("div", { class: "fields" }, rows));
  }

  // Show only settings with the entered words in their names, explanations (in the page's language
  // and in English) or the titles of their sections.
  filter() {
    const words = this.finder.value.trim();
    const matches = createMatcher(words);
    for (const row of this.root.querySelectorAll(".field")) {
      const section = row.closest("[data-part]").querySelector(":scope > :is(h3, summary)");
      const texts = [section, ...row.querySelectorAll("label, strong, span, p, option")]
        .map((element) => element?.textContent);
      row.hidden = !matches([row.dataset.name, row.dataset.about, ...texts].join(" "));
    }
    const isFound = (part) => [part, ...part.querySelectorAll(".field, [data-upstream]")]
      .some((element) => (element.dataset.upstream
        ? matches(`${element.dataset.upstream} key ${t("settings.key")}`)
        : element.matches(".field:not([hidden])")));
    for (const part of this.root.querySelectorAll("[data-part]")) {
      part.hidden = Boolean(words) && !isFound(part);
      if (part.matches("details")) {
        showFound(part, Boolean(words && part.querySelector(".field:not([hidden])")));
      }
    }
    this.emptyNote.hidden = !words || [...this.root.querySelectorAll("[data-part]")]
      .some((part) => !part.hidden);
  }

  // Load keys, models, and the states of upstreams.
  async loadFacts() {
    const { signal } = this;
    this.models = attempt(this.errorSlot, signal, async () =>
      offerModels(await call("catalog", {}, { signal, background: true })));
    await Promise.all([this.keys.load(), this.models, this.updateStates()]);
  }

  updateStates() {
    return attempt(this.errorSlot, this.signal, () => this.loadStates({ background: true }));
  }

  // Offer models for a setting, unless the user has moved the focus meanwhile.
  async choose(name) {
    await this.models;
    const row = document.activeElement.closest(`[data-name="${CSS.escape(name ?? "")}"]`);
    if (this.signal.aborted || !row) return;
    setAddress(`#/settings/set/${name}`); // so that Back does not offer them again
    row.querySelector(".control button")?.click();
  }

  // Lead to a setting, and enter a value if there is one. If the setting is of an upstream that is
  // gone, show the settings of others with that name.
  showSetting(name, value) {
    const row = this.root.querySelector(`[data-name="${CSS.escape(name ?? "")}"]`);
    if (!row) {
      this.finder.value = name?.split(".").at(-1) ?? "";
      return this.filter();
    }
    const entry = row.querySelector("input, select, textarea, button"); // null if it is fixed
    openDetails(row);
    if (value && entry && !entry.disabled) {
      entry.value = value;
      entry.dispatchEvent(new Event("input", { bubbles: true }));
    }
    row.classList.add("sought");
    row.scrollIntoView({ block: "center" });
    entry?.focus({ preventScroll: true });
  }

  // Let the user add an upstream, which is saved and tested at once. Other changes stay unsaved.
  add(soughtKind) {
    if (draft.form.blocked) return;
    openAddition(draft.form, soughtKind, async ({ name, type, address, key, vault }) => {
      const path = ["upstreams", name];
      const changes = [{ path, value: {} }];
      if (type) changes.push({ path: [...path, "type"], value: type });
      if (address) changes.push({ path: [...path, "base_url"], value: address });
      const body = { revision: draft.form.revision, changes };
      const result = await call("settings-save", body, { signal: this.signal })
        .catch(async (error) => {
          if (error.code === "settings_changed") await this.compare();
          throw error;
        });
      const { errors } = result;
      if (errors.length) throw new Error(joinSentences(...errors.map(({ message }) => message)));
      draft.adopt(result.form);
      this.render();
      await this.loadFacts();
      if (key) await this.keys.store(name, key, addressesOf(draft, name).used, vault);
      announce(t("settings.added", { name }));
    }, this.keys, this.signal);
  }

  // Ask for a key. One of a vendor without an upstream is entered with the upstream, any other that
  // the file names elsewhere is stored by a command.
  async enterKey(name, facts) {
    const lines = [...this.keys.lines.keys()];
    const line = lines.find((one) => one === name || one.startsWith(`${name}/`));
    if (line) return this.keys.enter(line);
    if (draft.form.presets.some((preset) => preset.name === name)) return this.add(name);
    await facts;
    const row = this.keys.rows?.find(({ upstream }) => upstream === name);
    if (row && !this.signal.aborted) openDialog(t("settings.key.enter", { name }), commandBox(row.cure));
  }

  async save() {
    const changes = draft.changeList;
    const { restarts } = draft;
    const body = { revision: draft.form.revision, changes };
    try {
      this.showSaved(await call("settings-save", body, { signal: this.signal }), changes, restarts);
    } catch (error) {
      if (error.code === "settings_changed") return this.compare();
      this.showFailure(error);
    }
  }

  showSaved(result, changes, restarts) {
    if (result.errors.length) return this.showFaults(result.errors);
    draft.forget(changes);
    this.conflicts = [];
    draft.adopt(result.form);
    this.renderInPlace(changes);
    this.loadFacts();
    if (restarts.length && !result.form.error) {
      return openRestart({ form: result.form, names: restarts });
    }
    announce(t(result.form.error ? "settings.saved.unused" : "settings.saved"));
  }

  showFailure(error) {
    if (!this.signal.aborted) replace(this.errorSlot, errorBox(error));
  }

  showFaults(errors) {
    storeFaults(draft, errors);
    this.render();
    focusFault();
  }

  // Somebody else has changed the file: show what differs, with the user's changes on top.
  async compare() {
    const before = draft.form;
    try {
      draft.adopt(await call("settings", {}, { signal: this.signal }));
    } catch (error) {
      return this.showFailure(error);
    }
    this.conflicts = listDifferences(before, draft.form);
    this.render();
    this.focusOn(".conflict");
    announce(t("settings.conflict"));
  }

  dropChange(row) {
    draft.drop(row.path);
    this.render();
    this.focusOn(".conflict button");
  }

  discard() {
    const changes = draft.changeList;
    draft.clear();
    this.conflicts = [];
    this.renderInPlace(changes);
    announce(t("settings.discarded"));
  }

  // Render everything again, while the user stays where they are.
  renderInPlace(changes) {
    const top = scrollY;
    this.render();
    document.getElementById(idOf(changes.at(-1)?.path ?? []))?.focus({ preventScroll: true });
    scrollTo(0, top);
  }

  // Focus an element, or the search field if there is no such element.
  focusOn(selector) {
    (this.root.querySelector(selector) ?? this.finder).focus();
  }
}

// Return a function that checks whether each of the words is the beginning of a word of a text. In
// Chinese, which has no spaces, a word may stand anywhere.
function createMatcher(words) {
  const patterns = words.split(/\s+/u).map((word) =>
    new RegExp(`(?<![a-z])${word.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&")}`, "iu"));
  return (text) => patterns.every((pattern) => pattern.test(text));
}

// Open details in which a setting was found, and close them again when the search is over.
function showFound(part, isFound) {
  const isOpen = isFound || part.querySelector(".changed");
  if (isOpen ? part.open : !("found" in part.dataset)) return;
  part.toggleAttribute("data-found", isOpen);
  part.open = isOpen;
}

const openPartsIn = (root) => [...root.querySelectorAll("details[open]:not([data-found])")]
  .map((one) => one.dataset.part);

const fileName = ({ file }) => h("span", { class: "row tight quiet" },
  h("code", { title: file }, file.split(/[/\\]/u).at(-1)), copyButton(file, t("settings.file")));

function formMessage({ file, exists, blocked, error }) {
  if (blocked || error) {
    return errorBox({ message: t(blocked ? "settings.blocked" : "settings.not-in-force"),
      hint: blocked || error });
  }
  return exists ? null
    : h("p", { class: "quiet" }, t("settings.no-file"), " ", h("code", {}, file));
}
