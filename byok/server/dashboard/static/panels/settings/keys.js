// The key of an upstream: whether it is set and where, never the key itself.

import { call } from "../../api.js";
import {
  announce, askingButton, attempt, badge, breakable, button, command, dots, formButton, h, lineField,
  openForm, replace,
} from "../../dom.js";
import { parts, t } from "../../texts.js";
import { tellUpstreams } from "../../upstream-state.js";
import { addressesOf, originOf } from "./address.js";
import { chooseDefault } from "./fields.js";

export const STORES = ["keyring", "vault"]; // of byok's; the answer about keys has their `faults`
const KEYRING = "OS keyring";
const VAULT = "vault";
const LAST = [KEYRING, VAULT, "none"]; // a key is looked for elsewhere before
const GIVEN = ["api_key_cmd", "systemd credential"]; // else a variable has it
const ENTRY = "key-entry";
const UNLOCK = "read -rs BYOK_VAULT_PASSPHRASE && export BYOK_VAULT_PASSPHRASE";

// Return the name of what is done with a key: one from outside is not replaced here.
export const keyAct = (row) => t(`settings.key.${!row?.fingerprint ? "set"
  : LAST.includes(row.source) ? "replace" : "from-where"}`);

// Say that a store cannot be used, and why.
export const storeFault = (store, faults) => h("p", { class: "note" },
  t(`settings.key.no.${store}`, { why: faults[store].replace(/[.。]$/u, "") }));

// What the daemon says of all keys, and the lines that show it.
export class Keys {
  constructor(signal, draft) {
    this.signal = signal;
    this.draft = draft;
    this.rows = null; // not known yet
    this.failed = false; // whether that is because nobody could tell
    this.faults = {}; // of stores
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
    replace(this.places.get(name),
      h("div", { class: "row" },
        h("span", { class: "grow" }, t("settings.key"), " ",
          name.includes("/") ? [h("code", {}, name), " "] : null,
          this.rows ? keyState(row) : h("span", { class: "quiet" },
            t(this.failed ? "unknown" : "settings.key.asking"))),
        button(keyAct(row), "little", () => this.enter(name)),
        button(t("settings.key.test"), "little", () => this.test(name)),
        [KEYRING, VAULT].includes(row?.source) ? askingButton(t("settings.key.remove"),
          t("settings.key.sure", { name }), () => this.remove(row)) : null),
      h("div", { class: "told" }));
  }

  // Ask again; `name` is the key that the user has just changed.
  async read(name = "") {
    try {
      const told = await call("keys", {}, { signal: this.signal, background: !name });
      this.rows = told.keys;
      this.faults = told;
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
    if (!name) return;
    this.places.get(name)?.querySelector("button").focus();
    tellUpstreams(); // byok asks them anew
  }

  // Return where it is said what came of it.
  told(name) {
    return this.places.get(name).querySelector(".told");
  }

  // Return what says where the key that is entered in `field` goes: `about`, unless `found()` is from
  // elsewhere: then the field and `others` are not shown. Where there is no keyring it goes into the
  // vault, if the user wants that.
  storage(found, about, field, ...others) {
    const place = h("div", { id: `${ENTRY}-storage` });
    const wish = h("input", { type: "checkbox" });
    const offer = h("label", { class: "row" }, wish, t("settings.key.use-vault"));
    const usesVault = () => place.contains(wish) && wish.checked;
    const check = () => { wish.required = Boolean(field.value); };
    const show = () => {
      const { source = "none", from } = found() ?? {};
      const note = LAST.includes(source) ? this.faults.keyring && this.otherStore(offer)
        : t(`settings.key.${GIVEN.includes(source) ? "given" : "variable"}`, { source: from });
      replace(place, h("div", { class: note ? "note" : "quiet small" }, note || about));
      field.disabled = Boolean(note) && !place.contains(wish);
      for (const one of [field, ...others]) one.hidden = field.disabled;
    };
    field.addEventListener("input", check);
    addEventListener("byok-keys", show, { signal: this.signal });
    show();
    return { place, show, usesVault };
  }

  // Offer the vault, and say what it is; or how it is opened.
  otherStore(offer) {
    const { faults } = this;
    return [storeFault("keyring", faults), faults.vault
      ? [storeFault("vault", faults), h("p", {}, t("settings.key.no-vault")), command(UNLOCK)] : offer,
    h("details", {}, h("summary", {}, t("settings.key.what-vault")),
      h("p", {}, t("settings.key.vault")))];
  }

  // A key is entered for one address; while another one is shown, it is not taken.
  async enter(name) {
    const { shown, used } = addressesOf(this.draft, name);
    if (originOf(shown) !== originOf(used)) return replace(this.told(name), unsavedNote(used));
    const field = lineField({ id: ENTRY, type: "password", required: true, maxlength: 600,
      "aria-describedby": `${ENTRY}-storage` });
    const store = formButton(t("settings.key.store"));
    const label = h("label", { for: ENTRY }, t("settings.key.new"));
    const { place, usesVault } = this.storage(() => this.rows?.find((one) => one.upstream === name),
      t("settings.key.about", { origin: originOf(shown) }), field, label, store);
    const isStored = await openForm(t("settings.key.enter", { name }), store, [label, field, place],
      () => this.store(name, field.value, shown, usesVault()), this.signal);
    if (isStored) await this.test(name);
  }

  // Store a key for an address.
  async store(name, key, address, vault) {
    const told = await call("key-set", { name, key, address, vault }, { signal: this.signal });
    announce(t("settings.key.stored", told));
    await this.read(name);
  }

  remove({ upstream: name, source }) {
    return attempt(this.told(name), this.signal, async () => {
      await call("key-remove", { name, vault: source === VAULT }, { signal: this.signal });
      announce(t("settings.key.removed", { name }));
      await this.read(name);
    });
  }

  // Lead the user to a key, and test it.
  lead(name) {
    const place = this.places.get(name);
    place.scrollIntoView({ block: "center" });
    place.querySelector("button").focus({ preventScroll: true });
    return this.test(name);
  }

  test(name) {
    const place = this.told(name);
    replace(place, h("p", { class: "quiet" }, t("settings.key.testing")));
    const upstream = name.split("/")[0];
    const { fixed, locked } = this.draft.field(["routing", "default"]);
    return attempt(place, this.signal, async () => {
      const told = await call("key-test", { upstream }, { signal: this.signal });
      const said = !("models" in told) ? "taken" : told.with_key ? "lists" : "untried";
      replace(place, h("p", { role: "status" }, said === "untried" ? null
        : [badge("good", t("settings.key.works")), " "], t(`settings.key.${said}`, told), " ",
      told.models && !fixed && !locked && !this.draft.form.blocked ? button(t("settings.key.use"), "little",
        () => attempt(place, this.signal,
          () => chooseDefault(this.draft, upstream, this.signal))) : null));
    }).then(tellUpstreams);
  }
}

export function keyState(row) {
  if (!row) return badge("quiet", t("settings.key.needless"));
  if (!row.fingerprint) {
    return row.error ? [badge("bad", t("settings.key.failed")), " ", row.error]
      : [badge("quiet", t("settings.unset")),
        row.local ? h("span", { class: "quiet small" }, " ", t("settings.key.local")) : null];
  }
  return [badge("good", t("settings.key.there")), " ", h("span", { class: "quiet small" }, dots(
    parts("settings.key.from", { source: breakable(row.from) }),
    h("code", { title: t("settings.key.fingerprint") }, row.fingerprint)))];
}

const unsavedNote = (used) => h("p", { class: "error", role: "alert" },
  t("settings.key.unsaved", { origin: originOf(used) || t("none") }));
