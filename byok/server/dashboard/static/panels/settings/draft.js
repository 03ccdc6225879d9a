// What the user changed and has not saved. It outlives the panel: who looks at another
// panel, or changes the language, finds it again.

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const isUpstream = (path) => path[0] === "upstreams" && path.length === 2;
export const keyOf = (path) => JSON.stringify(path);
export const fieldsOf = (form) => [...form.groups, ...form.upstreams].flatMap((part) => part.fields);

export class Draft {
  constructor() {
    this.form = null; // as the daemon gave it
    this.changes = new Map(); // by key: {path, value} or {path, remove: true}
    this.invalid = new Map(); // what the browser itself refuses: {message, text} by key
    this.faults = new Map(); // what the daemon refuses
    this.changed = () => {};
    addEventListener("beforeunload", (event) => {
      if (this.size) event.preventDefault();
    });
  }

  get size() {
    return new Set([...this.changes.keys(), ...this.invalid.keys()]).size;
  }

  // Take over a form; changes that it has already are none any more.
  adopt(form) {
    this.form = form;
    this.faults = new Map(form.faults.map((fault) => [keyOf(fault.path), fault.message]));
    for (const [key, change] of this.changes) {
      const field = this.field(change.path);
      if (field && !change.remove && same(field.given, change.value)) this.changes.delete(key);
      if (field && change.remove && !("given" in field)) this.changes.delete(key);
      const isThere = form.upstreams.some((one) => one.in_file && one.name === change.path[1]);
      if (isUpstream(change.path) && !isThere) this.changes.delete(key);
    }
  }

  // Return the field at a path as the file has it.
  field(path) {
    return fieldsOf(this.form).find((field) => keyOf(field.path) === keyOf(path));
  }

  // Return what a field shows: the change, else what the file says, else undefined.
  shown(field) {
    const change = this.changes.get(keyOf(field.path));
    if (change) return change.remove ? undefined : change.value;
    return field.odd || field.locked ? undefined : field.given;
  }

  isChanged(path) {
    return this.changes.has(keyOf(path)) || this.invalid.has(keyOf(path));
  }

  // Tell a list that is there and has no entry.
  isEmptyList(field) {
    return this.shown(field)?.length === 0;
  }

  // Note a new value; undefined takes it out of the file.
  set(field, value) {
    const key = keyOf(field.path);
    this.invalid.delete(key);
    const inFile = "given" in field;
    const isAsBefore = value === undefined ? !inFile
      : inFile && !field.odd && same(field.given, value);
    if (isAsBefore) this.changes.delete(key);
    else this.changes.set(key, value === undefined ? { path: field.path, remove: true }
      : { path: field.path, value });
    this.changed();
  }

  // Note that a field holds what cannot even be asked for; its text is kept.
  refuse(field, message, text) {
    this.invalid.set(keyOf(field.path), { message, text });
    this.changed();
  }

  // Note that an upstream is to be removed, or not; what was changed in it counts no more.
  setRemoved(name, isRemoved) {
    const path = ["upstreams", name];
    for (const notes of [this.changes, this.invalid, this.faults]) {
      for (const key of [...notes.keys()]) {
        if (keyOf(JSON.parse(key).slice(0, 2)) === keyOf(path)) notes.delete(key);
      }
    }
    if (isRemoved) this.changes.set(keyOf(path), { path, remove: true });
    this.changed();
  }

  removes(name) {
    return this.changes.has(keyOf(["upstreams", name]));
  }

  // Return which upstreams are to be removed, for a comparison.
  get removed() {
    return JSON.stringify(this.list.filter((change) => isUpstream(change.path)));
  }

  // Return the names of what is changed and needs a restart.
  get restarts() {
    return this.list.filter((change) => this.field(change.path)?.restart)
      .map(({ path }) => path.join("."));
  }

  fault(path) {
    return this.invalid.get(keyOf(path))?.message ?? this.faults.get(keyOf(path));
  }

  drop(path) {
    this.changes.delete(keyOf(path));
    this.invalid.delete(keyOf(path));
  }

  // Forget changes that are saved; what was changed since is kept.
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

  get list() {
    return [...this.changes.values()];
  }
}
