// The row of a setting: its name, its control, its explanation, and its fault.

import { call } from "../../api.js";
import { badge, button, h, joinWithDots, lineField, optionsOf, replace } from "../../dom.js";
import { shortNumber, visible } from "../../format.js";
import { openChoice } from "../../palette.js";
import { priceOf } from "../../requests.js";
import { aboutSetting, joinList, pairOf, t, textOr } from "../../texts.js";
import { keyOf } from "./draft.js";

const COMPATIBLE_TYPE = "openai_compatible";
// The vendors that are listed first; the others follow by their names.
const FIRST_KINDS = ["anthropic", "openai", "gemini", "openrouter", "deepseek"];
const markersByKey = new Map(); // functions that show the state of a shown field, by its key
let catalog = { models: [], default: "", jobs: {}, fails: [] }; // the models, once they are loaded

export const idOf = (path) => `set-${path.join("-")}`;

// Return the kinds of upstreams as groups of options.
export function kindGroups(presets) {
  const group = (name, isMember, order) => [t(`settings.kinds.${name}`),
    presets.filter(isMember).sort(order).map((preset) => [preset.name, preset.title])];
  const isFirst = ({ name }) => FIRST_KINDS.includes(name);
  return [group("local", ({ local }) => local), group("first", isFirst, (preset, other) =>
    FIRST_KINDS.indexOf(preset.name) - FIRST_KINDS.indexOf(other.name)),
  group("others", (preset) => !preset.local && !isFirst(preset), (preset, other) =>
    preset.title.localeCompare(other.title))];
}

// Store the catalogue of models, and update the fields that offer models.
export function offerModels(answer) {
  catalog = answer;
  refreshMarks();
}

// Return the row of a field. With `wording`, {name, about, unit}, it is one of the common settings,
// whose name is in words.
export function fieldRow(draft, field, wording = null) {
  const id = idOf(field.path);
  const faultNote = h("p", { class: "fault", id: `${id}-fault` });
  const isBlocked = draft.form.blocked; // the file cannot be read
  const control = field.fixed || field.locked || isBlocked ? fixedValue(field)
    : createControl(draft, field, { id, isFlip: wording && field.kind === "switch",
      "aria-describedby": `${id}-about ${id}-fault` });
  const isEntered = control.matches("input, select, textarea");
  const ownName = field.path.at(-1);
  const name = wording?.name
    ?? (field.path[0] === "upstreams" ? textOr(`upstream.${ownName}`, ownName) : ownName);
  const isNamed = !wording && name !== ownName && { class: "named" };
  const head = h("div", { class: "row" },
    isEntered ? h("label", { for: id, ...isNamed }, name) : h("strong", isNamed, name),
    isNamed ? h("code", { class: "quiet small" }, ownName) : null,
    field.restart ? badge("quiet", t("settings.restart")) : null);
  const usualNote = h("div");
  const explanationBox = h("div", { class: "quiet", id: `${id}-about` },
    h("p", {}, wording?.about ?? explanation(field)), usualNote);
  const notes = [emptyBox(draft, field, control), oddNote(field)];
  const entry = [control, isEntered && isOfModels(field) ? chooseButton(field, control) : null];
  const row = h("div", { class: `field ${wording ? "setting" : ""} ${field.kind}`,
    "data-name": field.path.join("."), "data-about": field.description },
  wording ? [h("div", {}, head, explanationBox, h("code", { class: "name" }, field.path.join("."))),
    h("div", { class: "control" }, entry, wording.unit ? h("span", { class: "quiet small nowrap" },
      wording.unit) : null), notes]
    : [head, h("div", { class: "control" }, entry), notes, explanationBox], faultNote);
  const mark = () => {
    const message = draft.faultOf(field.path);
    replace(faultNote, message ?? (isOfModels(field) ? unlistedText(field, draft.shownValue(field)) : null));
    const model = isBlocked || draft.shownValue(field) ? "" : defaultModel(field);
    replace(usualNote, model ? h("p", {}, t("settings.uses"), " ", h("code", {}, model)) : null);
    if (isEntered) control.setAttribute("aria-invalid", String(Boolean(message)));
    row.classList.toggle("changed", draft.isChanged(field.path));
  };
  mark();
  markersByKey.set(keyOf(field.path), mark);
  return row;
}

const isOfModels = ({ kind }) => kind.startsWith("model");

// Return the models that a field may hold. Fields of an upstream name its models without it.
function modelsFor({ path: [section, name] }) {
  const isOwn = section === "upstreams";
  return catalog.models.filter(({ upstream }) => !isOwn || upstream === name)
    .map((model) => ({ ...model, name: isOwn ? model.model : model.id }));
}

