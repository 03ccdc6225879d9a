// The session's token: kept in this tab, handed to other tabs, and sent only to a daemon
// that knows it. sessionStorage and the channel belong to this address; other ports of
// this host have others. Nothing stays when the browser ends: a program that takes the
// port while byok is down would find it.

const KEY = "byok-session";
const WAIT = 150; // milliseconds for other tabs to answer
const channel = new BroadcastChannel(KEY);
let proving = null;

export const getToken = () => sessionStorage.getItem(KEY);
export const setToken = (token) => sessionStorage.setItem(KEY, token);
export const dropToken = () => sessionStorage.removeItem(KEY);

// Hand the token to tabs that ask for it; `prove` says whether byok is there.
export function shareToken(prove, ended) {
  channel.addEventListener("message", async ({ data }) => {
    const token = getToken();
    if (data?.ended && data.ended === token) ended();
    if (!data?.asks || !token || !await prove().catch(() => false)) return;
    if (getToken() === token) channel.postMessage({ token });
  });
}

// Let the other tabs that have this token know that its session is over.
export const tellEnd = (token) => channel.postMessage({ ended: token });

// Take over the session of another tab, if one has any; `late` is called where that answers
// only after the page has stopped waiting for it.
export async function joinSession(late) {
  if (getToken()) return;
  let waits = true;
  const joined = new Promise((done) => {
    channel.addEventListener("message", ({ data }) => {
      if (!data?.token || getToken()) return;
      setToken(data.token);
      if (waits) done();
      else late();
    });
  });
  channel.postMessage({ asks: true });
  await Promise.race([joined, new Promise((done) => setTimeout(done, WAIT))]);
  waits = false;
}

// Tell whether who answers knows the session; `ask` sends the question without the token.
// Another program that has the port of a daemon that is down does not.
export function proveDaemon(ask) {
  proving ??= checkProof(getToken(), ask).finally(() => { proving = null; });
  return proving;
}

async function checkProof(token, ask) {
  if (!crypto.subtle) return true; // an old browser; api.js ends the session instead
  const name = await digest(token);
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(16)));
  const { proof } = await ask({ session: await digest(name), nonce });
  const way = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", fromHex(name), way, false, ["verify"]);
  const port = location.port || "80";
  return crypto.subtle.verify("HMAC", key, fromHex(String(proof)), toBytes(`${port} ${nonce}`));
}

const toBytes = (text) => new TextEncoder().encode(text);
const toHex = (bytes) => [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const digest = async (text) => toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", toBytes(text))));
