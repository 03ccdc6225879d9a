// The command palette: panels, actions, conversations, models, vendors, settings and errors, found
// by words. The texts `words.*` are further words by which people look for an entry. A request is
// found by the beginning of its id. What the daemon knows is loaded when the palette opens.

import { call } from "./api.js";
import { openCapture } from "./capture.js";
import { closeWhenLeft, h, replace } from "./dom.js";
import { amountSpent } from "./format.js";
import { icon } from "./icons.js";
import { liveRequestIds } from "./live.js";
import { openRestart } from "./panels/settings/restart.js";
import { conversationAddress, costOf, fullName, modelAddress, problemAddress } from "./requests.js";
import { inBoth, keysMatching, LANGUAGES, t } from "./texts.js";

const MAX_RESULTS = 12; // shown in the palette
const MAX_CHOICES = 200; // shown in a choice, whose entries are of one kind
const MIN_ID_LENGTH = 4; // characters of an id that find a request

// Open the palette. `panels` are the names of panels, `looks` the functions {setTheme,
// changeLanguage}.
export function openPalette(panels, looks) {
  if (document.querySelector("dialog[open]")) return;
  const palette = new Palette(t("palette.title"),
    [...panelEntries(panels).map(byWords), ...actionEntries(looks), ...settingEntries().map(byWords)],
    MAX_RESULTS, (words) => settingsSearch(words, t("palette.none")));
  for (const loader of [loadRequests, loadConversations]) palette.add(loader, 1);
  for (const loader of [loadModels, loadVendors]) palette.add(loader);
}

// Return an entry that is shown only when some words are typed.
const byWords = (entry) => ({ ...entry, isByWords: true });

// Let the user choose one of `entries`; `fallback(words)` is offered if none has the words.
export const openChoice = (title, entries, fallback) =>
  new Palette(title, entries, MAX_CHOICES, fallback, "choose");

// Return an entry. `run` is a function, or an address, whose words find the entry in any language;
// `words` are further words that find it.
export const createEntry = (group, text, picture, run, note = "", words = "") =>
  ({ group, text, picture, run, note, words });

export function go(address) {
  if (location.hash === address) dispatchEvent(new Event("hashchange"));
  else location.hash = address;
}

const panelEntries = (panels) => panels.map((name) =>
  createEntry(t("palette.go"), t(`${name}.title`), name, `#/${name}`, "", inBoth(`words.${name}`)));

const actionEntries = ({ setTheme, changeLanguage }) => [
  ["editors.title", "overview", "#/overview/editors"],
  ["settings.add", "plus", "#/settings/add"],
  ["palette.model", "models", "#/settings/choose/routing.default"],
  ["palette.update", "models", "#/models//update"],
  ["palette.key", "key", "#/settings/find/key"],
  ["usage.costliest", "usage", "#/usage/costliest"],
  ["usage.slowest", "clock", "#/usage/slowest"],
  ["index.why", "file", "#/index/why"],
  ["palette.capture", "live", openCapture],
  ["settings.restart.do", "settings", () => openRestart()],
  ...["auto", "light", "dark"].map((name) => ["palette.theme", "settings", () => setTheme(name),
    t(`theme.${name}`)]),
  ...LANGUAGES.map(([name, title]) => ["palette.language", "settings", () => changeLanguage(name),
    title]),
].map(([key, picture, run, name]) => ({ ...createEntry(t("palette.do"), t(key, { name }), picture, run,
  "", inBoth(`words.${key}`)), isByWords: Boolean(name) || key === "palette.update" }));

async function loadConversations(options) {
  const answer = await call("conversations", { count: 50 }, options);
  return answer.conversations.map((sums) =>
    createEntry(t("conversations.title"), fullName(sums), "conversations",
      conversationAddress(sums.conversation), amountSpent(costOf(sums))));
}

async function loadModels(options) {
  const answer = await call("catalog", {}, options);
  return answer.models.map(({ id }) =>
    createEntry(t("models.title"), id, "models", modelAddress(id)));
}

// Return an entry for each vendor, which adds it as an upstream.
async function loadVendors(options) {
  const { presets } = await call("settings", {}, options);
  return presets.map(({ name, title }) => createEntry(t("palette.do"),
    t("pair", { name: t("settings.add"), value: title }), "plus", `#/settings/add/${name}`));
}

