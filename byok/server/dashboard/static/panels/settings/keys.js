// The keys of upstreams: whether each is set and where it is stored, never the key itself.

import { call } from "../../api.js";
import {
  announce, attempt, badge, breakable, button, commandBox, confirmButton, FORM_ID, formButton, h,
  joinWithDots, lineField, openForm, replace,
} from "../../dom.js";
import { t, textParts } from "../../texts.js";
import { announceUpstreams } from "../../upstream-state.js";
import { addressesOf, originOf } from "./address.js";
import { chooseDefault } from "./fields.js";

// byok's own stores; the answer about keys has their faults under these names.
export const STORES = ["keyring", "vault"];
// Sources of a key, as the daemon names them.
const KEYRING = "OS keyring";
const VAULT = "vault";
// A key from another source is used before one in a store of byok, so it cannot be replaced there.
const REPLACEABLE_SOURCES = [KEYRING, VAULT, "none"];
const NAMED_SOURCES = ["api_key_cmd", "systemd credential"]; // others are variables
const ENTRY_ID = "key-entry";
const UNLOCK_COMMAND = "read -rs BYOK_VAULT_PASSPHRASE && export BYOK_VAULT_PASSPHRASE";

// Return whether a key can be stored, because no other source gives it.
export const canStore = ({ source }) => REPLACEABLE_SOURCES.includes(source);

// Return the text of the button for a key: set, replace, or show from where it comes.
export const keyActionText = (row) => t(`settings.key.${!row?.fingerprint ? "set"
  : canStore(row) ? "replace" : "from-where"}`);

// Return a note that a store cannot be used, and why.
export const storeFault = (store, faults) => h("p", { class: "note" },
  t(`settings.key.no.${store}`, { why: faults[store].replace(/[.。]$/u, "") }));

// The state of all keys, and the lines that show it.
export class Keys {
  constructor(signal, draft) {
    this.signal = signal;
    this.draft = draft;
    this.rows = null; // the keys; null while they are unknown
    this.hasFailed = false; // whether loading them has failed
    this.faults = {}; // by store
    this.lines = new Map(); // elements by name of a key
  }

  // Return the line for a key, such as openai/work.
  line(name) {
    const line = h("div", { class: "key", "data-key": name });
    this.lines.set(name, line);
    this.show(name);
    return line;
  }

  show(name) {
    const row = this.rows?.find((key) => key.upstream === name);
    replace(this.lines.get(name),
      h("div", { class: "row" },
        h("span", { class: "grow" }, t("settings.key"), " ",
          name.includes("/") ? [h("code", {}, name), " "] : null,
          this.rows ? keyState(row) : h("span", { class: "quiet" },
            t(this.hasFailed ? "unknown" : "settings.key.asking"))),
        button(keyActionText(row), "little", () => this.enter(name)),
        button(t("settings.key.test"), "little", () => this.test(name)),
        [KEYRING, VAULT].includes(row?.source) ? confirmButton(t("settings.key.remove"),
          t("settings.key.sure", { name }), () => this.remove(row)) : null),
      h("div", { class: "told" }));
  }

  // Load the keys again; `name` is the key that the user has just changed.
  async load(name = "") {
    try {
      const answer = await call("keys", {}, { signal: this.signal, background: !name });
      this.rows = answer.keys;
      this.faults = answer;
      dispatchEvent(new CustomEvent("byok-keys", { detail: answer })); // for the overview
    } catch (error) {
      if (error.name === "AbortError") return;
      this.rows = null; // everything else can still be edited
      this.hasFailed = true;
      announce(error.message);
    }
    for (const other of this.lines.keys()) {
      if (!this.resultOf(other).childElementCount || other === name) this.show(other);
    }
    if (!name) return;
    this.lines.get(name)?.querySelector("button").focus();
    announceUpstreams(); // byok checks them again
  }

  // Return the element for the result of the last action with a key.
  resultOf(name) {
    return this.lines.get(name).querySelector(".told");
  }

  // Return {element, offer, show, usesVault}: where the key that is entered in `field` will be stored.
  // The element shows `about`; without a keyring it explains the vault, and `offer` is the box that
  // agrees to it. If `findSource()` returns a source that byok cannot replace, the element names it,
  // and the field and `others` are hidden. `show()` updates all that.
  storageChoice(findSource, about, field, ...others) {
    const slot = h("div", { id: `${ENTRY_ID}-storage` });
    const checkbox = h("input", { type: "checkbox", form: FORM_ID });
    const offer = h("label", { class: "row grow offer" }, checkbox, t("settings.key.use-vault"));
    const usesVault = () => !offer.hidden && checkbox.checked;
    const requireChoice = () => { checkbox.required = !offer.hidden && Boolean(field.value); };
    const show = () => {
      const { source = "none", from } = findSource() ?? {};
      const isReplaceable = canStore({ source });
      const { keyring, vault } = this.faults;
      const note = isReplaceable ? keyring && this.vaultNote()
        : t(`settings.key.${NAMED_SOURCES.includes(source) ? "given" : "variable"}`,
          { source: from });
      replace(slot, h("div", { class: note ? "note" : "quiet small" }, note || about));
      offer.hidden = Boolean(!isReplaceable || !keyring || vault);
      field.disabled = Boolean(note) && offer.hidden;
      for (const element of [field, ...others]) element.hidden = field.disabled;
      requireChoice();
    };
    field.addEventListener("input", requireChoice);
    addEventListener("byok-keys", show, { signal: this.signal });
    show();
    return { element: slot, offer, show, usesVault };
  }

