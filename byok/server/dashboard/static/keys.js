// The keyboard commands of the page. A single key is a command only outside of entry fields, and
// never while a dialog is open.

import { h, openDialog, table } from "./dom.js";
import { t } from "./texts.js";

const ENTRY_FIELDS = "input, select, textarea, [contenteditable]";
const ROW_NAMES = "#main :is(td.lead, .list) :is(a, button)";

// Listen to keys: `palette()` opens the palette, and digits lead to the panels in their order.
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

// A click anywhere in a row does what a click on its name does.
addEventListener("click", ({ target }) => {
  const row = target.closest("#main tbody tr");
  if (!row || target.closest("a, button, input, select, label, summary")) return;
  if (getSelection().isCollapsed) row.querySelector("td.lead :is(a, button)")?.click();
});

const isCommand = (event) => !event.ctrlKey && !event.metaKey && !event.altKey
  && !event.target.closest?.(ENTRY_FIELDS) && !document.querySelector("dialog[open]");

const COMMANDS = {
  "/": (event) => {
    event.preventDefault();
    document.querySelector("#main input[type='search']")?.focus();
  },
  "?": showKeys,
  j: () => moveFocus(1),
  k: () => moveFocus(-1),
};

// Move the focus to the name of the next row (1) or the previous row (-1).
function moveFocus(step) {
  const rows = [...document.querySelectorAll(ROW_NAMES)];
  const index = rows.indexOf(document.activeElement) + step;
  rows[Math.max(0, Math.min(rows.length - 1, index))]?.focus();
}

function showKeys() {
  const keys = [["Ctrl K", "palette.title"], ["/", "keys.find"], ["j k", "keys.rows"],
    ["1 – 9", "keys.panels"], ["?", "keys.help"]];
  openDialog(t("keys.title"), table(t("keys.title"), [
    { title: t("keys.key"), cell: ([key]) => h("kbd", {}, key) },
    { title: t("keys.does"), cell: ([, label]) => t(label) },
  ], keys));
}
