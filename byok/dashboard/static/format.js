// Values as people read them, in the language of the page.

import { language, t } from "./texts.js";

// Characters that change how others look, or that nobody sees: shown by their number.
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\ud800(?![\udc00-\udfff])/g;

// Return a text whose control and direction characters are visible.
export function visible(value) {
  return String(value).replace(UNSEEN, (found) =>
    `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function number(value, digits = 0) {
  if (value === null || value === undefined) return "–";
  return new Intl.NumberFormat(language(), { maximumFractionDigits: digits }).format(value);
}

// Return a large number shortly, as 1.2M.
export function short(value) {
  if (value === null || value === undefined) return "–";
  const options = { notation: "compact", maximumFractionDigits: 1 };
  return new Intl.NumberFormat(language(), options).format(value);
}

// Return US dollars; null is unknown, which is never shown as 0.
export function dollars(value) {
  if (value === null || value === undefined) return t("unknown");
  const digits = value !== 0 && Math.abs(value) < 1 ? 4 : 2;
  const options = { style: "currency", currency: "USD", maximumFractionDigits: digits };
  return new Intl.NumberFormat(language(), options).format(value);
}

// Return a duration in seconds as 840 ms, 3.2 s or 2 min 5 s.
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${number(seconds, 1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

// Return a time in seconds since 1970, with the day unless it is today.
export function time(seconds) {
  const moment = new Date(seconds * 1000);
  const today = new Date().toDateString() === moment.toDateString();
  const options = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
  if (!today) Object.assign(options, { month: "short", day: "numeric" });
  return moment.toLocaleString(language(), options);
}
