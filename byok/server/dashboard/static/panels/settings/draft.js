// The unsaved changes of the settings. They outlive the panel, so that they are still there when the
// user comes back from another panel, or has changed the language.

// Return the key of a setting by its path, such as ["routing", "default"].
export const keyOf = (path) => JSON.stringify(path);
export const fieldsOf = (form) => [...form.groups, ...form.upstreams].flatMap((part) => part.fields);
const isEqual = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const isUpstream = (path) => path[0] === "upstreams" && path.length === 2;

export class Draft {
  constructor() {
    this.form = null; // the settings of the file, as the daemon sent them
    this.changes = new Map(); // {path, value} or {path, remove: true} by key
    this.invalid = new Map(); // texts that the browser itself refuses, {message, text} by key
    this.faults = new Map(); // messages of the daemon by key
    this.onChange = () => {};
    addEventListener("beforeunload", (event) => {
      if (this.size) event.preventDefault();
    });
  }

  get size() {
    return new Set([...this.changes.keys(), ...this.invalid.keys()]).size;
  }

  // Take over a form, and remove changes that the file has already.
  adopt(form) {
    this.form = form;
    this.faults = new Map(form.faults.map((fault) => [keyOf(fault.path), fault.message]));
    for (const [key, change] of this.changes) {
      const field = this.field(change.path);
      if (field && !change.remove && isEqual(field.given, change.value)) this.changes.delete(key);
      if (field && change.remove && !("given" in field)) this.changes.delete(key);
      const isThere = form.upstreams.some((one) => one.in_file && one.name === change.path[1]);
      if (isUpstream(change.path) && !isThere) this.changes.delete(key);
    }
  }

  // Return the field at a path as the file has it.
  field(path) {
    return fieldsOf(this.form).find((field) => keyOf(field.path) === keyOf(path));
  }

  // Return the value that a field shows: the change, else the value in the file, else undefined.
  shownValue(field) {
    const change = this.changes.get(keyOf(field.path));
    if (change) return change.remove ? undefined : change.value;
    return field.odd || field.locked ? undefined : field.given;
  }

  isChanged(path) {
    return this.changes.has(keyOf(path)) || this.invalid.has(keyOf(path));
  }

  // Return whether a field is set to a list without entries.
  isEmptyList(field) {
    return this.shownValue(field)?.length === 0;
  }

  // Store a new value of a field; undefined removes the setting from the file.
  set(field, value) {
    const key = keyOf(field.path);
    this.invalid.delete(key);
    const inFile = "given" in field;
    const isAsBefore = value === undefined ? !inFile
      : inFile && !field.odd && isEqual(field.given, value);
    if (isAsBefore) this.changes.delete(key);
    else this.changes.set(key, value === undefined ? { path: field.path, remove: true }
      : { path: field.path, value });
    this.onChange();
  }

  // Store a text that is no value for a field, so that the field shows it again.
  refuse(field, message, text) {
    this.invalid.set(keyOf(field.path), { message, text });
    this.onChange();
  }

  // Store whether an upstream is to be removed. Changes of its settings are dropped.
  setRemoved(name, isRemoved) {
    const path = ["upstreams", name];
    for (const entries of [this.changes, this.invalid, this.faults]) {
      for (const key of [...entries.keys()]) {
        if (keyOf(JSON.parse(key).slice(0, 2)) === keyOf(path)) entries.delete(key);
      }
    }
    if (isRemoved) this.changes.set(keyOf(path), { path, remove: true });
    this.onChange();
  }

  isRemoved(name) {
    return this.changes.has(keyOf(["upstreams", name]));
  }

  // Return the upstreams that are to be removed, as a text to compare.
  get removals() {
    return JSON.stringify(this.changeList.filter((change) => isUpstream(change.path)));
  }

  // Return the names of changed settings that need a restart.
  get restarts() {
    return this.changeList.filter((change) => this.field(change.path)?.restart)
      .map(({ path }) => path.join("."));
  }

  faultOf(path) {
    return this.invalid.get(keyOf(path))?.message ?? this.faults.get(keyOf(path));
  }

  drop(path) {
    this.changes.delete(keyOf(path));
    this.invalid.delete(keyOf(path));
  }

  // Remove changes that have been saved, but not newer changes of the same settings.
  forget(saved) {
    for (const change of saved) {
      const key = keyOf(change.path);
      if (this.changes.get(key) === change) this.changes.delete(key);
    }
  }

  clear() {
    this.changes.clear();
    this.invalid.clear();
    this.faults.clear();
  }

  get changeList() {
    return [...this.changes.values()];
  }
}
