// The session's token: stored in this tab, handed to other tabs, and sent only to a daemon that
// knows it. sessionStorage and the channel belong to this origin, so other ports of this host have
// their own. Nothing is stored beyond the end of the browser, because a program that takes the
// port while byok is down could read it.

const STORAGE_KEY = "byok-session"; // also the name of the channel
const MAX_WAIT_MS = 150; // for other tabs to answer
const channel = new BroadcastChannel(STORAGE_KEY);
let pendingProof = null; // the promise of a proof that is being checked

export const getToken = () => sessionStorage.getItem(STORAGE_KEY);
export const setToken = (token) => sessionStorage.setItem(STORAGE_KEY, token);
export const dropToken = () => sessionStorage.removeItem(STORAGE_KEY);

// Answer other tabs that ask for the token, if `prove()` resolves to true: byok is there. `onEnd`
// is called when another tab has ended this session.
export function shareToken(prove, onEnd) {
  channel.addEventListener("message", async ({ data }) => {
    const token = getToken();
    if (data?.ended && data.ended === token) onEnd();
    if (!data?.asks || !token || !await prove().catch(() => false)) return;
    if (getToken() === token) channel.postMessage({ token });
  });
}

// Tell the other tabs that have this token that its session has ended.
export const broadcastEnd = (token) => channel.postMessage({ ended: token });

// Take over the session of another tab, if one has any. `onLateJoin` is called if that tab answers
// only after the page has stopped waiting for it.
export async function joinSession(onLateJoin) {
  if (getToken()) return;
  let isWaiting = true;
  const joined = new Promise((done) => {
    channel.addEventListener("message", ({ data }) => {
      if (!data?.token || getToken()) return;
      setToken(data.token);
      if (isWaiting) done();
      else onLateJoin();
    });
  });
  channel.postMessage({ asks: true });
  await Promise.race([joined, new Promise((done) => setTimeout(done, MAX_WAIT_MS))]);
  isWaiting = false;
}

// Check whether the program that answers knows the session, as another program that took the port
// of a stopped daemon does not. `ask` sends the challenge without the token. Resolves to a boolean.
export function proveDaemon(ask) {
  pendingProof ??= checkProof(getToken(), ask).finally(() => { pendingProof = null; });
  return pendingProof;
}

async function checkProof(token, ask) {
  // Where the browser cannot check a proof, api.js ends the session when the daemon is away.
  if (!crypto.subtle) return true;
  const sessionName = await digest(token);
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(16)));
  const { proof } = await ask({ session: await digest(sessionName), nonce });
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", fromHex(sessionName), algorithm, false, ["verify"]);
  const port = location.port || "80";
  return crypto.subtle.verify("HMAC", key, fromHex(String(proof)), toBytes(`${port} ${nonce}`));
}

const toBytes = (text) => new TextEncoder().encode(text);
const toHex = (bytes) => [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const digest = async (text) => toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", toBytes(text))));
