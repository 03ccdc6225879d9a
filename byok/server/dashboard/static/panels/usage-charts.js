// The contents of the charts of usage: a function for each chart makes its content of the answer to
// `series`. An unknown cost is never counted as 0; the number of unknown costs is shown.

import { amountSpent, duration, number, percent, shortDollars, shortNumber } from "../format.js";
import { costOf, shorten } from "../requests.js";
import { joinSentences, language, t } from "../texts.js";

// Options of Intl.DateTimeFormat.
const DAY = { month: "short", day: "numeric" };
const DAY_OF_WEEK = { weekday: "short", ...DAY };
const HOUR = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const RANGE_DAYS = { week: 7, month: 30, quarter: 90 };

// Return the name of a day; `day` is such as 2024-05-31.
export const dayName = (day) => formatLocal(`${day}T00:00`, DAY_OF_WEEK);

// Return a bucket's time. `local` is the time on the daemon's clock without a zone, so it is parsed
// and formatted as if it were UTC.
const formatLocal = (local, options) =>
  new Date(`${local}Z`).toLocaleString(language(), { ...options, timeZone: "UTC" });

// Return the names of the buckets, and their short names for the axis.
function nameTimes({ buckets, step }) {
  const exact = step === "hour" || step === "six_hours";
  const times = buckets.map(({ local }, index) => {
    const name = formatLocal(local, exact ? { ...DAY_OF_WEEK, ...HOUR } : DAY_OF_WEEK);
    if (step !== "week") return name;
    const next = buckets[index + 1]?.local;
    const end = next ? formatLocal(dayBefore(next), DAY_OF_WEEK) : t("usage.today");
    return `${name} – ${end}`;
  });
  const ticks = buckets.map(({ local }) => {
    if (step === "hour") return formatLocal(local, HOUR);
    if (step === "six_hours" && !local.endsWith("T00:00")) return "";
    return formatLocal(local, DAY);
  });
  return { times, ticks };
}

// Return the local time a day before.
function dayBefore(local) {
  const day = new Date(`${local}Z`);
  day.setUTCDate(day.getUTCDate() - 1);
  return day.toISOString().slice(0, 16);
}

const share = (part, whole) => (whole > 0 ? part / whole : null);

// Return the share of the input that came from a cache, of as much as upstreams reported it for;
// null if they reported nothing.
const cacheShare = (row) => share(row.cache_read_tokens, row.cache_input_tokens);

const isCacheUnknown = (row) => row.input_tokens > 0 && !row.cache_input_tokens;
const ifReported = (name) => (row) => (isCacheUnknown(row) ? null : row[name]);

// Return the cached share in words.
export const cacheText = (row) => (isCacheUnknown(row) ? t("unknown") : percent(cacheShare(row)));

// Return for how much of the input the cached share is unknown, "" if for none or all of it.
export const cacheUnknownText = ({ input_tokens: all, cache_input_tokens: known }, prefix = "cache") =>
  (known && all > known ? t(`usage.${prefix}.untold`, { tokens: shortNumber(all - known) }) : "");

// Return the name of a range; the last days are named by their number.
export const rangeName = (range) => (range in RANGE_DAYS
  ? t("problems.days", { count: RANGE_DAYS[range] }) : t(`usage.range.${range}`));

export const period = ({ range, buckets: [first] }) => (range === "this_month"
  ? formatLocal(first.local, { month: "long" }) : rangeName(range));
const freshTokens = (row) =>
  Math.max(0, row.input_tokens - row.cache_read_tokens - row.cache_written_tokens);
const totalTokens = (row) => row.input_tokens + row.output_tokens;

// Return a chart's content with the names of its times.
function createContent(answer, more) {
  return { ...nameTimes(answer), ...more };
}

// Return the series of the values that `read` returns for each bucket, and for the total.
const createSeries = (answer, label, read) =>
  ({ label, values: answer.buckets.map(read), total: read(answer.total) });

export function tokens(answer) {
  const { total } = answer;
  const values = { period: period(answer), tokens: shortNumber(totalTokens(total)) };
  return createContent(answer, {
    sentence: joinSentences(t("usage.tokens.sentence", values), uncountedText(total),
      cacheUnknownText(total, "tokens")),
    series: [
      createSeries(answer, t("usage.fresh"), freshTokens),
      createSeries(answer, t("usage.written"), ifReported("cache_written_tokens")),
      createSeries(answer, t("usage.read"), ifReported("cache_read_tokens")),
      createSeries(answer, t("usage.out"), (bucket) => bucket.output_tokens),
    ],
    format: (value) => (value === null ? t("unknown") : number(value)), formatTick: shortNumber,
  });
}

