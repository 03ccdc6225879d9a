// Links to where an error can be cured: the setting, key or panel, by the error's code or by its
// group in byok's table of errors.

import { h } from "./dom.js";
import { pairOf, t } from "./texts.js";

// A cure is [address, label]: the address after `#/`, in which {name} is replaced by the upstream's
// name, and the key of the text that says what is done there.
const settingOf = (name, label) => [`settings/set/upstreams.{name}.${name}`, `problems.do.${label}`];
const ADDRESS = settingOf("base_url", "address");
const DIALECT = settingOf("dialect", "dialect");
const LONGER = settingOf("max_tokens", "longer");
const FALLBACK = ["settings/set/routing.fallback.chat", "problems.do.fallback"];
const KEY = ["settings/key/{name}", "settings.key.replace"];
const MODEL = ["models/byok:{name}:", "problems.do.models"]; // if no setting names it
const CURES = {
  keys: KEY,
  reach: ADDRESS,
  address: ADDRESS,
  limits: FALLBACK,
  index: ["index", "problems.do.index"],
  machine: ["settings", "problems.do.settings"],
  cap_reached: ["settings/find/caps", "problems.do.cap"],
  context_length: MODEL,
  key_missing: ["settings/key/{name}", "settings.key.set"],
  model_not_found: MODEL,
  no_template: ["settings/find/completion", "problems.do.settings"],
  too_many_streams: ["settings/find/limits.streams", "problems.do.settings"],
  upstream_bad_parameter: ["settings/find/{name}.", "problems.do.upstream"],
  upstream_cut: LONGER,
  upstream_event_too_large: LONGER,
  upstream_failed: FALLBACK,
  upstream_not_found: MODEL,
  upstream_protocol: DIALECT,
  upstream_quota: KEY,
  upstream_region: ["settings/add", "settings.add"],
  upstream_timeout: settingOf("timeout", "timeout"),
  upstream_wrong_api: DIALECT,
};
const CURED_BY_OTHER_MODEL = ["upstream_bad_messages", "upstream_bad_schema", "upstream_empty",
  "upstream_no_images", "upstream_no_memory", "upstream_no_tools", "upstream_remark",
  "upstream_tool_failed"];
for (const code of CURED_BY_OTHER_MODEL) CURES[code] = ["models", "problems.do.model"];

// Return whether an error is cured by choosing another model where this one was chosen.
export const isCuredByOtherModel = (code) => CURES[code] === MODEL;

// Return the links that cure an error. `parts` are the upstreams that have it, each with its name
// `upstream`, whether its key is outside byok's stores (`key_outside`), whether its address is the
// vendor's own (`at_vendor`), and the setting that names the model (`named_in`).
export function cureLinks({ code, group }, parts, kind = "button little") {
  // If the host name of a vendor's own address is not found, the network is the cause.
  if (code === "upstream_name" && parts.every((part) => part.at_vendor)) return [];
  const links = new Map(); // by address
  for (const part of parts) {
    const [address, label] = isCuredByOtherModel(code) && part.named_in
      ? [`settings/choose/${part.named_in}`, "problems.do.model"] : CURES[code] ?? CURES[group] ?? [];
    if (!address) continue;
    const hasNoUpstream = address.includes("{name}") && !part.upstream;
    const href = hasNoUpstream ? "settings"
      : address.replace("{name}", encodeURIComponent(part.upstream));
    if (!links.has(href)) links.set(href, { label, ...part });
  }
  return [...links].map(([href, { label, upstream, key_outside: isOutside }]) => h("a", {
    class: kind, href: `#/${href}`, "data-key": `cure ${code} ${upstream}` },
  pairOf(t(isOutside && label === KEY[1] ? "settings.key.from-where" : label),
    links.size > 1 && upstream)));
}

// Return the links that cure the error of an upstream.
export const upstreamCures = (upstream, kind) =>
  cureLinks(upstream, [{ ...upstream, upstream: upstream.name }], kind);
