// The upstreams: a row for each with its key, its settings folded; adding one, removing one.

import { upstreamCures } from "../../cures.js";
import {
  askingButton, badge, button, dot, formButton, h, lineField, openForm, replace,
} from "../../dom.js";
import { withSettings } from "../../requests.js";
import { t, textOr } from "../../texts.js";
import { upstreamState } from "../../upstream-state.js";
import { addressesOf, originOf } from "./address.js";
import { fieldRow, groupedOptions, kindGroups } from "./fields.js";

const COMMON = ["type", "base_url", "model", "temperature", "max_tokens", "system_prompt"];
const NAME = /^[a-z0-9][a-z0-9_-]{0,31}$/;

// Return the row of an upstream; `keys` gives the lines of its keys, and `unfolded` names the parts
// that are shown.
export function upstreamRow(draft, upstream, keys, unfolded) {
  const { name, fields } = upstream;
  const row = h("li", { "data-upstream": name, "data-part": name });
  if (draft.removes(name)) {
    const undo = () => draft.setRemoved(name, false);
    row.append(h("div", { class: "row" }, h("span", { class: "grow row" }, h("strong", {}, name),
      badge("bad", t("settings.removed"))), button(t("settings.undo"), "little", undo)));
    return row;
  }
  const part = `${name} settings`;
  const isOpen = unfolded.includes(part)
    || fields.some(({ path }) => draft.fault(path) || draft.isChanged(path));
  const type = fields.find(({ path }) => path[2] === "type").value;
  const kind = draft.form.presets.find((one) => one.name === type)?.title
    ?? textOr(`type.${type}`, type);
  row.append(h("div", {}, h("div", { class: "row tight" }, h("strong", {}, name),
    type && type !== name ? h("span", { class: "tag" }, kind) : null),
  h("div", { class: "quiet small" }, addressesOf(draft, name).used)), h("div", { class: "state" }),
  ...keyNames(upstream).map((one) => keys.line(one)),
  h("details", { open: isOpen, "data-part": part }, h("summary", { class: "button little",
    "aria-label": t("settings.change-of", { name }) }, t("settings.change-it")),
  settingsOf(draft, upstream)));
  noteOrigin(draft, upstream, row);
  return row;
}

// Return whether an upstream answers; if it does not, why, and what to do. What is done with its key
// stands beside that.
export function stateLine(one) {
  const { tone, state } = upstreamState(one);
  const line = h("p", { class: "small quiet" }, dot(tone), " ", state);
  if (tone !== "bad") return line;
  const links = upstreamCures(one);
  return [line, one.failure ? null : h("p", { class: "small" },
    withSettings(one.cures?.[0] ?? "", one.name)),
  links.filter(({ hash }) => !hash.startsWith("#/settings/key/"))];
}

function settingsOf(draft, upstream) {
  const { name } = upstream;
  const rows = upstream.fields.map((field) => [field, fieldRow(draft, field)]);
  const rare = rows.filter(([field]) => !COMMON.includes(field.path[2]));
  const inUse = rare.some(([field]) => "given" in field || draft.fault(field.path)
    || draft.shown(field) !== undefined);
  return [
    h("div", { class: "fields" }, rows.filter(([field]) => COMMON.includes(field.path[2]))
      .map(([, row]) => row)),
    h("details", { open: inUse, "data-part": `${name} more` }, h("summary", {}, t("settings.more")),
      h("div", { class: "fields" }, rare.map(([, row]) => row))),
    upstream.in_file ? askingButton(t("settings.remove", { name }),
      t("settings.remove.sure", { name }), () => draft.setRemoved(name, true)) : null,
  ];
}

function keyNames({ name, key_names }) {
  if (!key_names.length) return [name];
  return key_names.filter((label) => !label.startsWith("env:")).map((label) => `${name}/${label}`);
}

// Show the address that counts where none is entered. A stored key belongs to one address
// (R7): say so as soon as another one is entered.
function noteOrigin(draft, upstream, row) {
  const field = row.querySelector("[data-name$='.base_url']");
  const note = h("p", { class: "note", role: "status" });
  field.append(note);
  const input = field.querySelector("input"); // none if the address is fixed
  const check = () => {
    const { shown, used, usual } = addressesOf(draft, upstream.name);
    if (input) input.placeholder = usual;
    const [before, after] = [originOf(used), originOf(shown)];
    replace(note, before && after && before !== after ? t("settings.key.moves", { before }) : null);
  };
  for (const event of ["input", "change"]) row.addEventListener(event, check);
  check();
}

// Ask for a new upstream, perhaps of the kind that is `wanted`: `add({name, type, address, key,
// vault})` saves and tries it, and raises what went wrong. `keys` tells whether a key can be stored.
export async function openAddition(form, wanted, add, keys, signal) {
  const { kind, name, address, place, key } = additionFields(form.presets);
  if (form.presets.some((one) => one.name === wanted)) kind.value = wanted;
  const names = new Set(form.upstreams.map((one) => one.name));
  const preset = () => form.presets.find((one) => one.name === kind.value);
  const chose = () => {
    const { title, variable, address: usual } = preset() ?? {};
    name.value = names.has(kind.value) ? "" : kind.value;
    place.hidden = Boolean(usual);
    address.required = !place.hidden;
    key.required = Boolean(variable);
    key.placeholder = t(`settings.add.${variable ? "needs-key" : "no-key"}`, { name: title });
    storage.show();
  };
  const run = async () => {
    const wrong = !NAME.test(name.value) ? "settings.name.bad"
      : names.has(name.value) ? "settings.name.taken" : "";
    if (wrong) {
      name.focus();
      throw new Error(t(wrong));
    }
    await add({ name: name.value, type: kind.value === name.value ? "" : kind.value,
      address: place.hidden ? "" : address.value.trim(), key: key.disabled ? "" : key.value,
      vault: storage.usesVault() });
  };
  const label = (field, text) => h("label", { for: field.id }, t(text));
  const keyLabel = label(key, "settings.key");
  const storage = keys.storage(() => keyOf(preset(), name.value), t("settings.add.keyring"), key,
    keyLabel);
  name.addEventListener("input", storage.show);
  kind.addEventListener("change", chose);
  chose();
  const fields = [label(kind, "settings.kind"), kind, label(name, "settings.name"), name, place,
    keyLabel, key, storage.place];
  if (await openForm(t("settings.add"), formButton(t("settings.add.do")), fields, run, signal)) {
    keys.lead(name.value);
  }
}

// Return what gives an upstream its key already: that of its vendor whatever it is called, else one
// that has its name in it.
function keyOf(preset, name) {
  const { key_from: source, variable, name: usual } = preset ?? {};
  return source && (source === variable || name === usual) ? { source, from: source } : null;
}

// Return what an upstream is added by; `place` holds the address with its label.
function additionFields(presets) {
  const kind = h("select", { id: "add-kind" },
    h("option", { value: "" }, t("settings.by-address")), groupedOptions(kindGroups(presets)));
  const name = lineField({ id: "add-name", maxlength: 32, required: true });
  const address = lineField({ id: "add-address", type: "url", placeholder: "https://host/v1",
    maxlength: 2000 });
  const key = lineField({ id: "add-key", type: "password", maxlength: 600 });
  const place = h("div", {}, h("label", { for: "add-address" }, t("editors.address")), address);
  return { kind, name, address, place, key };
}
