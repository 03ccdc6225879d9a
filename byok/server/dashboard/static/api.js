// The daemon's interface for this page: POST /ui/api/NAME with the session's token.
// The token goes only to who has proved to be the daemon that gave it: session.js.

import { dropToken, getToken, proveDaemon, setToken, shareToken, tellEnd } from "./session.js";
import { language, t } from "./texts.js";

const ended = new Set();
let askForCode = null;

export class ApiError extends Error {
  // An error of the daemon: `code` is one of `byok explain`, `hint` says what to do.
  constructor(status, error) {
    super(error.message ?? "");
    this.status = status;
    this.code = error.code ?? "";
    this.hint = error.hint ?? "";
  }
}

export const isSignedIn = () => getToken() !== null;

// Call `listener` when the session is over, with the error that said so, or null.
export const onEnd = (listener) => ended.add(listener);

// Let `ask` get a code from the user where a change needs a new one; it returns "" if the
// user gives none.
export const onConfirm = (ask) => { askForCode = ask; };

export async function signIn(code) {
  const answer = await post("sign-in", { code }, {});
  setToken((await answer.json()).token);
}

export async function signOut() {
  const token = getToken();
  try {
    await call("sign-out");
  } finally {
    if (token) tellEnd(token);
    endSession();
  }
}

// Return the answer's object. `background` is for what the user did not ask for: it does
// not prolong the session.
export async function call(name, body = {}, { signal, background = false } = {}) {
  return (await post(name, body, { signal, background })).json();
}

// Give each object of a streamed answer to `onObject`, until the stream ends.
export async function stream(name, body, onObject, { signal } = {}) {
  const answer = await post(name, body, { signal, background: true });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) onObject(JSON.parse(line));
  }
}

async function post(name, body, { signal, background }) {
  const isOpen = name === "sign-in" || name === "prove";
  if (!isOpen) await requireDaemon();
  const token = isOpen ? null : getToken();
  const headers = { "Content-Type": "application/json", "Accept-Language": language() };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (background) headers["X-Byok-Background"] = "1";
  const init = { method: "POST", headers, body: JSON.stringify(body), signal };
  const answer = await fetch(`/ui/api/${name}`, init).catch(explain);
  if (answer.ok) return answer;
  const read = await answer.json().catch(() => ({}));
  const error = new ApiError(answer.status, read.error ?? {});
  if (error.code === "dashboard_confirm" && askForCode && await confirm(error)) {
    return post(name, body, { signal, background });
  }
  // A late answer about a former session must not end the one of now.
  const isOfNow = name === "prove" || getToken() === token;
  if (error.code === "dashboard_session" && isOfNow) endSession(error);
  throw error;
}

// Throw where another program answers than the one that opened the session, if any.
export async function requireDaemon() {
  if (!getToken() || await isProved()) return;
  throw new ApiError(0, { message: t("stranger"), hint: t("stranger.hint") });
}

const isProved = () => proveDaemon(async (asked) => (await post("prove", asked, {})).json());

// Ask for codes until one confirms the session; false if the user gives none.
async function confirm(error) {
  for (let shown = error; ;) {
    const code = await askForCode(shown);
    if (!code) return false;
    try {
      await call("confirm", { code });
      return true;
    } catch (refused) {
      if (refused.code !== "dashboard_code") throw refused;
      shown = refused;
    }
  }
}

// The browser has words of its own for a daemon that is not there.
function explain(error) {
  if (error.name !== "TypeError") throw error; // the panel was left
  if (!crypto.subtle && getToken()) endSession(); // it cannot be proved who answers next
  throw new ApiError(0, { message: t("unreachable"), hint: t("unreachable.hint") });
}

function endSession(error = null) {
  dropToken();
  for (const listener of ended) listener(error);
}

shareToken(isProved, endSession);
