// A restart, in a dialog over any panel: what it does to answers that are being written, the wait
// for byok, and what came of it. Behind it the user stays where they are.

import { ApiError, call } from "../../api.js";
import {
  attempt, badge, button, command, errorBox, h, healthCard, openDialog, replace,
} from "../../dom.js";
import { number, time } from "../../format.js";
import { expectRestart, onRequests } from "../../live.js";
import { listed, t, textOr } from "../../texts.js";

const LONGEST = 90; // seconds

// Return the names of settings in words, where there are any.
export const namesOf = (settings) =>
  listed(settings.map((name) => textOr(`setting.${name}`, name)));

// Return what says that settings wait for a restart, or null.
export function restartBox(form) {
  if (!form.restart.length) return null;
  return healthCard(null, { tone: "warn", say: t("health.restart"), next: namesOf(form.restart),
    act: button(t("settings.restart.now"), "primary", () => openRestart()) });
}

// Restart byok if the user agrees; `saved` is {form, names} of settings that they saved for that.
export async function openRestart(saved = null) {
  const left = new AbortController();
  const { signal } = left;
  const say = h("div", { role: "status", tabindex: "-1" });
  const go = button(t("settings.restart.do"), "primary", null, { hidden: true });
  let [leave, isDone] = [null, false];
  const dialog = openDialog(t("settings.restart.do"), say, (close) => {
    leave = button(t("cancel"), "", close);
    return [leave, go];
  });
  dialog.addEventListener("close", () => {
    left.abort();
    if (isDone) dispatchEvent(new Event("hashchange")); // the panel shows what is new
  });
  await attempt(say, signal, async () => {
    const form = saved?.form ?? await call("settings", {}, { signal });
    if (form.blocked || form.faults.length) {
      return replace(say, errorBox({ message: t("settings.restart.not"), hint: form.error }));
    }
    if (!saved) await agreement(form, say, go, signal);
    go.remove();
    replace(leave, t("close"));
    replace(say, t(form.in_place ? "settings.restart.after" : "settings.restart.after-ends"));
    say.focus();
    expectRestart(true);
    if (!saved || !form.in_place) await call("restart", {}, { signal }); // else it does so itself
    if (form.moves) {
      replace(say, h("p", {}, t("settings.restart.moved")), command("byok dashboard"));
      return;
    }
    isDone = await isReplaced(form, signal);
    if (signal.aborted) return;
    expectRestart(false);
    const { version } = isDone ? await call("state", {}, { signal }) : {};
    const names = namesOf(saved?.names ?? form.restart);
    replace(say, isDone ? [h("p", {}, badge("good", time(Date.now() / 1000)), " ",
      t("settings.restart.done"), " ", t("overview.version-is", { version })),
    names ? h("p", {}, t("settings.restart.changed", { names })) : null]
      : t("settings.restart.slow"));
    leave.focus();
  });
}

// Tell what a restart does, and wait until the user agrees, or leaves.
function agreement(form, say, go, signal) {
  const asked = new AbortController();
  onRequests(({ rows }) => {
    const count = [...rows.values()].filter((row) => row.outcome === "open").length;
    replace(say, t(form.in_place ? "settings.restart.in-place" : "settings.restart.ends",
      { count: number(count) }));
  }, asked.signal);
  go.hidden = false;
  go.focus(); // it loses nothing
  return new Promise((agree, leave) => {
    go.addEventListener("click", agree);
    signal.addEventListener("abort", () => leave(signal.reason));
  }).finally(() => asked.abort());
}

// Wait for the byok that follows the one of `form`; false if none comes.
async function isReplaced(form, signal) {
  for (let passed = 0; passed < LONGEST && !signal.aborted; passed += 1) {
    await new Promise((done) => setTimeout(done, 1000));
    const found = await ask(signal);
    if (found && found.instance !== form.instance) return true;
  }
  return false;
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
