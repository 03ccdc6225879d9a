// One setting: its name, what it is entered by, what it does, and what is wrong with it.

import { call } from "../../api.js";
import { badge, button, dots, h, lineField, optionsOf, replace } from "../../dom.js";
import { short, visible } from "../../format.js";
import { openChoice } from "../../palette.js";
import { priceOf } from "../../requests.js";
import { aboutSetting, listed, pairOf, t, textOr } from "../../texts.js";
import { keyOf } from "./draft.js";

export const idOf = (path) => `set-${path.join("-")}`;
const writers = new Map(); // what shows a fault, by field
let catalog = { models: [], default: "", jobs: {}, fails: [] }; // as far as it is known

const COMPATIBLE = "openai_compatible";
// Who people ask for first; the others follow by their names.
const FIRST = ["anthropic", "openai", "gemini", "openrouter", "deepseek"];

// Return who may serve models, as groups of options.
export function kindGroups(presets) {
  const group = (name, fits, order) => [t(`settings.kinds.${name}`),
    presets.filter(fits).sort(order).map((one) => [one.name, one.title])];
  const isFirst = ({ name }) => FIRST.includes(name);
  return [group("local", ({ local }) => local), group("first", isFirst, (one, other) =>
    FIRST.indexOf(one.name) - FIRST.indexOf(other.name)),
  group("others", (one) => !one.local && !isFirst(one), (one, other) =>
    one.title.localeCompare(other.title))];
}

// Let fields offer these models.
export function offerModels(known) {
  catalog = known;
  markFields();
}

// Return the row of a field; with `words` it has a name in words, one line that explains it,
// and perhaps a unit.
export function fieldRow(draft, field, words = null) {
  const id = idOf(field.path);
  const fault = h("p", { class: "fault", id: `${id}-fault` });
  const isBlocked = draft.form.blocked; // so it is not known what the file has
  const control = field.fixed || field.locked || isBlocked ? fixedValue(field)
    : makeControl(draft, field, { id, isFlip: words && field.kind === "switch",
      "aria-describedby": `${id}-about ${id}-fault` });
  const isEntered = control.matches("input, select, textarea");
  const own = field.path.at(-1);
  const name = words?.name ?? (field.path[0] === "upstreams" ? textOr(`upstream.${own}`, own) : own);
  const isNamed = !words && name !== own && { class: "named" };
  const head = h("div", { class: "row" },
    isEntered ? h("label", { for: id, ...isNamed }, name) : h("strong", isNamed, name),
    isNamed ? h("code", { class: "quiet small" }, own) : null,
    field.restart ? badge("quiet", t("settings.restart")) : null);
  const usual = h("div");
  const explained = h("div", { class: "quiet", id: `${id}-about` },
    h("p", {}, words?.about ?? about(field)), usual);
  const more = [emptyBox(draft, field, control), oddNote(field)];
  const entry = [control, isEntered && isOfModels(field) ? chooser(field, control) : null];
  const row = h("div", { class: `field ${words ? "setting" : ""} ${field.kind}`,
    "data-name": field.path.join("."), "data-about": field.description },
  words ? [h("div", {}, head, explained, h("code", { class: "name" }, field.path.join("."))),
    h("div", { class: "control" }, entry, words.unit ? h("span", { class: "quiet small nowrap" },
      words.unit) : null), more]
    : [head, h("div", { class: "control" }, entry), more, explained], fault);
  const mark = () => {
    const message = draft.fault(field.path);
    replace(fault, message ?? (isOfModels(field) ? strangeModel(field, draft.shown(field)) : null));
    const model = isBlocked || draft.shown(field) ? "" : usualModel(field);
    replace(usual, model ? h("p", {}, t("settings.uses"), " ", h("code", {}, model)) : null);
    if (isEntered) control.setAttribute("aria-invalid", String(Boolean(message)));
    row.classList.toggle("changed", draft.isChanged(field.path));
  };
  mark();
  writers.set(keyOf(field.path), mark);
  return row;
}

const isOfModels = ({ kind }) => kind.startsWith("model");

// Return the models that a field may hold; what an upstream has is named without it.
function modelsFor({ path: [section, name] }) {
  const isOwn = section === "upstreams";
  return catalog.models.filter(({ upstream }) => !isOwn || upstream === name)
    .map((one) => ({ ...one, name: isOwn ? one.model : one.id }));
}

// Return the model that is used because the file has none for a field, as far as it is known.
function usualModel(field) {
  const [, section, job] = field.path;
  if ("given" in field || field.path[0] !== "routing") return "";
  return section === "default" ? catalog.default : section === "models" ? catalog.jobs[job] : "";
}

// Return the button by which a model is chosen, or one more where a field holds several.
const chooser = (field, control) => button(t("settings.choose"), "",
  () => openModels(field, control));

