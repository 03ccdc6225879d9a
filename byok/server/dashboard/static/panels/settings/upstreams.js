// The upstreams in the settings: a row for each with its key and its settings, and the dialog that
// adds one.

import { upstreamCures } from "../../cures.js";
import {
  badge, button, confirmButton, dot, formButton, h, lineField, openForm, replace,
} from "../../dom.js";
import { withSettingLinks } from "../../requests.js";
import { t, textOr } from "../../texts.js";
import { upstreamState } from "../../upstream-state.js";
import { addressesOf, originOf } from "./address.js";
import { fieldRow, groupedOptions, kindGroups } from "./fields.js";

const COMMON_FIELDS = ["type", "base_url", "model", "temperature", "max_tokens", "system_prompt"];
const NAME_PATTERN = /^[a-z0-9][a-z0-9_-]{0,31}$/;

// Return the row of an upstream. `keys` creates the lines of its keys, and `openParts` are the names
// of details that are open.
export function upstreamRow(draft, upstream, keys, openParts) {
  const { name, fields } = upstream;
  const row = h("li", { "data-upstream": name, "data-part": name });
  if (draft.isRemoved(name)) {
    const undo = () => draft.setRemoved(name, false);
    row.append(h("div", { class: "row" }, h("span", { class: "grow row" }, h("strong", {}, name),
      badge("bad", t("settings.removed"))), button(t("settings.undo"), "little", undo)));
    return row;
  }
  const part = `${name} settings`;
  const isOpen = openParts.includes(part)
    || fields.some(({ path }) => draft.faultOf(path) || draft.isChanged(path));
  const type = fields.find(({ path }) => path[2] === "type").value;
  const kind = draft.form.presets.find((preset) => preset.name === type)?.title
    ?? textOr(`type.${type}`, type);
  row.append(h("div", {}, h("div", { class: "row tight" }, h("strong", {}, name),
    type && type !== name ? h("span", { class: "tag" }, kind) : null),
  h("div", { class: "quiet small" }, addressesOf(draft, name).used)), h("div", { class: "state" }),
  ...keyNamesOf(upstream).map((keyName) => keys.line(keyName)),
  h("details", { open: isOpen, "data-part": part }, h("summary", { class: "button little",
    "aria-label": t("settings.change-of", { name }) }, t("settings.change-it")),
  fieldParts(draft, upstream)));
  followAddress(draft, upstream, row);
  return row;
}

// Return whether an upstream answers, and if it does not, why and what to do. Links to its key are
// left out, because its row has a button for that.
export function stateLine(upstream) {
  const { tone, state } = upstreamState(upstream);
  const line = h("p", { class: "small quiet" }, dot(tone), " ", state);
  if (tone !== "bad") return line;
  const links = upstreamCures(upstream);
  return [line, upstream.failure ? null : h("p", { class: "small" },
    withSettingLinks(upstream.cures?.[0] ?? "", upstream.name)),
  links.filter(({ hash }) => !hash.startsWith("#/settings/key/"))];
}

function fieldParts(draft, upstream) {
  const { name } = upstream;
  const rows = upstream.fields.map((field) => [field, fieldRow(draft, field)]);
  const rare = rows.filter(([field]) => !COMMON_FIELDS.includes(field.path[2]));
  const isInUse = rare.some(([field]) => "given" in field || draft.faultOf(field.path)
    || draft.shownValue(field) !== undefined);
  return [
    h("div", { class: "fields" }, rows.filter(([field]) => COMMON_FIELDS.includes(field.path[2]))
      .map(([, row]) => row)),
    h("details", { open: isInUse, "data-part": `${name} more` }, h("summary", {}, t("settings.more")),
      h("div", { class: "fields" }, rare.map(([, row]) => row))),
    upstream.in_file ? confirmButton(t("settings.remove", { name }),
      t("settings.remove.sure", { name }), () => draft.setRemoved(name, true)) : null,
  ];
}

