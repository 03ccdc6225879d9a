// The upstreams: a card for each, with its key; adding one, and removing one.

import { badge, h, replace } from "../../dom.js";
import { t } from "../../texts.js";
import { addressesOf, originOf } from "./address.js";
import { fieldRow } from "./fields.js";

const COMMON = ["type", "base_url", "model", "temperature", "max_tokens", "system_prompt"];
const NAME = /^[a-z0-9][a-z0-9_-]{0,31}$/;

// Return the card of an upstream; `keys` gives the lines of its keys.
export function upstreamCard(draft, upstream, keys) {
  const { name } = upstream;
  const change = draft.upstreamChange(name);
  const title = h("h3", {}, name, " ", change?.remove ? badge("bad", t("settings.removed")) : null,
    change && !change.remove ? badge("warn", t("settings.new")) : null);
  const card = h("section", { class: "upstream", "data-upstream": name });
  if (change?.remove) {
    const undo = () => draft.setUpstream(name, null);
    card.append(title, h("button", { type: "button", on: { click: undo } }, t("settings.undo")));
    return card;
  }
  const rows = upstream.fields.map((field) => [field, fieldRow(draft, field, `models-of-${name}`)]);
  const rare = rows.filter(([field]) => !COMMON.includes(field.path[2]));
  const inUse = rare.some(([field]) => "given" in field || draft.fault(field.path)
    || draft.shown(field) !== undefined);
  card.append(title, ...keyLines(upstream, change, keys),
    h("div", { class: "fields" }, rows.filter(([field]) => COMMON.includes(field.path[2]))
      .map(([, row]) => row)),
    h("details", { open: inUse }, h("summary", {}, t("settings.more")),
      h("div", { class: "fields" }, rare.map(([, row]) => row))));
  noteOrigin(draft, upstream, card);
  if (upstream.in_file || change) card.append(removal(draft, name, change));
  return card;
}

function keyLines(upstream, change, keys) {
  if (change) return [h("p", { class: "quiet" }, t("settings.key.later"))];
  const labels = upstream.key_names.filter((label) => !label.startsWith("env:"));
  const names = upstream.key_names.length ? labels.map((label) => `${upstream.name}/${label}`)
    : [upstream.name];
  return names.map((name) => keys.line(name));
}

// Show the address that counts where none is entered. A stored key belongs to one address
// (R7): say so as soon as another one is entered.
function noteOrigin(draft, upstream, card) {
  const row = card.querySelector("[data-name$='.base_url']");
  const note = h("p", { class: "note", role: "status" });
  row.append(note);
  const input = row.querySelector("input"); // none if the address is fixed
  const check = () => {
    const { shown, used, usual } = addressesOf(draft, upstream.name);
    if (input) input.placeholder = usual;
    const [before, after] = [originOf(used), originOf(shown)];
    replace(note, before && after && before !== after ? t("settings.key.moves", { before }) : null);
  };
  for (const event of ["input", "change"]) card.addEventListener(event, check);
  check();
}

// Removing asks first; nothing happens before the change is saved.
function removal(draft, name, change) {
  const place = h("div", { class: "row" });
  const remove = () => draft.setUpstream(name, change ? null : { remove: true });
  const ask = () => {
    const sure = h("button", { type: "button", class: "danger", on: { click: remove } },
      t("settings.remove.do"));
    replace(place, t("settings.remove.sure", { name }), sure,
      h("button", { type: "button", on: { click: offer } }, t("cancel")));
    sure.focus();
  };
  const offer = () => {
    replace(place, h("button", { type: "button", class: "remove", on: { click: ask } },
      t("settings.remove", { name })));
    place.querySelector("button").focus();
  };
  replace(place, h("button", { type: "button", class: "remove", on: { click: ask } },
    t("settings.remove", { name })));
  return place;
}

// Return what adds an upstream.
export function addUpstream(draft) {
  const { presets, upstreams } = draft.form;
  const names = new Set([...upstreams.map((one) => one.name), ...draft.added]);
  const { kind, name, address, place } = addFields(presets);
  const fault = h("p", { class: "fault", role: "alert" });
  const chose = () => {
    const preset = presets.find((one) => one.name === kind.value);
    name.value = names.has(kind.value) ? "" : kind.value;
    place.hidden = Boolean(preset?.address);
    address.required = !place.hidden;
  };
  const submit = (event) => {
    event.preventDefault();
    const wrong = !NAME.test(name.value) ? "settings.name.bad"
      : names.has(name.value) ? "settings.name.taken" : "";
    replace(fault, wrong ? t(wrong) : null);
    if (wrong) return name.focus();
    add(draft, name.value, kind.value, place.hidden ? "" : address.value.trim());
  };
  kind.addEventListener("change", chose);
  chose();
  return h("details", { class: "add" },
    h("summary", {}, t("settings.add")),
    h("form", { on: { submit } },
      h("label", { for: "add-kind" }, t("settings.kind")), kind,
      h("label", { for: "add-name" }, t("settings.name")), name,
      place, fault, h("button", {}, t("settings.add.do"))));
}

// Return what an upstream is added by; `place` holds the address with its label.
function addFields(presets) {
  const kind = h("select", { id: "add-kind" },
    h("option", { value: "" }, t("settings.by-address")),
    presets.map((one) => h("option", { value: one.name }, one.name)));
  const name = h("input", { id: "add-name", autocomplete: "off", spellcheck: "false",
    maxlength: 32, required: true });
  const address = h("input", { id: "add-address", type: "url", autocomplete: "off",
    spellcheck: "false", placeholder: "https://host/v1", maxlength: 2000 });
  const place = h("div", {}, h("label", { for: "add-address" }, t("settings.address")), address);
  return { kind, name, address, place };
}

function add(draft, name, type, address) {
  draft.addUpstream(name, { type: type === name ? "" : type, base_url: address });
  document.querySelector(`[data-upstream="${name}"] input, [data-upstream="${name}"] select`)
    ?.focus();
}

// Return an upstream that is not in the file yet.
export function newUpstream(draft, name) {
  const isPreset = draft.form.presets.some((one) => one.name === name);
  const fields = draft.form.upstream_fields.map((field) => ({
    ...field,
    path: ["upstreams", name, ...field.path],
    value: field.path[0] === "type" && isPreset ? name : field.default,
  }));
  return { name, in_file: false, key_names: [], fields };
}