// Let one of an upstream's models be the default of chats.
export async function chooseDefault(draft, upstream, signal) {
  const field = draft.field(["routing", "default"]);
  offerModels(await call("catalog", {}, { signal }));
  openModels(field, document.getElementById(idOf(field.path)), upstream);
}

function priceText(model) {
  const price = priceOf(model);
  return /\d$/u.test(price) ? t("models.price", { price }) : price;
}

// Offer the models for a field, or those of one `upstream`.
function openModels(field, control, upstream = "") {
  const choose = (name) => {
    const isList = control.matches("textarea");
    control.value = [isList ? control.value.trim() : "", name].filter(Boolean).join("\n");
    control.dispatchEvent(new Event("input", { bubbles: true }));
    control.focus();
  };
  const isUsed = ({ name }) => [name, name.replace(/^byok:/, "")]
    .includes(control.value || usualModel(field));
  // The one in use comes first, so that Enter alone changes nothing.
  const models = modelsFor(field).filter((one) => !upstream || one.upstream === upstream)
    .sort((one, other) => isUsed(other) - isUsed(one));
  const notes = (one) => dots(isUsed(one) && t("settings.in-use"),
    one.facts.window && t("request.cache-tokens", { tokens: short(one.facts.window) }),
    priceText(one));
  openChoice(t("models.filter"), models.map((one) => ({
    group: pairOf(one.upstream, catalog.fails.includes(one.upstream) && t("live.state.failed"))
      .join(""), text: one.model, picture: "models", run: () => choose(one.name),
    note: notes(one) })),
  (words) => ({ picture: "models", run: () => choose(words),
    text: words ? t("pair", { name: t("settings.choose"), value: words }) : t("none") }));
}

// Say that no upstream lists a model; it may be right all the same.
function strangeModel(field, value) {
  const known = modelsFor(field);
  const isListed = (name) => known.some((one) => one.name === name
    || one.name.replace(/^byok:/, "") === name || one.name.endsWith(`:${name}`));
  const strange = [value].flat().filter((one) => one && known.length && !isListed(String(one)));
  return strange.length ? t("settings.strange-model", { names: listed(strange) }) : null;
}

// Show at each field what is wrong with it now.
export function markFields() {
  for (const mark of writers.values()) mark();
}

// Forget the rows below a path, which are made anew.
export function forgetFields(path = []) {
  for (const key of writers.keys()) {
    if (keyOf(JSON.parse(key).slice(0, path.length)) === keyOf(path)) writers.delete(key);
  }
}

export const hasField = (path) => writers.has(keyOf(path));

// Put the focus on the first field that is wrong.
export function focusFault() {
  const entry = document.querySelector(".settings [aria-invalid=true]");
  if (!entry) return;
  unfold(entry);
  entry.focus();
}

// Unfold all that an element is folded in.
export function unfold(element) {
  for (let one = element.closest("details"); one; one = one.parentElement.closest("details")) {
    one.open = true;
  }
}

// Return what a setting does, in the page's language if that is known.
function about(field) {
  const [section, , own] = field.path;
  if (section !== "upstreams") return aboutSetting(field.path.join("."), field.description);
  return textOr(`upstream.${own}.about`, aboutSetting(own, field.description), { name:
    t("setting.routing.default") });
}

export function written(value) {
  if (typeof value === "boolean") return t(value ? "settings.on" : "settings.off");
  return Array.isArray(value) ? value.join(", ") || "[]" : String(value);
}

// Return the value that counts; of any free port, the one that it is.
const inForce = ({ path, value }) =>
  (path.join(".") === "server.port" && value === 0 ? location.port : value);

// Return a value that the page does not change, with the reason.
function fixedValue(field) {
  const why = field.locked ? t("settings.locked")
    : field.fixed && t("settings.fixed", { by: field.fixed });
  const value = field.locked ? null : h("code", {}, written(inForce(field) ?? "") || "–");
  return h("p", { class: "fixed" }, value, " ", why);
}

// A value may be of another kind, or look like something else than it is.
function oddNote(field) {
  if (field.odd) return h("p", { class: "fault" }, t("settings.odd", { kind: field.given }));
  if (field.given === undefined || field.locked) return null;
  const text = written(field.given);
  const isNumber = field.kind === "number" || field.kind === "integer";
  if (isNumber && typeof field.given !== "number") {
    return note(t("settings.unusable"), text);
  }
  if (visible(text) === text || field.kind === "long") return null;
  return note(t("settings.unseen"), text);
}

const note = (why, text) =>
  h("p", { class: "fault" }, why, " ", h("code", {}, text.slice(0, 200)));

function makeControl(draft, field, { isFlip, ...attributes }) {
  if (isFlip) return flip(draft, field, attributes);
  const makers = { choice, switch: choice, long: area, list: area, models: area };
  return (makers[field.kind] ?? line)(draft, field, attributes);
}