function keyNamesOf({ name, key_names }) {
  if (!key_names.length) return [name];
  return key_names.filter((label) => !label.startsWith("env:")).map((label) => `${name}/${label}`);
}

// Show in the field of the address the one that is used if none is entered. A stored key belongs to
// one address (R7): show a note as soon as another one is entered.
function followAddress(draft, upstream, row) {
  const field = row.querySelector("[data-name$='.base_url']");
  const note = h("p", { class: "note", role: "status" });
  field.append(note);
  const input = field.querySelector("input"); // null if the address is fixed
  const check = () => {
    const { shown, used, usual } = addressesOf(draft, upstream.name);
    if (input) input.placeholder = usual;
    const [before, after] = [originOf(used), originOf(shown)];
    const isMoved = before && after && before !== after;
    replace(note, isMoved ? t("settings.key.moves", { before }) : null);
  };
  for (const event of ["input", "change"]) row.addEventListener(event, check);
  check();
}

// Let the user enter a new upstream, with `soughtKind` chosen if there is such a kind. `add({name,
// type, address, key, vault})` saves and tests it, or throws. `keys` knows where a key can be stored.
export async function openAddition(form, soughtKind, add, keys, signal) {
  const { kind, name, address, addressPart, key } = additionFields(form.presets);
  if (form.presets.some((preset) => preset.name === soughtKind)) kind.value = soughtKind;
  const names = new Set(form.upstreams.map((upstream) => upstream.name));
  const findPreset = () => form.presets.find((preset) => preset.name === kind.value);
  const onKind = () => {
    const { title, variable, address: usual } = findPreset() ?? {};
    name.value = names.has(kind.value) ? "" : kind.value;
    addressPart.hidden = Boolean(usual);
    address.required = !addressPart.hidden;
    key.required = Boolean(variable);
    key.placeholder = t(`settings.add.${variable ? "needs-key" : "no-key"}`, { name: title });
    storage.show();
  };
  const submit = async () => {
    const faultText = !NAME_PATTERN.test(name.value) ? "settings.name.bad"
      : names.has(name.value) ? "settings.name.taken" : "";
    if (faultText) {
      name.focus();
      throw new Error(t(faultText));
    }
    await add({ name: name.value, type: kind.value === name.value ? "" : kind.value,
      address: addressPart.hidden ? "" : address.value.trim(), key: key.disabled ? "" : key.value,
      vault: storage.usesVault() });
  };
  const label = (field, text) => h("label", { for: field.id }, t(text));
  const keyLabel = label(key, "settings.key");
  const storage = keys.storageChoice(() => knownKeyOf(findPreset(), name.value),
    t("settings.add.keyring"), key, keyLabel);
  name.addEventListener("input", storage.show);
  kind.addEventListener("change", onKind);
  onKind();
  const fields = [label(kind, "settings.kind"), kind, label(name, "settings.name"), name,
    addressPart, keyLabel, key, storage.element];
  const isAdded = await openForm(t("settings.add"), formButton(t("settings.add.do")), fields, submit,
    signal, storage.offer);
  if (isAdded) {
    keys.showAndTest(name.value);
  }
}

// Return the key that a new upstream would have already, or null: its vendor's variable, whatever its
// name is, or a source for the preset's own name.
function knownKeyOf(preset, name) {
  const { key_from: source, variable, name: usual } = preset ?? {};
  return source && (source === variable || name === usual) ? { source, from: source } : null;
}

// Return the fields of a new upstream; `addressPart` holds the address with its label.
function additionFields(presets) {
  const kind = h("select", { id: "add-kind" },
    h("option", { value: "" }, t("settings.by-address")), groupedOptions(kindGroups(presets)));
  const name = lineField({ id: "add-name", maxlength: 32, required: true });
  const address = lineField({ id: "add-address", type: "url", placeholder: "https://host/v1",
    maxlength: 2000 });
  const key = lineField({ id: "add-key", type: "password", maxlength: 600 });
  const addressPart = h("div", {}, h("label", { for: "add-address" }, t("editors.address")), address);
  return { kind, name, address, addressPart, key };
}
