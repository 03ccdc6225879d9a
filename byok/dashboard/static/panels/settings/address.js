// The address of an upstream, or of the official service, as this page shows it. A key is
// stored for the address that its owner sees, or not at all (R7).

const OFFICIAL = ["routing", "official", "base_url"];

// Return {shown, used}: the address with the changes that are not saved, and the one in
// force; "" is none. `name` is that of a key, such as openai/work.
export function addressesOf(draft, name) {
  if (name === "official") return valuesOf(draft, OFFICIAL, "");
  const [upstream] = name.split("/");
  const isPreset = draft.form.presets.some((one) => one.name === upstream);
  const own = valuesOf(draft, ["upstreams", upstream, "base_url"], "");
  const type = valuesOf(draft, ["upstreams", upstream, "type"], isPreset ? upstream : "");
  const usual = (kind) => draft.form.presets.find((one) => one.name === kind)?.address ?? "";
  return { shown: own.shown || usual(type.shown), used: own.used || usual(type.used) };
}

// Return the origin of an address, "" if it is none.
export function originOf(address) {
  try {
    return new URL(address).origin;
  } catch {
    return "";
  }
}

function valuesOf(draft, path, unset) {
  const field = draft.field(path);
  if (!field) return { shown: unset, used: unset };
  const isOwn = !field.fixed && !field.locked && !field.odd;
  const ofFile = "given" in field ? draft.shown(field) ?? unset : field.value;
  const shown = draft.isChanged(path) ? draft.shown(field) ?? unset : ofFile;
  return { shown: isOwn ? shown : field.value, used: field.value };
}