// Return the model that is used if the file has none for a field, as far as it is known.
function defaultModel(field) {
  const [, section, job] = field.path;
  if ("given" in field || field.path[0] !== "routing") return "";
  return section === "default" ? catalog.default : section === "models" ? catalog.jobs[job] : "";
}

// Return the button that lets the user choose a model, or one more if the field holds several.
const chooseButton = (field, control) => button(t("settings.choose"), "",
  () => openModels(field, control));

// Let the user choose one of an upstream's models as the default of chats.
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
    .includes(control.value || defaultModel(field));
  // The model in use comes first, so that Enter alone changes nothing.
  const models = modelsFor(field).filter((model) => !upstream || model.upstream === upstream)
    .sort((one, other) => isUsed(other) - isUsed(one));
  const noteOf = (model) => joinWithDots(isUsed(model) && t("settings.in-use"),
    model.facts.window && t("request.cache-tokens", { tokens: shortNumber(model.facts.window) }),
    priceText(model));
  openChoice(t("models.filter"), models.map((model) => ({
    group: pairOf(model.upstream, catalog.fails.includes(model.upstream) && t("live.state.failed"))
      .join(""), text: model.model, picture: "models", run: () => choose(model.name),
    note: noteOf(model) })),
  (words) => ({ picture: "models", run: () => choose(words),
    text: words ? t("pair", { name: t("settings.choose"), value: words }) : t("none") }));
}

// Return a note about models that no upstream lists, or null. They may be right all the same.
function unlistedText(field, value) {
  const models = modelsFor(field);
  const isListed = (name) => models.some((model) => model.name === name
    || model.name.replace(/^byok:/, "") === name || model.name.endsWith(`:${name}`));
  const unlisted = [value].flat().filter((model) => model && models.length && !isListed(String(model)));
  return unlisted.length ? t("settings.strange-model", { names: joinList(unlisted) }) : null;
}

// Show the current fault and state at each field.
export function refreshMarks() {
  for (const mark of markersByKey.values()) mark();
}

// Forget the rows of fields below a path, because they are created again.
export function removeFields(path = []) {
  for (const key of markersByKey.keys()) {
    if (keyOf(JSON.parse(key).slice(0, path.length)) === keyOf(path)) markersByKey.delete(key);
  }
}

export const hasField = (path) => markersByKey.has(keyOf(path));

export function focusFault() {
  const entry = document.querySelector(".settings [aria-invalid=true]");
  if (!entry) return;
  openDetails(entry);
  entry.focus();
}

// Open all details around an element.
export function openDetails(element) {
  const details = element.closest("details");
  if (!details) return;
  details.open = true;
  openDetails(details.parentElement);
}

// Return what a setting does, in the page's language if there is such a text.
function explanation(field) {
  const [section, , ownName] = field.path;
  if (section !== "upstreams") return aboutSetting(field.path.join("."), field.description);
  return textOr(`upstream.${ownName}.about`, aboutSetting(ownName, field.description), { name:
    t("setting.routing.default") });
}

export function valueText(value) {
  if (typeof value === "boolean") return t(value ? "settings.on" : "settings.off");
  return Array.isArray(value) ? value.join(", ") || "[]" : String(value);
}

// Return the value in force. For port 0, which is any free port, it is the port of this page.
const valueInForce = ({ path, value }) =>
  (path.join(".") === "server.port" && value === 0 ? location.port : value);

// Return a value that cannot be changed on the page, with the reason.
function fixedValue(field) {
  const reason = field.locked ? t("settings.locked")
    : field.fixed && t("settings.fixed", { by: field.fixed });
  const value = field.locked ? null : h("code", {}, valueText(valueInForce(field) ?? "") || "–");
  return h("p", { class: "fixed" }, value, " ", reason);
}

// Return a note about a value of the wrong kind, or with invisible characters; null for others.
function oddNote(field) {
  if (field.odd) return h("p", { class: "fault" }, t("settings.odd", { kind: field.given }));
  if (field.given === undefined || field.locked) return null;
  const text = valueText(field.given);
  const isNumber = field.kind === "number" || field.kind === "integer";
  if (isNumber && typeof field.given !== "number") {
    return valueNote(t("settings.unusable"), text);
  }
  if (visible(text) === text || field.kind === "long") return null;
  return valueNote(t("settings.unseen"), text);
}

const valueNote = (reason, text) =>
  h("p", { class: "fault" }, reason, " ", h("code", {}, text.slice(0, 200)));

