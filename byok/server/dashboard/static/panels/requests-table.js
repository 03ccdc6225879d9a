// The latest requests of the journal, as a table; an error leads to what to do about it.

import { badge, h, table } from "../dom.js";
import { dollars, duration } from "../format.js";
import { kindOf, modelOf, nameCell, problemOf, timeCell, tokensOf } from "../requests.js";
import { t, textOr } from "../texts.js";

export function requestsTable(requests) {
  return table(t("overview.requests"), [
    { title: t("request.time"), cell: (row) => timeCell(row.started) },
    { title: t("request.kind"), cell: kindOf },
    { title: t("request.model"), cell: (row) => nameCell(modelOf(row) || row.model_asked) },
    { title: t("request.duration"), cell: (row) => duration(row.seconds), numeric: true },
    { title: t("request.tokens"), numeric: true, cell: tokensOf },
    { title: t("request.cost"), cell: (row) => dollars(row.cost), numeric: true },
    { title: t("request.state"), cell: outcome },
  ], requests, { empty: t("overview.requests-none") });
}

function outcome({ outcome: name, error, request_id: id }) {
  const tone = { ok: "good", failed: "bad" }[name] ?? "quiet";
  return [badge(tone, textOr(`live.state.${name}`, name)), " ",
    error ? h("a", { href: problemOf(error), "data-key": `problem ${id}` }, error) : null];
}