  // Return a note that explains the vault, or says how it is unlocked.
  vaultNote() {
    const { faults } = this;
    return [storeFault("keyring", faults), faults.vault
      ? [storeFault("vault", faults), h("p", {}, t("settings.key.no-vault")),
        commandBox(UNLOCK_COMMAND)] : null,
    h("details", {}, h("summary", {}, t("settings.key.what-vault")),
      h("p", {}, t("settings.key.vault")))];
  }

  // Let the user enter a key. A key belongs to one address, so while another one is shown that is not
  // saved yet, no key can be entered.
  async enter(name) {
    const { shown, used } = addressesOf(this.draft, name);
    if (originOf(shown) !== originOf(used)) {
      return replace(this.resultOf(name), unsavedAddressNote(used));
    }
    const field = lineField({ id: ENTRY_ID, type: "password", required: true, maxlength: 600,
      "aria-describedby": `${ENTRY_ID}-storage` });
    const store = formButton(t("settings.key.store"));
    const label = h("label", { for: ENTRY_ID }, t("settings.key.new"));
    const findKey = () => this.rows?.find((key) => key.upstream === name);
    const { element, offer, usesVault } = this.storageChoice(findKey,
      t("settings.key.about", { origin: originOf(shown) }), field, label, store);
    const isStored = await openForm(t("settings.key.enter", { name }), store,
      [label, field, element],
      () => this.store(name, field.value, shown, usesVault()), this.signal, offer);
    if (isStored) await this.test(name);
  }

  async store(name, key, address, vault) {
    const answer = await call("key-set", { name, key, address, vault }, { signal: this.signal });
    announce(t("settings.key.stored", answer));
    await this.load(name);
  }

  remove({ upstream: name, source }) {
    return attempt(this.resultOf(name), this.signal, async () => {
      await call("key-remove", { name, vault: source === VAULT }, { signal: this.signal });
      announce(t("settings.key.removed", { name }));
      await this.load(name);
    });
  }

  // Lead the user to a key, and test it.
  showAndTest(name) {
    const line = this.lines.get(name);
    line.scrollIntoView({ block: "center" });
    line.querySelector("button").focus({ preventScroll: true });
    return this.test(name);
  }

  test(name) {
    const slot = this.resultOf(name);
    replace(slot, h("p", { class: "quiet" }, t("settings.key.testing")));
    const upstream = name.split("/")[0];
    const { fixed, locked } = this.draft.field(["routing", "default"]);
    return attempt(slot, this.signal, async () => {
      const result = await call("key-test", { upstream }, { signal: this.signal });
      const outcome = !("models" in result) ? "taken" : result.with_key ? "lists" : "untried";
      const canChoose = result.models && !fixed && !locked && !this.draft.form.blocked;
      const choose = () =>
        attempt(slot, this.signal, () => chooseDefault(this.draft, upstream, this.signal));
      replace(slot, h("p", { role: "status" },
        outcome === "untried" ? null : [badge("good", t("settings.key.works")), " "],
        t(`settings.key.${outcome}`, result), " ",
        canChoose ? button(t("settings.key.use"), "little", choose) : null));
    }).then(announceUpstreams);
  }
}

// Return the state of a key: whether it is set, and its source and fingerprint. Without a row, the
// upstream needs no key.
export function keyState(row) {
  if (!row) return badge("quiet", t("settings.key.needless"));
  if (!row.fingerprint) {
    return row.error ? [badge("bad", t("settings.key.failed")), " ", row.error]
      : [badge("quiet", t("settings.unset")),
        row.local ? h("span", { class: "quiet small" }, " ", t("settings.key.local")) : null];
  }
  return [badge("good", t("settings.key.there")), " ", h("span", { class: "quiet small" }, joinWithDots(
    textParts("settings.key.from", { source: breakable(row.from) }),
    h("code", { title: t("settings.key.fingerprint") }, row.fingerprint)))];
}

const unsavedAddressNote = (used) => h("p", { class: "error", role: "alert" },
  t("settings.key.unsaved", { origin: originOf(used) || t("none") }));