function createControl(draft, field, { isFlip, ...attributes }) {
  if (isFlip) return switchControl(draft, field, attributes);
  const controls = { choice: choiceControl, switch: choiceControl, long: areaControl,
    list: areaControl, models: areaControl };
  return (controls[field.kind] ?? lineControl)(draft, field, attributes);
}

// Return a switch. It has no third state for a setting that the file does not have, so switching to
// the value that is in force then removes the change.
function switchControl(draft, field, { id, ...attributes }) {
  const inFile = "given" in field;
  const fallback = inFile ? field.default : field.value;
  const change = ({ target: { checked } }) =>
    draft.set(field, checked === fallback && !inFile ? undefined : checked);
  return h("input", { id, type: "checkbox", role: "switch", class: "switch", ...attributes,
    checked: draft.shownValue(field) ?? fallback, on: { change } });
}

// Return the values that may be chosen as groups, [title, options].
function choiceGroups({ form }, { path, kind, choices }) {
  if (kind === "switch") return [["", [true, false].map((value) => [value, valueText(value)])]];
  const plainGroup = (names) => ["", names.map((value) => [value, value])];
  if (path[0] !== "upstreams" || path[2] !== "type") {
    return [plainGroup(choices.filter((value) => value !== ""))];
  }
  const isPreset = (value) => form.presets.some(({ name }) => name === value);
  return [["", [[COMPATIBLE_TYPE, t("settings.by-address")]]], ...kindGroups(form.presets),
    plainGroup(choices.filter((value) => value !== COMPATIBLE_TYPE && !isPreset(value)))];
}

export const groupedOptions = (groups, chosen) => groups.map(([label, options]) => {
  const list = optionsOf(options, chosen);
  return label ? h("optgroup", { label }, list) : list;
});

function choiceControl(draft, field, { id, ...attributes }) {
  const groups = choiceGroups(draft, field);
  const titles = new Map(groups.flatMap(([, options]) => options));
  const values = [...titles.keys()];
  const shown = draft.shownValue(field);
  const isOffered = shown === undefined || shown === "" || titles.has(shown);
  const fallback = "given" in field ? field.default : field.value;
  const unset = fallback === null || fallback === "" ? t("settings.unset")
    : t("settings.unset.usual", {
      value: textOr(`type.${fallback}`, titles.get(fallback) ?? valueText(fallback)) });
  const change = (event) => {
    const index = event.target.selectedIndex;
    draft.set(field, index === 0 ? undefined : values[index - 1]);
  };
  return h("select", { id, ...attributes, on: { change } },
    h("option", { selected: shown === undefined }, unset),
    groupedOptions(groups, shown),
    isOffered ? null : h("option", { selected: true, disabled: true }, valueText(shown)));
}

function areaControl(draft, field, { id, ...attributes }) {
  const isList = field.kind !== "long";
  const input = (event) => {
    const text = event.target.value;
    const lines = text.split("\n").map((row) => row.trim()).filter(Boolean);
    if (isList) draft.set(field, lines.length || draft.isEmptyList(field) ? lines : undefined);
    else draft.set(field, text === "" ? undefined : text);
  };
  const shown = draft.shownValue(field);
  const rows = isList || !draft.shownValue(field) ? 2 : 5;
  const element = h("textarea", { id, ...attributes, rows, "data-list": isList, spellcheck: "false",
    maxlength: isList ? null : 20000, placeholder: placeholder(field), on: { input } });
  element.value = Array.isArray(shown) ? shown.join("\n") : String(shown ?? "");
  return element;
}

function lineControl(draft, field, { id, ...attributes }) {
  const isNumber = field.kind === "number" || field.kind === "integer";
  const step = field.kind === "integer" ? 1 : "any";
  const min = field.least ?? (field.kind === "integer" && "above" in field ? field.above + 1
    : field.above);
  const input = (event) => {
    const element = event.target;
    if (!element.validity.valid) return draft.refuse(field, element.validationMessage, element.value);
    if (element.value === "") return draft.set(field, undefined);
    draft.set(field, isNumber ? element.valueAsNumber : element.value);
  };
  const element = lineField({ id, ...attributes, ...isNumber
    ? { type: "number", min, max: field.most, step } : { type: "text", maxlength: 2000 },
  placeholder: placeholder(field), on: { input } });
  element.value = draft.invalid.get(keyOf(field.path))?.text ?? String(draft.shownValue(field) ?? "");
  return element;
}

// Return a checkbox that makes a list empty, if the list has a default: without the setting in the
// file, the default would be used. Null for other fields.
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

// Return the value that is used if the file has none, as a text.
function placeholder(field) {
  const value = "given" in field ? field.default : valueInForce(field);
  const isNone = value === null || value === undefined || value.length === 0;
  return isNone ? null : valueText(value);
}
