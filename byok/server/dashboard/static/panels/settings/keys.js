// The key of an upstream: whether it is set and where, never the key itself.

import { call } from "../../api.js";
import { announce, badge, errorBox, h, replace } from "../../dom.js";
import { t } from "../../texts.js";
import { addressesOf, originOf } from "./address.js";

const KEYRING = "OS keyring";

// What the daemon says of all keys, and the lines that show it.
export class Keys {
  constructor(signal, draft) {
    this.signal = signal;
    this.draft = draft;
    this.rows = null; // not known yet
    this.places = new Map();
  }

  // Return the line for one key, such as openai/work.
  line(name) {
    const place = h("div", {}, keyLine(name, this));
    this.places.set(name, place);
    return place;
  }

  // Ask again; `name` is the key that the user has just changed.
  async read(name = "") {
    try {
      const told = await call("keys", {}, { signal: this.signal, background: !name });
      this.rows = told.keys;
      dispatchEvent(new CustomEvent("byok-keys", { detail: told })); // the overview has them too
    } catch (error) {
      if (error.name === "AbortError") return;
      this.rows = []; // all else can be edited all the same
      announce(error.message);
    }
    for (const [other, place] of this.places) {
      const isInUse = place.querySelector("form, .error") && other !== name;
      if (!isInUse) replace(place, keyLine(other, this));
    }
    if (name) this.places.get(name)?.querySelector("button").focus();
  }
}

function keyLine(name, keys) {
  const { rows, signal, draft } = keys;
  const row = rows?.find((one) => one.upstream === name);
  const reload = (changed) => keys.read(changed);
  const below = h("div");
  const line = h("div", { class: "key", "data-key": name },
    h("div", { class: "row" },
      h("strong", {}, t("settings.key")),
      name.includes("/") ? h("code", {}, name) : null,
      rows ? state(row) : h("span", { class: "quiet" }, t("settings.key.asking")),
      h("span", { class: "space" }),
      button("set", () => openEntry(name, below, { draft, reload, signal })),
      button("test", () => test(name, below, signal)),
      row?.source === KEYRING
        ? button("remove", () => askToRemove(name, below, reload, signal)) : null),
    below);
  return line;
}

const button = (what, click) => h("button", { type: "button", class: `key-${what}`, on: { click } },
  t(`settings.key.${what}`));

function state(row) {
  if (!row) return badge("quiet", t("settings.key.needless"));
  if (!row.fingerprint) {
    return row.error ? h("span", {}, badge("bad", t("settings.key.failed")), " ", row.error)
      : badge("warn", t("settings.key.missing"));
  }
  return h("span", {}, badge("good", t("settings.key.there")), " ",
    t("settings.key.from", { source: row.source }), " ",
    h("code", { title: t("settings.key.fingerprint") }, row.fingerprint));
}

// A key is entered for one address; once another one is shown, it is not taken.
function openEntry(name, below, { draft, reload, signal }) {
  const { shown, used } = addressesOf(draft, name);
  if (originOf(shown) !== originOf(used)) return replace(below, unsavedNote(used));
  const id = `key-${name.replace(/[^\w-]/g, "-")}`;
  const field = h("input", { id, type: "password", autocomplete: "off", spellcheck: "false",
    required: true, maxlength: 600, "aria-describedby": `${id}-about` });
  const submit = async (event) => {
    event.preventDefault();
    const key = field.value;
    field.value = ""; // it stays nowhere on the page
    if (addressesOf(draft, name).shown !== shown) return replace(below, unsavedNote(used));
    await attempt(below, async () => {
      const told = await call("key-set", { name, key, address: shown }, { signal });
      announce(t("settings.key.stored", told));
      await reload(name);
    });
  };
  replace(below, h("form", { on: { submit } },
    h("label", { for: id }, t("settings.key.enter", { name })), field,
    h("p", { class: "quiet", id: `${id}-about` },
      t("settings.key.about", { origin: originOf(shown) })),
    h("div", { class: "row" },
      h("button", { class: "primary" }, t("settings.key.store")),
      h("button", { type: "button", on: { click: () => close(below) } }, t("cancel")))));
  field.focus();
}

const unsavedNote = (used) => h("p", { class: "error", role: "alert" },
  t("settings.key.unsaved", { origin: originOf(used) || t("none") }));

function askToRemove(name, below, reload, signal) {
  const remove = () => attempt(below, async () => {
    await call("key-remove", { name }, { signal });
    announce(t("settings.key.removed", { name }));
    await reload(name);
  });
  const sure = h("button", { type: "button", class: "danger", on: { click: remove } },
    t("settings.key.remove"));
  replace(below, h("div", { class: "row" }, t("settings.key.sure", { name }), sure,
    h("button", { type: "button", on: { click: () => close(below) } }, t("cancel"))));
  sure.focus();
}

function test(name, below, signal) {
  replace(below, h("p", { class: "quiet" }, t("settings.key.testing")));
  const upstream = name.split("/")[0];
  return attempt(below, async () => {
    const told = await call("key-test", { upstream }, { signal });
    const said = "models" in told ? t("settings.key.lists", told) : t("settings.key.taken", told);
    replace(below, h("p", { role: "status" }, badge("good", t("settings.key.works")), " ", said));
  });
}

async function attempt(below, work) {
  try {
    await work();
  } catch (error) {
    if (error.name !== "AbortError") replace(below, errorBox(error));
  }
}

function close(below) {
  const line = below.closest(".key");
  replace(below);
  line.querySelector("button").focus();
}
