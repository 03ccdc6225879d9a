// The dialog of a restart: its effect on running requests, the wait for byok, and the result. It can
// be opened over any panel, which stays as it is.

import { ApiError, call } from "../../api.js";
import {
  attempt, badge, button, commandBox, errorBox, h, healthCard, openDialog, replace, withCode,
} from "../../dom.js";
import { number, time } from "../../format.js";
import { expectRestart, onRequests } from "../../live.js";
import { joinList, t, textOr } from "../../texts.js";

const MAX_WAIT_SECONDS = 90;

// Return the names of settings as a text, in words if there are any.
export const settingNames = (settings) =>
  joinList(settings.map((name) => textOr(`setting.${name}`, name)));

// Return a card about the settings that take effect after a restart, or null.
export function restartBox(form) {
  if (!form.restart.length) return null;
  return healthCard(null, { tone: "warn", headline: t("health.restart"),
    detail: settingNames(form.restart),
    actions: button(t("settings.restart.now"), "primary", () => openRestart()) });
}

// Restart byok if the user agrees. If they have just saved settings that need a restart, `saved` is
// {form, names}, and the agreement is not asked for again.
export async function openRestart(saved = null) {
  const closed = new AbortController();
  const { signal } = closed;
  const content = h("div", { role: "status", tabindex: "-1" });
  const restartButton = button(t("settings.restart.do"), "primary", null, { hidden: true });
  let [closeButton, isDone] = [null, false];
  const dialog = openDialog(t("settings.restart.do"), content, (close) => {
    closeButton = button(t("cancel"), "", close);
    return [closeButton, restartButton];
  });
  dialog.addEventListener("close", () => {
    closed.abort();
    if (isDone) dispatchEvent(new Event("hashchange")); // opens the panel again
  });
  await attempt(content, signal, async () => {
    const form = saved?.form ?? await call("settings", {}, { signal });
    if (form.blocked || form.faults.length) {
      return replace(content, errorBox({ message: t("settings.restart.not"), hint: form.error }));
    }
    if (!saved) await waitForAgreement(form, content, restartButton, signal);
    restartButton.remove();
    replace(closeButton, t("close"));
    replace(content, t(form.in_place ? "settings.restart.after" : "settings.restart.after-ends"));
    content.focus();
    expectRestart(true);
    // Where it can, byok restarts by itself after such settings are saved.
    if (!saved || !form.in_place) await call("restart", {}, { signal });
    if (form.moves) {
      replace(content, h("p", {}, t("settings.restart.moved")), commandBox("byok dashboard"));
      return;
    }
    isDone = await waitForSuccessor(form, signal);
    if (signal.aborted) return;
    expectRestart(false);
    const { version } = isDone ? await call("state", {}, { signal }) : {};
    const names = settingNames(saved?.names ?? form.restart);
    replace(content, isDone ? [h("p", {}, badge("good", time(Date.now() / 1000)), " ",
      t("settings.restart.done"), " ", t("overview.version-is", { version })),
    names ? h("p", {}, t("settings.restart.changed", { names })) : null]
      : withCode(t("settings.restart.slow")));
    closeButton.focus();
  });
}

// Show the effect of a restart. Resolves when the user agrees, and rejects when they leave.
function waitForAgreement(form, content, restartButton, signal) {
  const answered = new AbortController();
  onRequests(({ rows }) => {
    const count = [...rows.values()].filter((row) => row.outcome === "open").length;
    replace(content, t(form.in_place ? "settings.restart.in-place" : "settings.restart.ends",
      { count: number(count) }));
  }, answered.signal);
  restartButton.hidden = false;
  restartButton.focus(); // harmless: a restart loses nothing
  return new Promise((agree, leave) => {
    restartButton.addEventListener("click", agree);
    signal.addEventListener("abort", () => leave(signal.reason));
  }).finally(() => answered.abort());
}

// Wait for another instance of byok than the one of `form`. Resolves to false if none comes.
async function waitForSuccessor(form, signal) {
  for (let seconds = 0; seconds < MAX_WAIT_SECONDS && !signal.aborted; seconds += 1) {
    await new Promise((done) => setTimeout(done, 1000));
    const current = await readForm(signal);
    if (current && current.instance !== form.instance) return true;
  }
  return false;
}

// Return the settings, or null while byok is away. Other errors are thrown: without a session, the
// call has shown the sign-in form.
async function readForm(signal) {
  try {
    return await call("settings", {}, { signal, background: true });
  } catch (error) {
    const isAway = error instanceof ApiError && (error.status === 0 || error.status >= 500);
    if (!isAway) throw error;
    return null;
  }
}
