// The daemon's interface for this page: POST /ui/api/NAME with the session's token. The token is
// only sent to a program that has proved to be the daemon that issued it (see session.js).

import { broadcastEnd, dropToken, getToken, proveDaemon, setToken, shareToken } from "./session.js";
import { language, t } from "./texts.js";

const endListeners = new Set();
let askForCode = null; // see setCodePrompt

// An error of the daemon: `code` is one of `byok explain`, `hint` says what to do. `status` is the
// HTTP status, 0 where no daemon answered.
export class ApiError extends Error {
  constructor(status, error) {
    super(error.message ?? "");
    this.status = status;
    this.code = error.code ?? "";
    this.hint = error.hint ?? "";
  }
}

export const isSignedIn = () => getToken() !== null;

// Call `listener` when the session ends, with the error that reported it, or null.
export const onSessionEnd = (listener) => endListeners.add(listener);

// Set the function that asks the user for a new code when a change needs one. It gets the error,
// and returns a promise of the code, "" if the user gives none.
export const setCodePrompt = (ask) => { askForCode = ask; };

export async function signIn(code) {
  const answer = await post("sign-in", { code }, {});
  setToken((await answer.json()).token);
}

export async function signOut() {
  const token = getToken();
  try {
    await call("sign-out");
  } finally {
    if (token) broadcastEnd(token);
    endSession();
  }
}

// Call an endpoint and return the object of its answer. `background` marks a request that the
// user did not make: it does not prolong the session.
export async function call(name, body = {}, { signal, background = false } = {}) {
  return (await post(name, body, { signal, background })).json();
}

// Call `onObject` with each object of a streamed answer (one JSON object a line) until it ends.
export async function stream(name, body, onObject, { signal } = {}) {
  const answer = await post(name, body, { signal, background: true });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let partialLine = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (partialLine + value).split("\n");
    partialLine = lines.pop();
    for (const line of lines) if (line) onObject(JSON.parse(line));
  }
}

async function post(name, body, { signal, background }) {
  const needsNoSession = name === "sign-in" || name === "prove";
  if (!needsNoSession) await requireDaemon();
  const token = needsNoSession ? null : getToken();
  const headers = { "Content-Type": "application/json", "Accept-Language": language() };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (background) headers["X-Byok-Background"] = "1";
  const options = { method: "POST", headers, body: JSON.stringify(body), signal };
  const answer = await fetch(`/ui/api/${name}`, options).catch(throwUnreachable);
  if (answer.ok) return answer;
  const failure = await answer.json().catch(() => ({}));
  const error = new ApiError(answer.status, failure.error ?? {});
  if (error.code === "dashboard_confirm" && askForCode && await confirmSession(error)) {
    return post(name, body, { signal, background });
  }
  // A late answer about a previous session must not end the current one.
  const isCurrentSession = name === "prove" || getToken() === token;
  if (error.code === "dashboard_session" && isCurrentSession) endSession(error);
  throw error;
}

// Throw if there is a session, and another program than the one that opened it answers.
export async function requireDaemon() {
  if (!getToken() || await isDaemonProved()) return;
  throw new ApiError(0, { message: t("stranger"), hint: t("stranger.hint") });
}

const isDaemonProved = () => proveDaemon(async (question) => (await post("prove", question, {})).json());

// Ask for codes until one confirms the session. Resolves to false if the user gives none.
async function confirmSession(error) {
  for (let lastError = error; ;) {
    const code = await askForCode(lastError);
    if (!code) return false;
    try {
      await call("confirm", { code });
      return true;
    } catch (refused) {
      if (refused.code !== "dashboard_code") throw refused;
      lastError = refused;
    }
  }
}

// Replace the browser's own error for a daemon that cannot be reached, a TypeError.
function throwUnreachable(error) {
  if (error.name !== "TypeError") throw error; // an AbortError: the panel was left
  // Such a browser cannot check the proof of the program that will answer next.
  if (!crypto.subtle && getToken()) endSession();
  throw new ApiError(0, { message: t("unreachable"), hint: t("unreachable.hint") });
}

function endSession(error = null) {
  dropToken();
  for (const listener of endListeners) listener(error);
}

shareToken(isDaemonProved, endSession);
