// The status of features: meters and lines, shown alike for all of them. A row without a text here
// is shown in the daemon's words.

import { badge, bar, h, section, withCode } from "./dom.js";
import { dollars, duration, number, percent } from "./format.js";
import { costText } from "./requests.js";
import { t, textOr } from "./texts.js";

const titleOf = (feature) => textOr(`feature.${feature}`,
  textOr(`settings.group.${feature}`, feature));

// Return [title, rows] of each feature, for a list of facts.
export function statusFacts(features) {
  return Object.entries(features).map(([feature, rows]) => [titleOf(feature),
    rows.length ? rows.map((row) => h("div", {}, row.kind === "meter" ? meterLine(row) : statusLine(row)))
      : h("a", { href: `#/settings/find/${feature}` },
        textOr(`status.none.${feature}`, t("status.none")))]);
}

// Return a section for each feature that has meters, with all of its rows.
export function meterSections(features) {
  return Object.entries(features)
    .filter(([, rows]) => rows.some(({ kind }) => kind === "meter"))
    .map(([feature, rows]) => section(titleOf(feature), h("ul", { class: "meters" },
      rows.map((row) => h("li", {}, row.kind === "meter" ? meterBar(row) : statusLine(row))))));
}

function statusLine({ key, text, values, warns }) {
  const texts = { ...values };
  if ("seconds" in values) texts.seconds = duration(values.seconds);
  if ("count" in values) texts.count = number(values.count);
  const words = withCode(textOr(`status.${key}`, text, texts));
  return warns ? [badge("warn", textOr(`status.badge.${key}`, "!")), " ", words]
    : h("span", { class: "quiet" }, words);
}

// Return a meter as a line. Its `used` is null if that is counted elsewhere, such as in each
// conversation.
function meterLine(meter) {
  if (meter.used === null) return meterText(meter);
  const share = meter.used / meter.most;
  return [badge(share >= 1 ? "bad" : share >= 0.8 ? "warn" : "good", percent(share)), " ",
    meterText(meter)];
}

// Return in words how much of a meter is used, in its own unit.
export function meterText(meter) {
  const { title, words } = meterTexts(meter);
  return t("pair", { name: title, value: words });
}

function meterBar(meter) {
  const { title, words } = meterTexts(meter);
  if (meter.used === null) return [title, " ", words];
  const share = Math.min(1, meter.used / meter.most);
  return [h("span", {}, title),
    bar([[share >= 1 ? "bad" : share >= 0.8 ? "warn" : "", 0, share]]),
    h("span", {}, words)];
}

function meterTexts({ name, used, most: limit, in_dollars: inDollars, unpriced }) {
  const format = inDollars ? dollars : number;
  const amounts = { most: format(limit),
    used: inDollars ? costText({ cost: used, unpriced }, dollars) : format(used) };
  return { title: textOr(`meter.${name}`, name),
    words: t(used === null ? "meter.most" : "meter.used", amounts) };
}