// A switch that is on or off: not to have it is to have what counts then.
function flip(draft, field, { id, ...attributes }) {
  const inFile = "given" in field;
  const usual = inFile ? field.default : field.value;
  const change = ({ target: { checked } }) =>
    draft.set(field, checked === usual && !inFile ? undefined : checked);
  return h("input", { id, type: "checkbox", role: "switch", class: "switch", ...attributes,
    checked: draft.shown(field) ?? usual, on: { change } });
}

// Return the groups of values that may be chosen, each with its title.
function groupsOf({ form }, { path, kind, choices }) {
  if (kind === "switch") return [["", [true, false].map((value) => [value, written(value)])]];
  const own = (names) => ["", names.map((value) => [value, value])];
  if (path[0] !== "upstreams" || path[2] !== "type") return [own(choices.filter((value) => value !== ""))];
  const isPreset = (value) => form.presets.some(({ name }) => name === value);
  return [["", [[COMPATIBLE, t("settings.by-address")]]], ...kindGroups(form.presets),
    own(choices.filter((value) => value !== COMPATIBLE && !isPreset(value)))];
}

export const groupedOptions = (groups, chosen) => groups.map(([label, options]) => {
  const list = optionsOf(options, chosen);
  return label ? h("optgroup", { label }, list) : list;
});

function choice(draft, field, { id, ...attributes }) {
  const groups = groupsOf(draft, field);
  const titles = new Map(groups.flatMap(([, options]) => options));
  const values = [...titles.keys()];
  const shown = draft.shown(field);
  const known = shown === undefined || shown === "" || titles.has(shown);
  const usual = "given" in field ? field.default : field.value;
  const unset = usual === null || usual === "" ? t("settings.unset")
    : t("settings.unset.usual", {
      value: textOr(`type.${usual}`, titles.get(usual) ?? written(usual)) });
  const change = (event) => {
    const at = event.target.selectedIndex;
    draft.set(field, at === 0 ? undefined : values[at - 1]);
  };
  return h("select", { id, ...attributes, on: { change } },
    h("option", { selected: shown === undefined }, unset),
    groupedOptions(groups, shown),
    known ? null : h("option", { selected: true, disabled: true }, written(shown)));
}

function area(draft, field, { id, ...attributes }) {
  const isList = field.kind !== "long";
  const input = (event) => {
    const text = event.target.value;
    const lines = text.split("\n").map((row) => row.trim()).filter(Boolean);
    if (isList) draft.set(field, lines.length || draft.isEmptyList(field) ? lines : undefined);
    else draft.set(field, text === "" ? undefined : text);
  };
  const shown = draft.shown(field);
  const rows = isList || !draft.shown(field) ? 2 : 5;
  const element = h("textarea", { id, ...attributes, rows, "data-list": isList, spellcheck: "false",
    maxlength: isList ? null : 20000, placeholder: placeholder(field), on: { input } });
  element.value = Array.isArray(shown) ? shown.join("\n") : String(shown ?? "");
  return element;
}

function line(draft, field, { id, ...attributes }) {
  const isNumber = field.kind === "number" || field.kind === "integer";
  const step = field.kind === "integer" ? 1 : "any";
  const least = field.least ?? (field.kind === "integer" && "above" in field ? field.above + 1
    : field.above);
  const input = (event) => {
    const element = event.target;
    if (!element.validity.valid) return draft.refuse(field, element.validationMessage, element.value);
    if (element.value === "") return draft.set(field, undefined);
    draft.set(field, isNumber ? element.valueAsNumber : element.value);
  };
  const element = lineField({ id, ...attributes, ...isNumber
    ? { type: "number", min: least, max: field.most, step } : { type: "text", maxlength: 2000 },
  placeholder: placeholder(field), on: { input } });
  element.value = draft.invalid.get(keyOf(field.path))?.text ?? String(draft.shown(field) ?? "");
  return element;
}

// A list that has a default can be empty all the same: not to have it is to have the default.
function emptyBox(draft, field, control) {
  if (!field.default?.length || !control.matches("textarea[data-list]")) return null;
  const box = h("input", { type: "checkbox", checked: draft.isEmptyList(field) });
  const show = () => {
    box.checked = draft.isEmptyList(field);
    control.placeholder = box.checked ? "" : placeholder(field);
  };
  box.addEventListener("change", () => {
    control.value = "";
    draft.set(field, box.checked ? [] : undefined);
    show();
  });
  control.addEventListener("input", show);
  show();
  return h("label", { class: "choice" }, box, t("settings.empty"));
}

// Return the value that counts where the file says nothing.
function placeholder(field) {
  const value = "given" in field ? field.default : inForce(field);
  const isNone = value === null || value === undefined || value.length === 0;
  return isNone ? null : written(value);
}
