// Capture: what passes is kept in files for a while. How that stands, start and stop.

import { call } from "../../api.js";
import { captureState } from "../../capture.js";
import { announce, attempt, button, flushSection, h, replace } from "../../dom.js";
import { follow } from "../../refresh.js";
import { t } from "../../texts.js";

export function captureSection(signal) {
  const [state, folder, trouble] = [h("p"), h("code"), h("div")];
  let told = { on: false };
  const ask = (name, body, background = false) => attempt(trouble, signal, async () => {
    told = await call(name, body, { signal, background });
    replace(trouble);
    replace(folder, told.folder);
    replace(state, captureState(told));
    replace(act, t(told.on ? "capture.stop" : "capture.start"));
    if (!background) announce(t("pair", { name: t("feature.capture"), value: state.textContent }));
  });
  const look = () => ask("capture", {}, true);
  const act = button(t("capture.start"), "", () =>
    (told.on ? ask("capture-stop") : ask("capture", { write: true })));
  follow(look, signal);
  look();
  const element = flushSection(t("feature.capture"), null,
    h("div", { class: "field setting", "data-name": "capture" },
      h("div", {}, h("strong", {}, t("capture.title")),
        h("p", { class: "quiet" }, t("capture.about"), " ", folder),
        h("p", { class: "quiet" }, t("capture.longer"), " ",
          h("code", {}, "byok capture on --for 2h"))),
      h("div", { class: "control" }, state, act), trouble));
  element.dataset.part = "capture";
  return element;
}
