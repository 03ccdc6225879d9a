// How features stand: meters and lines, shown alike for all of them. What has no text here
// is shown in the words of the daemon.

import { badge, bar, h, section } from "./dom.js";
import { dollars, duration, number, percent } from "./format.js";
import { costText } from "./requests.js";
import { t, textOr } from "./texts.js";

const titleOf = (feature) => textOr(`feature.${feature}`,
  textOr(`settings.group.${feature}`, feature));

// Return pairs of a feature's title and its rows, short ones.
export function statusFacts(features) {
  return Object.entries(features).map(([feature, rows]) => [titleOf(feature),
    rows.length ? rows.map((row) => h("div", {}, row.kind === "meter" ? meterLine(row) : line(row)))
      : h("a", { href: `#/settings/find/${feature}` },
        textOr(`status.none.${feature}`, t("status.none")))]);
}

// Return a section for each feature that has meters, with all of its rows.
export function meterSections(features) {
  return Object.entries(features)
    .filter(([, rows]) => rows.some(({ kind }) => kind === "meter"))
    .map(([feature, rows]) => section(titleOf(feature), h("ul", { class: "meters" },
      rows.map((row) => h("li", {}, row.kind === "meter" ? meterBar(row) : line(row))))));
}

function line({ key, text, values, warns }) {
  const shown = { ...values };
  if ("seconds" in values) shown.seconds = duration(values.seconds);
  if ("count" in values) shown.count = number(values.count);
  const words = textOr(`status.${key}`, text, shown);
  return warns ? [badge("warn", textOr(`status.badge.${key}`, "!")), " ", words]
    : h("span", { class: "quiet" }, words);
}

// `used` is null for what is counted elsewhere, such as in each conversation.
function meterLine(meter) {
  if (meter.used === null) return meterText(meter);
  const part = meter.used / meter.most;
  return [badge(part >= 1 ? "bad" : part >= 0.8 ? "warn" : "good", percent(part)), " ",
    meterText(meter)];
}

// Return how much is used of what is counted, in its own unit.
export function meterText(meter) {
  const { title, words } = amountsOf(meter);
  return t("pair", { name: title, value: words });
}

function meterBar(meter) {
  const { title, words } = amountsOf(meter);
  if (meter.used === null) return [title, " ", words];
  const part = Math.min(1, meter.used / meter.most);
  return [h("span", {}, title),
    bar([[part >= 1 ? "bad" : part >= 0.8 ? "warn" : "", 0, part]]),
    h("span", {}, words)];
}

function amountsOf({ name, used, most, in_dollars: inDollars, unpriced }) {
  const write = inDollars ? dollars : number;
  const spoken = { most: write(most),
    used: inDollars ? costText({ cost: used, unpriced }, dollars) : write(used) };
  return { title: textOr(`meter.${name}`, name),
    words: t(used === null ? "meter.most" : "meter.used", spoken) };
}
