// What needs a restart, and the restart: the page waits until byok is back.

import { ApiError, call } from "../../api.js";
import { errorBox, h, replace } from "../../dom.js";
import { t } from "../../texts.js";

const LONGEST = 60; // seconds

// Return what says that settings wait for a restart, or null.
export function restartBox(form, signal) {
  if (!form.restart.length) return null;
  const box = h("section", { class: "card restart" });
  const restart = () => wait(box, signal);
  replace(box, h("h2", {}, t("settings.restart.title")),
    h("p", {}, t("settings.restart.waits", { names: form.restart.join(", ") })),
    h("p", { class: "quiet" }, t("settings.restart.about")),
    h("button", { type: "button", on: { click: restart } }, t("settings.restart.do")));
  return box;
}

async function wait(box, signal) {
  const said = h("p", { role: "status", tabindex: "-1" }, t("settings.restart.now"));
  replace(box, h("h2", {}, t("settings.restart.title")), said);
  said.focus();
  try {
    const { port } = await call("restart", {}, { signal });
    if (String(port) !== location.port) return replace(said, t("settings.restart.moved"));
    for (let passed = 0; passed < LONGEST && !signal.aborted; passed += 1) {
      await new Promise((done) => setTimeout(done, 1000));
      await ask(signal);
    }
    if (!signal.aborted) replace(said, t("settings.restart.slow"));
  } catch (error) {
    if (error.name !== "AbortError" && !signal.aborted) replace(box, errorBox(error));
  }
}

// The daemon that comes back knows no session: its answer leads to the sign-in.
async function ask(signal) {
  try {
    await call("daemon", {}, { signal, background: true });
  } catch (error) {
    const isAway = error instanceof ApiError && (error.status === 0 || error.status >= 500);
    if (!isAway) throw error;
  }
}
