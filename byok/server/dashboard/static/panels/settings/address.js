// The address of an upstream, or of the official service, as this page shows it. A key is
// stored for the address that its owner sees, or not at all (R7).

const OFFICIAL = ["routing", "official", "base_url"];

// Return {shown, used, usual}: the address with the changes that are not saved, the one in
// force, and the one that counts where none is entered; "" is none. `name` is that of a
// key, such as openai/work.
export function addressesOf(draft, name) {
  if (name === "official") return { ...valuesOf(draft, OFFICIAL), usual: "" };
  const [upstream] = name.split("/");
  const { presets } = draft.form;
  const kind = presets.some((one) => one.name === upstream) ? upstream : "";
  const own = valuesOf(draft, ["upstreams", upstream, "base_url"]);
  const type = valuesOf(draft, ["upstreams", upstream, "type"], kind);
  const addressOf = (preset) => presets.find((one) => one.name === preset)?.address ?? "";
  const usual = addressOf(type.shown);
  return { shown: own.shown || usual, used: own.used || addressOf(type.used), usual };
}

// Return the origin of an address, "" if it is none.
export function originOf(address) {
  try {
    return new URL(address).origin;
  } catch {
    return "";
  }
}

function valuesOf(draft, path, unset = "") {
  const field = draft.field(path) ?? { path, value: unset };
  const isOwn = !field.fixed && !field.locked && !field.odd;
  const isSet = "given" in field || draft.isChanged(path);
  const shown = isOwn && isSet ? draft.shown(field) ?? unset : field.value;
  return { shown, used: field.value };
}
