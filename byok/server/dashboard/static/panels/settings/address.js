// The address of an upstream, or of the official service, as this page shows it. A key is only
// stored for the address that its owner sees (R7).

const OFFICIAL_PATH = ["routing", "official", "base_url"];

// Return {shown, used, usual}: the address with unsaved changes, the one in force, and the one that
// is used if none is entered; "" is none. `name` is the name of a key, such as openai/work.
export function addressesOf(draft, name) {
  if (name === "official") return { ...fieldValues(draft, OFFICIAL_PATH), usual: "" };
  const [upstream] = name.split("/");
  const { presets } = draft.form;
  const kind = presets.some((preset) => preset.name === upstream) ? upstream : "";
  const ownAddress = fieldValues(draft, ["upstreams", upstream, "base_url"]);
  const type = fieldValues(draft, ["upstreams", upstream, "type"], kind);
  const addressOf = (preset) => presets.find(({ name: other }) => other === preset)?.address ?? "";
  const usual = addressOf(type.shown);
  return { shown: ownAddress.shown || usual, used: ownAddress.used || addressOf(type.used), usual };
}

// Return the origin of an address, "" if the text is no address.
export function originOf(address) {
  try {
    return new URL(address).origin;
  } catch {
    return "";
  }
}

// Return {shown, used}: a field's value with unsaved changes, and the one in force.
function fieldValues(draft, path, unset = "") {
  const field = draft.field(path) ?? { path, value: unset };
  const isEditable = !field.fixed && !field.locked && !field.odd;
  const isSet = "given" in field || draft.isChanged(path);
  const shown = isEditable && isSet ? draft.shownValue(field) ?? unset : field.value;
  return { shown, used: field.value };
}
