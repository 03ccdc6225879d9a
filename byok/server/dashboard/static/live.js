// Live requests: one stream for the whole page, whatever panels listen to it. It is
// closed while nobody sees the page, and opened again when the daemon was away.

import { isSignedIn, onEnd, stream } from "./api.js";

export const MOST_ENDED = 200;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10000;
const LONGEST_SILENCE = 40000; // the daemon says something every 15 s

const rows = new Map(); // by id: those that ended in the order of their ends, and open ones
const listeners = new Set();
const stateListeners = new Set();
let state = "off";
let restarts = false; // the daemon, away meanwhile
let ended = 0;
let isWhole = false; // whether `rows` are what the daemon told
let connection = null; // the AbortController of the stream that is open or tried

// Listen to the requests until `signal` is aborted. The listener gets {reset, changed,
// rows}: with `reset` everything may differ, else the `changed` rows. A row has the facts of the journal, `sent`, `pieces`, `received` and `reads` (null
// where nobody counted), `rate` in bytes a second, and `at`, when it was told.
export function onRequests(listener, signal) {
  listeners.add(listener);
  signal.addEventListener("abort", () => listeners.delete(listener));
  if (isWhole) listener({ reset: true, changed: [...rows.values()], rows });
}

// Call `listener` with the state of the connection, now and whenever it changes: off,
// connecting, on, lost, restarting, or replaced.
export function onState(listener, signal = null) {
  stateListeners.add(listener);
  signal?.addEventListener("abort", () => stateListeners.delete(listener));
  listener(state);
}

// Return the ids of the requests that are known.
export const liveRequests = () => rows.keys();

// Open the stream unless it is open, nobody is signed in, or nobody sees the page.
export function connect() {
  if (connection || document.hidden || !isSignedIn()) return;
  connection = new AbortController();
  keepOpen(connection);
}

function disconnect() {
  connection?.abort();
  connection = null;
  setState("off");
}

async function keepOpen(mine) {
  const { signal } = mine;
  let pause = FIRST_PAUSE;
  setState("connecting");
  while (!signal.aborted) {
    const end = await read(signal, () => { pause = FIRST_PAUSE; });
    if (signal.aborted) return;
    if (end === "replaced") break;
    if (end === "session") { // another try tells why, unless the user has signed out
      await sleep(FIRST_PAUSE, signal);
      continue;
    }
    setState("lost");
    await sleep(pause, signal);
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  }
  if (connection !== mine) return;
  connection = null;
  setState("replaced");
}

// Read one stream to its end; return why it ended, "" if that was not told.
async function read(signal, onLine) {
  const broken = new AbortController();
  let end = "";
  let silence = 0;
  const listen = (told) => {
    clearTimeout(silence);
    silence = setTimeout(() => broken.abort(), LONGEST_SILENCE);
    if (told.end) {
      end = told.end;
      return;
    }
    onLine();
    setState("on");
    if (told.rows) take(told);
  };
  try {
    await stream("live", {}, listen, { signal: AbortSignal.any([signal, broken.signal]) });
  } catch (error) {
    // Without a session the frame shows sign-in; a daemon that is away is tried again.
    if (error instanceof SyntaxError) reportError(error);
  } finally {
    clearTimeout(silence);
    broken.abort(); // whatever is left of it
  }
  return end;
}

// Take a batch of the daemon: facts of requests, or new counts of some.
function take({ rows: told, whole }) {
  if (whole) {
    rows.clear();
    ended = 0;
  }
  const changed = [];
  for (const row of told) {
    const known = rows.get(row.request_id);
    if (!known && row.outcome === undefined) continue;
    changed.push(keep(known, row));
  }
  drop();
  isWhole = true;
  const news = { reset: whole, changed: whole ? [...rows.values()] : changed, rows };
  for (const listener of [...listeners]) {
    try {
      listener(news);
    } catch (error) {
      reportError(error); // a fault of one panel does not end the stream of all
    }
  }
}

function keep(known, told) {
  const row = { ...known, ...told, at: performance.now() };
  const seconds = known ? row.seconds - known.seconds : row.seconds;
  row.rate = seconds > 0 ? (row.sent - (known?.sent ?? 0)) / seconds : known?.rate ?? 0;
  if (row.outcome !== "open") {
    if (!known || known.outcome === "open") ended += 1;
    row.rate = row.seconds > 0 ? row.sent / row.seconds : 0;
    rows.delete(row.request_id); // it goes behind those that ended before
  }
  rows.set(row.request_id, row);
  return row;
}

// Forget the oldest of too many that ended.
function drop() {
  for (const [id, row] of rows) {
    if (ended <= MOST_ENDED) break;
    if (row.outcome === "open") continue;
    rows.delete(id);
    ended -= 1;
  }
}

// Say whether the daemon is about to restart.
export const expectRestart = (expected) => { restarts = expected; };

function setState(told) {
  const name = told === "lost" && restarts ? "restarting" : told;
  if (name === state) return;
  if (name === "on") restarts = false;
  state = name;
  for (const listener of stateListeners) listener(name);
}

function sleep(milliseconds, signal) {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, milliseconds);
    signal.addEventListener("abort", wake);
  });
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) disconnect();
  else connect();
});
onEnd(() => {
  disconnect();
  rows.clear();
  ended = 0;
  isWhole = false;
});