const uncountedText = (total) =>
  (total.uncounted ? t("usage.uncounted", { count: number(total.uncounted) }) : "");

// Return the names of the groups by which the answer is split, with that of all others.
function groupNames(answer) {
  const named = answer.names.map((name) => name || t("usage.unnamed"));
  return answer.others ? [...named, t("usage.others")] : named;
}

// Return the sums of each group over all buckets, with the median duration of its requests.
export function sumGroups(answer) {
  return groupNames(answer).map((name, index) => {
    const sums = { name, median: answer.medians[index] };
    for (const { parts } of answer.buckets) {
      for (const [field, value] of Object.entries(parts[index])) {
        sums[field] = (sums[field] ?? 0) + value;
      }
    }
    return sums;
  });
}

function splitSeries(answer, read) {
  const sums = sumGroups(answer);
  return sums.map((group, index) => ({ label: shorten(group.name), total: read(group),
    values: answer.buckets.map(({ parts }) => read(parts[index])) }));
}

export function tokensBy(answer) {
  const [first] = sumGroups(answer);
  const largestShare = share(totalTokens(first), totalTokens(answer.total));
  return createContent(answer, {
    sentence: largestShare
      ? t("usage.largest", { name: shorten(first.name), share: percent(largestShare) })
      : t("usage.untold", { period: period(answer) }),
    series: splitSeries(answer, totalTokens), format: number, formatTick: shortNumber,
  });
}

export function cost(answer) {
  const { total } = answer;
  const [costliest] = sumGroups(answer).sort((one, other) => other.cost - one.cost);
  const unpriced = createSeries(answer, t("usage.no-price"), (bucket) => bucket.unpriced);
  return createContent(answer, {
    sentence: t("usage.dearest",
      { name: shorten(costliest.name), share: percent(share(costliest.cost, total.cost)) }),
    series: splitSeries(answer, costOf), tableSeries: total.unpriced ? [{ ...unpriced, format: number }] : [],
    format: amountSpent, formatTick: shortDollars, minStep: 0.0001,
  });
}

export function cache(answer) {
  const { total } = answer;
  const values = { period: period(answer), share: cacheText(total) };
  const sentence = total.cache_input_tokens ? "usage.cache.sentence" : "usage.cache.unknown";
  return createContent(answer, {
    sentence: joinSentences(t(sentence, values), cacheUnknownText(total)),
    series: [createSeries(answer, t("usage.cache.series"), cacheShare)],
    format: percent, formatTick: percent, max: 1, minStep: 0.01,
  });
}

export function requests(answer) {
  const { total } = answer;
  const values = { period: period(answer), requests: number(total.requests),
    failed: number(total.failed), share: percent(share(total.failed, total.requests)) };
  return createContent(answer, {
    sentence: t("usage.requests.sentence", values),
    series: [
      createSeries(answer, t("usage.succeeded"), (bucket) => bucket.requests - bucket.failed),
      createSeries(answer, t("usage.figure.failed"), (bucket) => bucket.failed),
    ],
    format: number, formatTick: shortNumber,
  });
}

// The chart of the time until the first byte. The time until the end depends on how long an answer
// is, so only the table has it. There is no total, because percentiles cannot be added up.
export function speed(answer) {
  const last = answer.buckets.findLast((bucket) => bucket.first_byte.median !== null)?.first_byte;
  const pick = (label, field, measure) =>
    ({ label: t(label), values: answer.buckets.map((bucket) => bucket[field][measure]) });
  const values = last && { median: duration(last.median), high: duration(last.high) };
  return createContent(answer, {
    sentence: last ? t("usage.speed.sentence", values)
      : t("usage.speed.none", { period: period(answer) }),
    series: [
      pick("usage.median", "first_byte", "median"), pick("usage.high", "first_byte", "high"),
    ],
    tableSeries: [
      pick("usage.end.median", "seconds", "median"), pick("usage.end.high", "seconds", "high"),
    ],
    format: duration, formatTick: duration, minStep: 0.001,
  });
}