// Return the errors of the journal, found by their codes, and the requests that the page shows,
// found by their ids.
async function loadRequests(options) {
  const { groups, mended } = await call("problems", {}, options);
  const codes = new Map(groups.filter(({ code }) => code).map((group) => [group.code, group]));
  const requests = groups.flatMap(({ examples }) => examples).concat(mended);
  const addresses = new Map(requests.map((request) => [request.request_id, request.conversation
    ? `${conversationAddress(request.conversation)}/${request.number}` : problemAddress(request.error)]));
  for (const id of liveRequestIds()) addresses.set(id, `#/live/${encodeURIComponent(id)}`);
  return [...[...codes].map(([code, { what }]) => createEntry(t("problems.title"),
    what?.replaceAll("`", "") ?? code, "problems", problemAddress(code))),
  ...[...addresses].map(([id, address]) =>
    ({ ...createEntry(t("request.kind"), id, "live", address), id }))];
}

// Return the settings that have a name in words.
const settingEntries = () => keysMatching(/^setting\..*(?<!\.about)$/u).map((key) =>
  createEntry(t("settings.title"), t(key), "settings", `#/settings/set/${key.replace("setting.", "")}`,
    "", inBoth(`words.${key}`)));

// Return the entry that searches the settings for `words`.
const settingsSearch = (words, text) => createEntry(t("settings.title"), text, "settings",
  `#/settings/find/${encodeURIComponent(words)}`);

class Palette {
  constructor(title, entries, maxHits, fallback, enterLabel = "open") {
    Object.assign(this, { entries, maxHits, fallback });
    this.hits = [];
    this.current = 0;
    this.list = h("ul", { role: "listbox", id: "found", "aria-label": t("palette.found") });
    this.input = h("input", { role: "combobox", "aria-expanded": "true", "aria-controls": "found",
      "aria-label": title, placeholder: title, autocomplete: "off",
      on: { input: () => { this.current = 0; this.show(); }, keydown: (event) => this.press(event) } });
    this.dialog = h("dialog", { class: "palette", "aria-label": title },
      this.input, this.list, h("div", { class: "tips" },
        [["↑↓", "move"], ["Enter", enterLabel], ["Esc", "close"]].map(([key, name]) =>
          h("span", {}, h("kbd", {}, key), " ", t(`palette.${name}`)))));
    this.signal = closeWhenLeft(this.dialog);
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    document.body.append(this.dialog);
    this.show();
    this.dialog.showModal();
    this.input.focus();
  }

  // Add the entries that `load(options)` resolves to, of which the first `shown` need no words; if
  // the daemon refuses, they are left out.
  async add(load, shown = 0) {
    const { signal } = this;
    try {
      const entries = await load({ signal, background: true });
      this.entries.push(...entries.slice(0, shown), ...entries.slice(shown).map(byWords));
      this.show();
    } catch (error) {
      if (!signal.aborted && !error.status) reportError(error);
    }
  }

  show() {
    const words = this.input.value.toLowerCase().split(/\s+/u).filter(Boolean);
    const matches = ({ id, group, text, run, words: keywords, isByWords }) => {
      if (!words.length) return !isByWords && !id;
      if (id) return words[0].length >= MIN_ID_LENGTH && id.toLowerCase().startsWith(words[0]);
      const address = run instanceof Function ? "" : run;
      const allText = `${group} ${text} ${keywords} ${address}`.toLowerCase();
      return words.every((word) => allText.includes(word));
    };
    this.hits = this.entries.filter(matches).slice(0, this.maxHits);
    if (!this.hits.length) this.hits = [this.fallback(this.input.value)];
    this.current = Math.min(this.current, this.hits.length - 1);
    replace(this.list, this.hits.map((hit, index) => [
      !hit.group || hit.group === this.hits[index - 1]?.group ? null
        : h("li", { class: "group", role: "presentation" }, hit.group),
      this.optionOf(hit, index)]));
    this.mark();
  }

  optionOf(hit, index) {
    return h("li", { role: "option", id: `option-${index}`, "aria-selected": "false",
      on: { click: () => this.run(hit), mousemove: () => { this.current = index; this.mark(); } } },
    icon(hit.picture), h("span", { class: "cut" }, hit.text),
    hit.note ? h("span", { class: "small quiet" }, hit.note) : null);
  }

  mark() {
    for (const option of this.list.querySelectorAll("[role='option']")) {
      option.setAttribute("aria-selected", String(option.id === `option-${this.current}`));
    }
    this.input.setAttribute("aria-activedescendant", `option-${this.current}`);
    this.list.querySelector(`#option-${this.current}`).scrollIntoView({ block: "nearest" });
  }

  press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.current = (this.current + step + this.hits.length) % this.hits.length;
      this.mark();
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.run(this.hits[this.current]);
    }
  }

  run(hit) {
    this.dialog.close();
    if (hit.run instanceof Function) hit.run();
    else go(hit.run);
  }
}
