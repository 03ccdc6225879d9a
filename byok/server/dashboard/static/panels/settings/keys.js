// The key of an upstream: whether it is set and where, never the key itself.

import { call } from "../../api.js";
import { announce, attempt, badge, button, dots, h, openDialog, replace } from "../../dom.js";
import { t } from "../../texts.js";
import { addressesOf, originOf } from "./address.js";

const KEYRING = "OS keyring";
const ENTRY = "key-entry";

// What the daemon says of all keys, and the lines that show it.
export class Keys {
  constructor(signal, draft) {
    this.signal = signal;
    this.draft = draft;
    this.rows = null; // not known yet
    this.failed = false; // whether that is because nobody could tell
    this.warning = h("div", { id: `${ENTRY}-warning` }); // that a key cannot be stored
    this.places = new Map();
  }

  // Return the line for one key, such as openai/work.
  line(name) {
    const place = h("div", { class: "key", "data-key": name });
    this.places.set(name, place);
    this.show(name);
    return place;
  }

  show(name) {
    const row = this.rows?.find((one) => one.upstream === name);
    const act = (what, run) => button(t(`settings.key.${what}`), "little", run);
    replace(this.places.get(name),
      h("div", { class: "row" },
        h("span", { class: "grow" }, t("settings.key"), " ",
          name.includes("/") ? [h("code", {}, name), " "] : null,
          this.rows ? state(row) : h("span", { class: "quiet" },
            t(this.failed ? "unknown" : "settings.key.asking"))),
        act(row?.fingerprint ? "replace" : "set", () => this.enter(name)),
        act("test", () => this.test(name)),
        row?.source === KEYRING ? act("remove", () => this.askToRemove(name)) : null),
      h("div", { class: "told" }));
  }

  // Ask again; `name` is the key that the user has just changed.
  async read(name = "") {
    try {
      const told = await call("keys", {}, { signal: this.signal, background: !name });
      this.rows = told.keys;
      const why = told.unread.find((store) => store.startsWith(KEYRING));
      replace(this.warning, why ? h("p", { class: "note" }, h("span", { class: "warn" }, why), ". ",
        t("settings.key.no-keyring"), " ", h("code", {}, "byok keys set NAME --store vault"))
        : null);
      dispatchEvent(new CustomEvent("byok-keys", { detail: told })); // the overview has them too
    } catch (error) {
      if (error.name === "AbortError") return;
      this.rows = null; // all else can be edited all the same
      this.failed = true;
      announce(error.message);
    }
    for (const other of this.places.keys()) {
      if (!this.told(other).childElementCount || other === name) this.show(other);
    }
    if (name) this.places.get(name)?.querySelector("button").focus();
  }

  // Return where it is said what came of it.
  told(name) {
    return this.places.get(name).querySelector(".told");
  }

  // A key is entered for one address; while another one is shown, it is not taken.
  enter(name) {
    const { shown, used } = addressesOf(this.draft, name);
    if (originOf(shown) !== originOf(used)) return replace(this.told(name), unsavedNote(used));
    const field = h("input", { id: ENTRY, type: "password", autocomplete: "off",
      spellcheck: "false", required: true, maxlength: 600,
      "aria-describedby": `${this.warning.id} ${ENTRY}-about` });
    const trouble = h("div");
    const submit = async (event) => {
      event.preventDefault();
      const key = field.value;
      field.value = ""; // it stays nowhere on the page
      await attempt(trouble, this.signal, async () => {
        await this.store(name, key, shown);
        dialog.close();
        await this.test(name);
      });
    };
    const form = h("form", { id: `${ENTRY}-form`, on: { submit } },
      h("label", { for: ENTRY }, t("settings.key.new")), field, this.warning,
      h("p", { class: "quiet small", id: `${ENTRY}-about` },
        t("settings.key.about", { origin: originOf(shown) })), trouble);
    const dialog = openDialog(t("settings.key.enter", { name }), form, (close) => [
      button(t("cancel"), "", close),
      h("button", { class: "primary", form: form.id }, t("settings.key.store")),
    ]);
    this.signal.addEventListener("abort", () => dialog.close());
    field.focus();
  }

  // Store a key for an address.
  async store(name, key, address) {
    const told = await call("key-set", { name, key, address }, { signal: this.signal });
    announce(t("settings.key.stored", told));
    await this.read(name);
  }

  askToRemove(name) {
    const told = this.told(name);
    const remove = () => attempt(told, this.signal, async () => {
      await call("key-remove", { name }, { signal: this.signal });
      announce(t("settings.key.removed", { name }));
      await this.read(name);
    });
    const sure = button(t("settings.key.remove"), "danger little", remove);
    replace(told, h("div", { class: "row" }, t("settings.key.sure", { name }), sure,
      button(t("cancel"), "little", () => {
        this.show(name);
        this.places.get(name).querySelector("button").focus();
      })));
    sure.focus();
  }

  test(name) {
    const place = this.told(name);
    replace(place, h("p", { class: "quiet" }, t("settings.key.testing")));
    const upstream = name.split("/")[0];
    return attempt(place, this.signal, async () => {
      const told = await call("key-test", { upstream }, { signal: this.signal });
      const said = !("models" in told) ? "taken" : told.with_key ? "lists" : "untried";
      replace(place, h("p", { role: "status" }, said === "untried" ? null
        : [badge("good", t("settings.key.works")), " "], t(`settings.key.${said}`, told)));
    });
  }
}

function state(row) {
  if (!row) return badge("quiet", t("settings.key.needless"));
  if (!row.fingerprint) {
    return row.error ? [badge("bad", t("settings.key.failed")), " ", row.error]
      : badge("quiet", t("settings.key.missing"));
  }
  return [badge("good", t("settings.key.there")), " ", h("span", { class: "quiet small" }, dots(
    t("settings.key.from", { source: row.source }),
    h("code", { title: t("settings.key.fingerprint") }, row.fingerprint)))];
}

const unsavedNote = (used) => h("p", { class: "error", role: "alert" },
  t("settings.key.unsaved", { origin: originOf(used) || t("none") }));
