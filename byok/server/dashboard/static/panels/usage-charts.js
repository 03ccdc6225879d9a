// What the charts of usage show: each function makes a chart's content of the answer to
// `series`. A cost that is unknown is never counted as 0; how many there are is said.

import { duration, number, percent, short, shortDollars, spent } from "../format.js";
import { costOf, cut } from "../requests.js";
import { language, sentences, t } from "../texts.js";

// Return a bucket's time. `local` is what the clock of the daemon shows, so it is read
// and written as if it were UTC.
const write = (local, options) =>
  new Date(`${local}Z`).toLocaleString(language(), { ...options, timeZone: "UTC" });

const DAY = { month: "short", day: "numeric" };
const LONG = { weekday: "short", ...DAY };
const HOUR = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

export const dayName = (day) => write(`${day}T00:00`, LONG);

function nameTimes({ buckets, step }) {
  const exact = step === "hour" || step === "six_hours";
  const times = buckets.map(({ local }, place) => {
    const name = write(local, exact ? { ...LONG, ...HOUR } : LONG);
    if (step !== "week") return name;
    const next = buckets[place + 1]?.local;
    const end = next ? write(before(next), LONG) : t("usage.today");
    return `${name} – ${end}`;
  });
  const ticks = buckets.map(({ local }) => {
    if (step === "hour") return write(local, HOUR);
    if (step === "six_hours" && !local.endsWith("T00:00")) return "";
    return write(local, DAY);
  });
  return { times, ticks };
}

// Return the day before a local time.
function before(local) {
  const day = new Date(`${local}Z`);
  day.setUTCDate(day.getUTCDate() - 1);
  return day.toISOString().slice(0, 16);
}

const share = (part, whole) => (whole > 0 ? part / whole : null);
// Return how much of the input came from a cache, as far as upstreams told; else null.
const cacheShare = (row) => share(row.cache_read_tokens, row.cache_input_tokens);

const isUntold = (row) => row.input_tokens > 0 && !row.cache_input_tokens;
const ifTold = (name) => (row) => (isUntold(row) ? null : row[name]);

// Return that share in words.
export const cacheText = (row) => (isUntold(row) ? t("unknown") : percent(cacheShare(row)));

// Say of how much of the input nobody told what came from a cache, "" if of none or all of it.
export const untoldText = ({ input_tokens: all, cache_input_tokens: told }, where = "cache") =>
  (told && all > told ? t(`usage.${where}.untold`, { tokens: short(all - told) }) : "");

// Return a period's name: the last days are told by their number.
const DAYS = { week: 7, month: 30, quarter: 90 };
export const rangeName = (range) => (range in DAYS
  ? t("problems.days", { count: DAYS[range] }) : t(`usage.range.${range}`));

export const period = ({ range, buckets: [first] }) => (range === "this_month"
  ? write(first.local, { month: "long" }) : rangeName(range));
const fresh = (row) =>
  Math.max(0, row.input_tokens - row.cache_read_tokens - row.cache_written_tokens);
const used = (row) => row.input_tokens + row.output_tokens;

function content(answer, more) {
  return { ...nameTimes(answer), ...more };
}

// Return a series of what `read` finds in each bucket, and in the total.
const row = (answer, label, read) =>
  ({ label, values: answer.buckets.map(read), total: read(answer.total) });

export function tokens(answer) {
  const { total } = answer;
  const values = { period: period(answer), tokens: short(used(total)) };
  return content(answer, {
    sentence: sentences(t("usage.tokens.sentence", values), uncounted(total), untoldText(total, "tokens")),
    series: [
      row(answer, t("usage.fresh"), fresh),
      row(answer, t("usage.written"), ifTold("cache_written_tokens")),
      row(answer, t("usage.read"), ifTold("cache_read_tokens")),
      row(answer, t("usage.out"), (one) => one.output_tokens),
    ],
    write: (value) => (value === null ? t("unknown") : number(value)), axis: short,
  });
}

const uncounted = (total) =>
  (total.uncounted ? t("usage.uncounted", { count: number(total.uncounted) }) : "");

// Return the names that the answer is split by, the rest among them.
function names(answer) {
  const named = answer.names.map((name) => name || t("usage.unnamed"));
  return answer.others ? [...named, t("usage.others")] : named;
}

// Return the sums of each name over all buckets, and within which time half ended.
export function groups(answer) {
  return names(answer).map((name, place) => {
    const sums = { name, median: answer.medians[place] };
    for (const { parts } of answer.buckets) {
      for (const [field, value] of Object.entries(parts[place])) {
        sums[field] = (sums[field] ?? 0) + value;
      }
    }
    return sums;
  });
}

function split(answer, read) {
  const sums = groups(answer);
  return sums.map((group, place) => ({ label: cut(group.name), total: read(group),
    values: answer.buckets.map(({ parts }) => read(parts[place])) }));
}

export function tokensBy(answer) {
  const [first] = groups(answer);
  const most = share(used(first), used(answer.total));
  return content(answer, {
    sentence: most ? t("usage.largest", { name: cut(first.name), share: percent(most) })
      : t("usage.untold", { period: period(answer) }),
    series: split(answer, used), write: number, axis: short,
  });
}

export function cost(answer) {
  const { total } = answer;
  const [dearest] = groups(answer).sort((one, other) => other.cost - one.cost);
  const missing = { ...row(answer, t("usage.no-price"), (one) => one.unpriced), write: number };
  return content(answer, {
    sentence: t("usage.dearest",
      { name: cut(dearest.name), share: percent(share(dearest.cost, total.cost)) }),
    series: split(answer, costOf), notes: total.unpriced ? [missing] : [],
    write: spent, axis: shortDollars, least: 0.0001,
  });
}

export function cache(answer) {
  const { total } = answer;
  const values = { period: period(answer), share: cacheText(total) };
  const sentence = total.cache_input_tokens ? "usage.cache.sentence" : "usage.cache.unknown";
  return content(answer, {
    sentence: sentences(t(sentence, values), untoldText(total)),
    series: [row(answer, t("usage.cache.series"), cacheShare)],
    write: percent, axis: percent, most: 1, least: 0.01,
  });
}

export function requests(answer) {
  const { total } = answer;
  const values = { period: period(answer), requests: number(total.requests),
    failed: number(total.failed), share: percent(share(total.failed, total.requests)) };
  return content(answer, {
    sentence: t("usage.requests.sentence", values),
    series: [
      row(answer, t("usage.succeeded"), (one) => one.requests - one.failed),
      row(answer, t("usage.figure.failed"), (one) => one.failed),
    ],
    write: number, axis: short,
  });
}

// The first word; until the end it takes as long as the answer is, so only the table has
// that. There is no total: percentiles cannot be added up.
export function speed(answer) {
  const last = answer.buckets.findLast((one) => one.first_byte.median !== null)?.first_byte;
  const pick = (label, field, which) =>
    ({ label: t(label), values: answer.buckets.map((one) => one[field][which]) });
  const values = last && { median: duration(last.median), high: duration(last.high) };
  return content(answer, {
    sentence: last ? t("usage.speed.sentence", values)
      : t("usage.speed.none", { period: period(answer) }),
    series: [
      pick("usage.median", "first_byte", "median"), pick("usage.high", "first_byte", "high"),
    ],
    notes: [
      pick("usage.end.median", "seconds", "median"), pick("usage.end.high", "seconds", "high"),
    ],
    write: duration, axis: duration, least: 0.001,
  });
}
