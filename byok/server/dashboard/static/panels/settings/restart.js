// A restart: what it does to answers that are being written, and the page waits for byok.

import { ApiError, call } from "../../api.js";
import { button, h, healthCard, openDialog, replace } from "../../dom.js";
import { number } from "../../format.js";
import { expectRestart, onRequests } from "../../live.js";
import { listed, t } from "../../texts.js";

const LONGEST = 90; // seconds

// Return what says that settings wait for a restart, or null.
export function restartBox(form, ask) {
  if (!form.restart.length) return null;
  return healthCard(null, { tone: "warn", say: t("health.restart"),
    next: listed(form.restart), act: button(t("settings.restart.now"), "primary", ask) });
}

// Ask whether to restart; `run` does it.
export function askToRestart(form, run) {
  const open = new AbortController();
  const say = h("p");
  onRequests(({ rows }) => {
    const count = [...rows.values()].filter((row) => row.outcome === "open").length;
    replace(say, t(form.in_place ? "settings.restart.in-place" : "settings.restart.ends",
      { count: number(count) }));
  }, open.signal);
  const dialog = openDialog(t("settings.restart.ask"), say, (close) => [
    button(t("cancel"), "", close),
    button(t("settings.restart.do"), "primary", () => { close(); run(); }),
  ]);
  dialog.querySelector(".primary").focus(); // it loses nothing
  dialog.addEventListener("close", () => open.abort());
}

// Wait in `place` for the byok that follows the one of `form`, and return its form; null if
// the page cannot see it. `asks`: byok does not restart by itself.
export async function restart(place, form, asks, signal) {
  const said = h("p", { class: "card", role: "status", tabindex: "-1" },
    t(form.in_place ? "settings.restart.after" : "settings.restart.after-ends"));
  replace(place, said);
  said.focus();
  expectRestart(true);
  if (asks) await call("restart", {}, { signal });
  if (form.moves) return void replace(said, t("settings.restart.moved"));
  for (let passed = 0; passed < LONGEST && !signal.aborted; passed += 1) {
    await new Promise((done) => setTimeout(done, 1000));
    const found = await ask(signal);
    if (found && found.instance !== form.instance) return found;
  }
  expectRestart(signal.aborted);
  replace(said, t("settings.restart.slow"));
  return null;
}

// Without a session the answer leads to the sign-in.
async function ask(signal) {
  try {
    return await call("settings", {}, { signal, background: true });
  } catch (error) {
    const isAway = error instanceof ApiError && (error.status === 0 || error.status >= 500);
    if (!isAway) throw error;
    return null;
  }
}
