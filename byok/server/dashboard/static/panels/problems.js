// What failed, by code, with what to do; and what byok mended, by model.

import { call } from "../api.js";
import { badge, h, replace, section, table } from "../dom.js";
import { number, percent, time } from "../format.js";
import { refresher, renderAgain } from "../refresh.js";
import {
  explanation, kindCell, linkTo, mendBadges, modelOf, nameCell, timeCell,
} from "../requests.js";
import { t } from "../texts.js";

const PERIODS = [1, 7, 30, 90]; // days

const SHOWN = 10; // of the last requests, before all are asked for

// `#/problems/CODE` leads to the error of that code.
export async function open(root, rest, signal) {
  const shown = h("div", { class: "panel" });
  let [wanted] = rest;
  let last = "";
  const load = async (options) => {
    const told = await call("problems", { days: Number(period.value) }, options);
    const text = JSON.stringify(told);
    if (text === last) return; // nothing moves that need not
    last = text;
    renderAgain(shown, () => replace(shown, partsOf(told)));
    if (wanted && leadTo(shown, wanted)) wanted = "";
  };
  const { button, run, trouble } = refresher(load, signal);
  const period = h("select", { id: "problems-period", on: { change: () => run(false) } },
    PERIODS.map((days) => h("option", { value: days, selected: days === 7 },
      t(days === 1 ? "problems.day" : "problems.days", { count: days }))));
  replace(root, h("div", { class: "row" },
    h("label", { for: "problems-period" }, t("problems.period")), period, button),
  trouble, shown);
  await run(false);
}

// Lead the user to the error of a code, unless they have gone elsewhere; tell whether it
// is there.
function leadTo(shown, code) {
  const titles = [...shown.querySelectorAll(".problem h3")];
  const title = titles.find((one) => one.dataset.key === `problem ${code}`);
  if (document.activeElement?.matches("h1, body")) title?.focus();
  return Boolean(title);
}

function partsOf(told) {
  const isWell = !told.errors.length && !told.models.length;
  if (isWell) return [damagedOf(told), wellOf(told)];
  const last = told.mended.length ? lastOf(told) : null;
  return [damagedOf(told), errorsOf(told), repairsOf(told), last];
}

function damagedOf(told) {
  if (!told.damaged) return null;
  return h("p", { class: "note" }, badge("warn", t("problems.damaged")), " ",
    t("problems.damaged.why", { count: number(told.damaged) }));
}

function wellOf(told) {
  if (told.keep_days === 0) return section(t("problems.none"), h("p", {}, t("journal.off")));
  if (!told.requests) return section(t("problems.none"), h("p", {}, t("problems.unused")));
  return section(t("problems.none"), h("p", {}, badge("good", t("problems.well")), " ",
    t("problems.well.why", { count: number(told.requests) })));
}

function errorsOf(told) {
  return section(t("problems.errors"), told.errors.length
    ? told.errors.map(errorOf)
    : h("p", {}, badge("good", t("problems.well")), " ", t("problems.no-errors")));
}

function errorOf(error) {
  return h("article", { class: "problem" },
    h("div", { class: "row" },
      h("h3", { tabindex: "-1", "data-key": `problem ${error.code}` },
        h("code", {}, error.code || t("request.failed"))),
      badge("bad", t("problems.count", { count: number(error.requests) })),
      h("span", { class: "quiet" }, t("problems.last", { time: time(error.last) })),
      error.group ? h("span", { class: "quiet", lang: "en" }, error.group) : null),
    error.what ? explanation(error) : h("p", {}, t("problems.unknown-code")),
    error.places.length
      ? h("p", { class: "names" }, `${t("request.model")}: ${error.places.join(", ")}`) : null,
    h("details", { "data-key": `examples ${error.code}` },
      h("summary", {}, t("problems.examples", { count: number(error.examples.length) })),
      table(`${t("problems.errors")}: ${error.code}`, requestColumns(), error.examples)));
}

function requestColumns() {
  return [
    { title: t("request.time"), cell: (one) => timeCell(one.started) },
    { title: t("request.kind"), cell: kindCell },
    { title: t("request.model"), cell: (one) => nameCell(modelOf(one)) },
    { title: t("request.client"), cell: (one) => nameCell(one.client) },
    { title: t("conversations.id"),
      cell: (one) => linkTo(one.conversation, `failed ${one.number}`) },
    { title: t("request.id"), cell: (one) => h("span", { class: "mono names" }, one.request_id) },
  ];
}

function repairsOf(told) {
  const rows = [...told.models].sort((one, other) => share(other) - share(one));
  return section(t("problems.by-model"),
    h("p", {}, t("problems.repairs.why")),
    table(t("problems.by-model"), modelColumns(), rows, { empty: t("problems.no-repairs") }),
    rows.length ? h("details", { "data-key": "words" },
      h("summary", {}, t("problems.words")), wordsOf()) : null);
}

const share = (row) => (row.answers ? row.mended / row.answers : 0);

function modelColumns() {
  const count = (name) => ({ title: t(`problems.${name}`), numeric: true,
    cell: (row) => number(row[name]) });
  return [
    { title: t("request.model"), cell: (row) => nameCell(row.model || t("timeline.no-model")) },
    count("answers"),
    { title: t("problems.mended"), numeric: true,
      cell: (row) => (row.answers
        ? `${number(row.mended)} (${percent(share(row))})` : number(row.mended)) },
    ...["repairs", "dropped_calls", "retries", "loops", "notices"].map(count),
  ];
}

function wordsOf() {
  const words = ["repairs", "dropped_calls", "retries", "loops", "notices"];
  return h("dl", { class: "words" }, words.map((name) =>
    h("div", {}, h("dt", {}, t(`problems.${name}`)), h("dd", {}, t(`problems.${name}.what`), " ",
      t(`problems.${name}.do`)))));
}

function lastOf(told) {
  const columns = [
    { title: t("request.time"), cell: (one) => timeCell(one.started) },
    { title: t("request.model"), cell: (one) => nameCell(modelOf(one)) },
    { title: t("problems.what"), cell: mendBadges },
    { title: t("conversations.id"),
      cell: (one) => linkTo(one.conversation, `mended ${one.number}`) },
  ];
  const title = t("problems.last-mended");
  const rest = told.mended.slice(SHOWN);
  return section(title, table(title, columns, told.mended.slice(0, SHOWN)),
    rest.length ? h("details", { "data-key": "mended" },
      h("summary", {}, t("problems.more", { count: number(rest.length) })),
      table(t("problems.more", { count: number(rest.length) }), columns, rest)) : null);
}
