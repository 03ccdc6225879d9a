// What keys do anywhere on the page. A letter alone is a command only where nothing is
// entered, and never while a dialog is open.

import { h, openDialog, table } from "./dom.js";
import { t } from "./texts.js";

const ENTERED = "input, select, textarea, [contenteditable]";
const ROWS = "#main :is(td.lead, .list) :is(a, button)";

// Listen to keys; `palette` opens it, and digits lead to the panels in their order.
export function followKeys({ panels, palette }) {
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      palette();
    } else if (isCommand(event)) {
      const panel = panels[Number(event.key) - 1];
      if (panel && document.querySelector("#nav a")) location.hash = `#/${panel}`;
      else COMMANDS[event.key]?.(event);
    }
  });
}

// A row opens by a click anywhere in it, as its name does.
addEventListener("click", ({ target }) => {
  const row = target.closest("#main tbody tr");
  if (!row || target.closest("a, button, input, select, label, summary")) return;
  if (getSelection().isCollapsed) row.querySelector("td.lead :is(a, button)")?.click();
});

const isCommand = (event) => !event.ctrlKey && !event.metaKey && !event.altKey
  && !event.target.closest?.(ENTERED) && !document.querySelector("dialog[open]");

const COMMANDS = {
  "/": (event) => {
    event.preventDefault();
    document.querySelector("#main input[type='search']")?.focus();
  },
  "?": showKeys,
  j: () => move(1),
  k: () => move(-1),
};

// Lead the focus to the next row's name, or the one before.
function move(step) {
  const rows = [...document.querySelectorAll(ROWS)];
  const at = rows.indexOf(document.activeElement) + step;
  rows[Math.max(0, Math.min(rows.length - 1, at))]?.focus();
}

function showKeys() {
  const keys = [["Ctrl K", "palette.title"], ["/", "keys.find"], ["j k", "keys.rows"],
    ["1 – 9", "keys.panels"], ["?", "keys.help"]];
  openDialog(t("keys.title"), table(t("keys.title"), [
    { title: t("keys.key"), cell: ([key]) => h("kbd", {}, key) },
    { title: t("keys.does"), cell: ([, does]) => t(does) },
  ], keys));
}
