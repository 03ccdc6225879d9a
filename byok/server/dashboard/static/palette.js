// What the page can show and do, found by words: panels, looks, conversations, models, vendors,
// settings and errors; by those of people, too, which `words.` of the texts have. A request is found
// by how its id begins. What the daemon tells is asked for when the palette opens.

import { call } from "./api.js";
import { openCapture } from "./capture.js";
import { h, replace, whileOpen } from "./dom.js";
import { spent } from "./format.js";
import { icon } from "./icons.js";
import { liveRequests } from "./live.js";
import { openRestart } from "./panels/settings/restart.js";
import { addressOf, costOf, modelAddress, nameOf, problemOf } from "./requests.js";
import { inBoth, keysLike, LANGUAGES, t } from "./texts.js";

const MOST = 12; // results, where there are many kinds
const MOST_ALIKE = 200;
const SHORTEST = 4; // characters of an id

// Open the palette; `panels` are their names, and `looks` change how the page looks.
export function openPalette(panels, looks) {
  if (document.querySelector("dialog[open]")) return;
  const palette = new Palette(t("palette.title"), [...placesOf(panels), ...actionsOf(looks), ...settings()],
    MOST,
    (words) => inSettings(words, t("palette.none")));
  for (const ask of [conversations, models, vendors, requests]) palette.add(ask);
}

// Let one of `entries` be chosen; `other(words)` is offered where none has the words.
export const openChoice = (title, entries, other) =>
  new Palette(title, entries, MOST_ALIKE, other, "choose");

// An entry: {group, text, picture, run, note, words}; `run` is an address, whose words find it in
// any language, or a function; `words` find it, too.
const entry = (group, text, picture, run, note = "", words = "") =>
  ({ group, text, picture, run, note, words });

function go(address) {
  if (location.hash === address) dispatchEvent(new Event("hashchange"));
  else location.hash = address;
}

const placesOf = (panels) => panels.map((name) =>
  entry(t("palette.go"), t(`${name}.title`), name, `#/${name}`, "", inBoth(`words.${name}`)));

const actionsOf = ({ setTheme, changeLanguage }) => [
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
].map(([key, picture, run, name]) => entry(t("palette.do"), t(key, { name }), picture, run, "",
  inBoth(`words.${key}`)));

async function conversations(options) {
  const told = await call("conversations", { count: 50 }, options);
  return told.conversations.map((one) => entry(t("conversations.title"), nameOf(one),
    "conversations", addressOf(one.conversation), spent(costOf(one))));
}

async function models(options) {
  const told = await call("catalog", {}, options);
  return told.models.map(({ id }) =>
    entry(t("models.title"), id, "models", modelAddress(id)));
}

// Who may serve models, each to be added.
async function vendors(options) {
  const { presets } = await call("settings", {}, options);
  return presets.map(({ name, title }) => entry(t("palette.do"),
    t("pair", { name: t("settings.add"), value: title }), "plus", `#/settings/add/${name}`));
}

// Errors by their codes, and the requests that the page shows, by their ids.
async function requests(options) {
  const { groups, mended } = await call("problems", {}, options);
  const codes = new Map(groups.filter(({ code }) => code).map((group) => [group.code, group]));
  const shown = groups.flatMap(({ examples }) => examples).concat(mended);
  const addresses = new Map(shown.map((one) => [one.request_id, one.conversation
    ? `${addressOf(one.conversation)}/${one.number}` : problemOf(one.error)]));
  for (const id of liveRequests()) addresses.set(id, `#/live/${encodeURIComponent(id)}`);
  return [...[...codes].map(([code, { what }]) => entry(t("problems.title"),
    what?.replaceAll("`", "") ?? code, "problems", problemOf(code))),
  ...[...addresses].map(([id, address]) => ({ ...entry(t("request.kind"), id, "live", address), id }))];
}

// The settings that have a name in words.
const settings = () => keysLike(/^setting\..*(?<!\.about)$/u).map((key) =>
  entry(t("settings.title"), t(key), "settings", `#/settings/set/${key.replace("setting.", "")}`,
    "", inBoth(`words.${key}`)));

// Return what searches all settings for `words`.
const inSettings = (words, text) => entry(t("settings.title"), text, "settings",
  `#/settings/find/${encodeURIComponent(words)}`);

class Palette {
  constructor(title, entries, most, other, does = "open") {
    Object.assign(this, { entries, most, other });
    this.hits = [];
    this.at = 0;
    this.list = h("ul", { role: "listbox", id: "found", "aria-label": t("palette.found") });
    this.input = h("input", { role: "combobox", "aria-expanded": "true", "aria-controls": "found",
      "aria-label": title, placeholder: title, autocomplete: "off",
      on: { input: () => { this.at = 0; this.show(); }, keydown: (event) => this.press(event) } });
    this.dialog = h("dialog", { class: "palette", "aria-label": title },
      this.input, this.list, h("div", { class: "tips" },
        [["↑↓", "move"], ["Enter", does], ["Esc", "close"]].map(([key, name]) =>
          h("span", {}, h("kbd", {}, key), " ", t(`palette.${name}`)))));
    this.signal = whileOpen(this.dialog);
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    document.body.append(this.dialog);
    this.show();
    this.dialog.showModal();
    this.input.focus();
  }

  // What cannot be told now is not offered.
  async add(ask) {
    const { signal } = this;
    try {
      this.entries.push(...await ask({ signal, background: true }));
      this.show();
    } catch (error) {
      if (!signal.aborted && !error.status) reportError(error);
    }
  }

  show() {
    const words = this.input.value.toLowerCase().split(/\s+/u).filter(Boolean);
    const fits = ({ id, group, text, run, words: others }) => (id
      ? words[0]?.length >= SHORTEST && id.toLowerCase().startsWith(words[0]) : words.every((word) =>
      `${group} ${text} ${others} ${run instanceof Function ? "" : run}`.toLowerCase().includes(word)));
    this.hits = this.entries.filter(fits).slice(0, this.most);
    if (!this.hits.length) this.hits = [this.other(this.input.value)];
    this.at = Math.min(this.at, this.hits.length - 1);
    replace(this.list, this.hits.map((hit, place) => [
      !hit.group || hit.group === this.hits[place - 1]?.group ? null
        : h("li", { class: "group", role: "presentation" }, hit.group),
      this.optionOf(hit, place)]));
    this.mark();
  }

  optionOf(hit, place) {
    return h("li", { role: "option", id: `option-${place}`, "aria-selected": "false",
      on: { click: () => this.run(hit), mousemove: () => { this.at = place; this.mark(); } } },
    icon(hit.picture), h("span", { class: "cut" }, hit.text),
    hit.note ? h("span", { class: "small quiet" }, hit.note) : null);
  }

  mark() {
    for (const option of this.list.querySelectorAll("[role='option']")) {
      option.setAttribute("aria-selected", String(option.id === `option-${this.at}`));
    }
    this.input.setAttribute("aria-activedescendant", `option-${this.at}`);
    this.list.querySelector(`#option-${this.at}`).scrollIntoView({ block: "nearest" });
  }

  press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.at = (this.at + step + this.hits.length) % this.hits.length;
      this.mark();
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.run(this.hits[this.at]);
    }
  }

  run(hit) {
    this.dialog.close();
    if (hit.run instanceof Function) hit.run();
    else go(hit.run);
  }
}
