// Where an error is cured, by its code or its group in the table of errors: the link that leads to
// that very setting, key or panel.

import { h } from "./dom.js";
import { pairOf, t } from "./texts.js";

// Each is the address behind `#/`, and the text that says what is done there. The upstream's name
// stands for {name}.
const settingOf = (name, does) => [`settings/set/upstreams.{name}.${name}`, `problems.do.${does}`];
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
const OF_MODEL = ["upstream_bad_messages", "upstream_bad_schema", "upstream_empty",
  "upstream_no_images", "upstream_no_memory", "upstream_no_tools", "upstream_remark",
  "upstream_tool_failed"];
for (const code of OF_MODEL) CURES[code] = ["models", "problems.do.model"];

// Tell whether an error is cured by another model, where this one was chosen.
export const isOfModel = (code) => CURES[code] === MODEL;

// Return the links that cure an error; `parts` are the upstreams that have it, each with `upstream`,
// its name, whether its key is `key_outside` of byok's stores, its address `at_vendor`, and the
// setting that the model is `named_in`.
export function cureLinks({ code, group }, parts, kind = "button little") {
  // The network is the cause where a vendor's own address has no name.
  if (code === "upstream_name" && parts.every((one) => one.at_vendor)) return [];
  const links = new Map(); // by where they lead
  for (const part of parts) {
    const [address, does] = isOfModel(code) && part.named_in
      ? [`settings/choose/${part.named_in}`, "problems.do.model"] : CURES[code] ?? CURES[group] ?? [];
    if (!address) continue;
    const isOfNobody = address.includes("{name}") && !part.upstream;
    const href = isOfNobody ? "settings"
      : address.replace("{name}", encodeURIComponent(part.upstream));
    if (!links.has(href)) links.set(href, { does, ...part });
  }
  return [...links].map(([href, { does, upstream, key_outside: isOutside }]) => h("a", {
    class: kind, href: `#/${href}`, "data-key": `cure ${code} ${upstream}` },
  pairOf(t(isOutside && does === KEY[1] ? "settings.key.from-where" : does),
    links.size > 1 && upstream)));
}

// Return the links that cure what an upstream fails of.
export const upstreamCures = (one, kind) => cureLinks(one, [{ ...one, upstream: one.name }], kind);
