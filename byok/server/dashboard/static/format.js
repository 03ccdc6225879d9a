// Values as people read them, in the language of the page.

import { language, t } from "./texts.js";

// Characters that cannot be seen: controls, those that change the direction of text, and those
// without a width. The same as byok/core/escapes.py escapes for terminals, but line breaks and tabs
// stay. Joiners stay beside characters of scripts that need them and of emoji; variation selectors
// stay behind a character that has two looks.
const SCRIPTS_WITH_JOINERS = String.raw`\u0600-\u109f\u1780-\u18af\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc` +
  String.raw`\u2190-\u2bff\u{1f000}-\u{1faff}`;
const HAS_VARIANTS = String.raw`\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297` +
  String.raw`\u3299\u{1f000}-\u{1faff}`;
const INVISIBLE = new RegExp([
  String.raw`(?![\t\n])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\ufff9-\ufffb]`,
  String.raw`(?![\u200c\u200d\ufe0e\ufe0f])\p{DI}`,
  String.raw`(?<![${SCRIPTS_WITH_JOINERS}\ufe0f])[\u200c\u200d]|[\u200c\u200d](?![${SCRIPTS_WITH_JOINERS}])`,
  String.raw`(?<![${HAS_VARIANTS}])[\ufe0e\ufe0f](?!\u20e3)`,
].join("|"), "gu");

// Return a text in which each invisible character is replaced by an escape with its number.
export function visible(value) {
  return String(value).replace(INVISIBLE, (match) => {
    const code = match.codePointAt(0);
    if (code > 0xffff) return `\\U${code.toString(16).padStart(8, "0")}`;
    const wide = code >= 0x100;
    return `\\${wide ? "u" : "x"}${code.toString(16).padStart(wide ? 4 : 2, "0")}`;
  });
}

// Where the page's Chinese has a space between a number and its unit, and the browser's has none.
const BEFORE_UNIT = /(?<=\d)(?=\p{Script=Han})/u;

// Formatters are cached: creating one takes longer than formatting a hundred values.
const formatters = new Map();

function formatterOf(kind, options, name = language()) {
  const key = `${kind.name} ${name} ${JSON.stringify(options)}`;
  if (!formatters.has(key)) formatters.set(key, new kind(name, options));
  return formatters.get(key);
}

// Return a number with at most `digits` decimals, "–" if it is unknown.
export function number(value, digits = 0) {
  if (value === null || value === undefined) return "–";
  return formatterOf(Intl.NumberFormat, { maximumFractionDigits: digits }).format(value);
}

// Return a large number shortened, as 1.2M: the usual form of token counts in every language.
export function shortNumber(value) {
  if (value === null || value === undefined) return "–";
  const options = { notation: "compact", maximumFractionDigits: 1 };
  return formatterOf(Intl.NumberFormat, options, "en").format(value);
}

// Return a share of 1 as a percentage, with a decimal only below ten percent.
export function percent(value) {
  if (value === null || value === undefined) return "–";
  const options = { style: "percent", maximumFractionDigits: value < 0.0995 ? 1 : 0 };
  return formatterOf(Intl.NumberFormat, options).format(value);
}

// Return US dollars; null is an unknown price, which is never shown as 0.
export function dollars(value) {
  if (value === null || value === undefined) return t("unknown-price");
  const digits = value !== 0 && Math.abs(value) < 0.1 ? 4 : 2;
  return currency(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// Return what something cost; no cost is a word, never $0.00.
export const amountSpent = (value) => (value === 0 ? t("no-cost") : dollars(value));

// Return US dollars with as few digits as an axis needs.
export const shortDollars = (value) => currency(value, { maximumFractionDigits: 4 });

function currency(value, digits) {
  const options = { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", ...digits };
  return formatterOf(Intl.NumberFormat, options).format(value);
}

// Return a duration in seconds as 840 ms, 3.2 s, 2 min 5 s, 3 h 20 min or 4 d 7 h.
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.9995) return t("time.ms", { count: Math.round(seconds * 1000) });
  if (seconds < 59.95) return t("time.s", { count: number(seconds, 1) });
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return t("time.min", { count: minutes, rest: whole % 60 });
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return t("time.h", { count: hours, rest: minutes % 60 });
  return t("time.d", { count: Math.floor(hours / 24), rest: hours % 24 });
}

// Return how long ago a time in seconds since 1970 was, as "12 min ago".
export function agoText(seconds) {
  const minutes = Math.max(0, Date.now() / 1000 - seconds) / 60;
  if (minutes < 0.75) return t("time.now");
  const [count, unit] = minutes < 59.5 ? [minutes, "minute"]
    : minutes < 1320 ? [minutes / 60, "hour"] : [Math.max(1, minutes / 1440), "day"];
  return formatterOf(Intl.RelativeTimeFormat, { numeric: "auto", style: "short" })
    .format(-Math.round(count), unit).replace(/\.(?= )/u, "").replace(BEFORE_UNIT, "\u00a0");
}

// Return a pause in whole minutes; one of an hour or more is written as a duration.
export function pauseText(seconds) {
  if (seconds >= 3570) return duration(Math.round(seconds));
  const options = { style: "unit", unit: "minute", unitDisplay: "long", maximumFractionDigits: 0 };
  return formatterOf(Intl.NumberFormat, options).format(seconds / 60).replace(BEFORE_UNIT, "\u00a0");
}

// Return a time in seconds since 1970 with its seconds, and with the day unless it is today.
export const time = (seconds) => clock(seconds, { second: "2-digit" });

// Return such a time without its seconds; `extraOptions` are those of Intl.DateTimeFormat.
export function clock(seconds, extraOptions = {}) {
  const moment = new Date(seconds * 1000);
  const isToday = new Date().toDateString() === moment.toDateString();
  const options = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...extraOptions };
  if (!isToday) Object.assign(options, { month: "short", day: "numeric" });
  return formatterOf(Intl.DateTimeFormat, options).format(moment);
}
