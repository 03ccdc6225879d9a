// The daemon, its upstreams, models and keys.

import { call } from "../api.js";
import { facts, replace, section } from "../dom.js";
import { t } from "../texts.js";

export async function open(root, rest, signal) {
  const daemon = await call("daemon", {}, { signal });
  replace(root, section("byok", facts([[t("overview.version"), daemon.version]])));
}
