// Live requests: one stream for the whole page, to which panels listen. It is closed while the page
// is hidden, and opened again after the daemon was away.

import { isSignedIn, onSessionEnd, stream } from "./api.js";

export const MAX_ENDED = 200; // ended requests that are stored
const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 10000;
const MAX_SILENCE_MS = 40000; // the daemon sends a line every 15 s at least

const rows = new Map(); // by id; ended ones are in the order in which they ended
const listeners = new Set();
const stateListeners = new Set();
let state = "off"; // see onState
let isRestartExpected = false;
let endedCount = 0;
let isSynced = false; // whether `rows` are those of the daemon
let connection = null; // the AbortController of the stream that is open or being opened

// Listen to the requests, until `signal` is aborted. The listener gets {reset, changed, rows}: with
// `reset` any row may differ, else only the `changed` ones do. A row has the fields of the journal,
// the counts `sent` and `received` in bytes, `pieces` and `reads` (null where nobody counted),
// `rate` in bytes a second, and `at`, when it was received, as `performance.now()`.
export function onRequests(listener, signal = null) {
  listeners.add(listener);
  signal?.addEventListener("abort", () => listeners.delete(listener));
  if (isSynced) listener({ reset: true, changed: [...rows.values()], rows });
}

// Call `listener` with the state of the connection, now and at each change until `signal` is aborted:
// off, connecting, on, lost, restarting, or replaced (too many pages are open).
export function onState(listener, signal = null) {
  stateListeners.add(listener);
  signal?.addEventListener("abort", () => stateListeners.delete(listener));
  listener(state);
}

// Return the ids of the requests that are stored.
export const liveRequestIds = () => rows.keys();

// Set whether the daemon is about to restart.
export const expectRestart = (expected) => { isRestartExpected = expected; };

// Open the stream unless it is open, nobody is signed in, or the page is hidden.
export function connect() {
  if (connection || document.hidden || !isSignedIn()) return;
  connection = new AbortController();
  keepConnected(connection);
}

function disconnect() {
  connection?.abort();
  connection = null;
  setState("off");
}

// Open one stream after the other, with growing pauses while the daemon is away.
async function keepConnected(controller) {
  const { signal } = controller;
  let pause = MIN_RETRY_MS;
  setState("connecting");
  while (!signal.aborted) {
    const end = await readStream(signal, () => { pause = MIN_RETRY_MS; });
    if (signal.aborted) return;
    if (end === "replaced") break;
    if (end === "session") { // the next call ends the session here, unless the user signed out
      await sleep(MIN_RETRY_MS, signal);
      continue;
    }
    setState("lost");
    await sleep(pause, signal);
    pause = Math.min(2 * pause, MAX_RETRY_MS);
  }
  if (connection !== controller) return;
  connection = null;
  setState("replaced");
}

// Read one stream to its end. Return the reason that the daemon gave for the end, "" if none.
async function readStream(signal, onMessage) {
  const stalled = new AbortController();
  let end = "";
  let silenceTimer = 0;
  const receive = (message) => {
    clearTimeout(silenceTimer);
    silenceTimer = setTimeout(() => stalled.abort(), MAX_SILENCE_MS);
    if (message.end) {
      end = message.end;
      return;
    }
    onMessage();
    setState("on");
    if (message.rows) applyBatch(message);
  };
  try {
    await stream("live", {}, receive, { signal: AbortSignal.any([signal, stalled.signal]) });
  } catch (error) {
    // Without a session the frame shows the sign-in form; keepConnected tries an absent daemon again.
    if (error instanceof SyntaxError) reportError(error);
  } finally {
    clearTimeout(silenceTimer);
    stalled.abort(); // closes a stream that is still open
  }
  return end;
}

// Store a batch of the daemon, with whole requests or only their new counts, and tell the listeners.
// With `whole` it replaces all rows.
function applyBatch({ rows: updates, whole }) {
  if (whole) {
    rows.clear();
    endedCount = 0;
  }
  const changed = [];
  for (const update of updates) {
    const stored = rows.get(update.request_id);
    if (!stored && update.outcome === undefined) continue;
    changed.push(storeRow(stored, update));
  }
  dropOldest();
  isSynced = true;
  const event = { reset: whole, changed: whole ? [...rows.values()] : changed, rows };
  for (const listener of [...listeners]) {
    try {
      listener(event);
    } catch (error) {
      reportError(error); // an error of one panel must not end the stream of all
    }
  }
}

// Store a row and return it. `previous` is the stored one, if any.
function storeRow(previous, update) {
  const row = { ...previous, ...update, at: performance.now() };
  const seconds = previous ? row.seconds - previous.seconds : row.seconds;
  row.rate = seconds > 0 ? (row.sent - (previous?.sent ?? 0)) / seconds : previous?.rate ?? 0;
  if (row.outcome !== "open") {
    if (!previous || previous.outcome === "open") endedCount += 1;
    row.rate = row.seconds > 0 ? row.sent / row.seconds : 0;
    rows.delete(row.request_id); // it moves behind the rows that ended before
  }
  rows.set(row.request_id, row);
  return row;
}

// Remove the oldest ended rows beyond the maximum.
function dropOldest() {
  for (const [id, row] of rows) {
    if (endedCount <= MAX_ENDED) break;
    if (row.outcome === "open") continue;
    rows.delete(id);
    endedCount -= 1;
  }
}

function setState(requested) {
  const name = requested === "lost" && isRestartExpected ? "restarting" : requested;
  if (name === state) return;
  if (name === "on") isRestartExpected = false;
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
onSessionEnd(() => {
  disconnect();
  rows.clear();
  endedCount = 0;
  isSynced = false;
});
