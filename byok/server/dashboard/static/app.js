// The page's frame: sign-in, navigation, language and colours. Each panel is a module
// with `open(root, rest, signal)`: it fills `root` until `signal` is aborted; `rest` are
// the parts of the address behind the panel's name.

import {
  ApiError, call, isSignedIn, onConfirm, onEnd, requireDaemon, signIn, signOut,
} from "./api.js";
import { captureLine } from "./capture.js";
import {
  announce, badge, button, entryForm, errorBox, h, lineField, openDialog, replace,
} from "./dom.js";
import { number } from "./format.js";
import { icon } from "./icons.js";
import { followKeys } from "./keys.js";
import { connect, onRequests, onState } from "./live.js";
import { openPalette } from "./palette.js";
import { changePlace, restorePlace } from "./places.js";
import { joinSession } from "./session.js";
import { LANGUAGES, language, setLanguage, t } from "./texts.js";

// On a phone the first four stand in a bar, the others behind "More".
const PANELS = ["overview", "live", "conversations", "problems", "usage", "models", "search",
  "index", "settings"];
const MAIN = 4;
const at = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const THEME = "byok-theme";
const TONES = { lost: "bad", restarting: "warn", replaced: "warn" };
const loaded = new Set(); // panels
let leaving = new AbortController();
let running = 0; // requests that are being answered
let needs = 0; // problems that need the user, as far as is known
let counting = 0; // the timer before they are counted
const WRITTEN = 2000; // ms after which a request is in the journal
let connection = "off";
let again = null; // opens the panel that could not be opened

async function start() {
  if (navigator.serviceWorker?.controller) return endWorkers(); // before a code is entered
  applyTheme();
  dark.addEventListener("change", applyTheme);
  at("skip").addEventListener("click", skip);
  onEnd((error) => { show(error); focusTitle(); });
  onConfirm(askForCode);
  onState((state) => {
    connection = state;
    showConnection();
    if (state === "on") again?.();
  });
  onRequests(({ rows, changed, reset }) => {
    running = [...rows.values()].filter((row) => row.outcome === "open").length;
    showCounts();
    const tells = ({ outcome }) => outcome === "failed" || (needs && outcome === "ok");
    if (!reset && changed.some(tells)) counting ||= setTimeout(countNeeds, WRITTEN);
  }, new AbortController().signal);
  onEnd(() => { needs = 0; });
  addEventListener("byok-upstreams", countNeeds);
  addEventListener("click", ({ target }) => at("nav").contains(target) || unfoldNav(false));
  addEventListener("keydown", ({ key }) => key === "Escape" && unfoldNav(false));
  await joinSession(() => show());
  followKeys({ panels: PANELS, palette });
  addEventListener("hashchange", async () => {
    show(null, changePlace(at("main")));
    focusTitle();
  });
  show();
  at("code")?.focus();
}

// A program that had this address before byok may have left a service worker in the
// browser, which sees all that this page sends and gets. byok has none.
async function endWorkers() {
  const left = await navigator.serviceWorker.getRegistrations();
  await Promise.all(left.map((registration) => registration.unregister()));
  location.reload();
}

// The link's own address would be one of a panel.
function skip(event) {
  event.preventDefault();
  at("main").focus();
}

// What had the focus is gone; a screen reader says where the user is now.
function focusTitle() {
  at("main").querySelector("h1").focus();
}

async function trySignIn(code) {
  try {
    await signIn(code);
    show();
  } catch (error) {
    show(error);
  }
}

// Show the panel of the address, or sign-in with the error that led there. `place` is
// where the user was in it before.
function show(error = null, place = null) {
  announce(""); // what was said of the panel before
  leaving.abort();
  document.documentElement.lang = language();
  at("skip").textContent = t("skip");
  showTop();
  if (!isSignedIn()) return showSignIn(error);
  const [path] = location.hash.replace(/^#\/?/, "").split("?"); // what follows is the panel's
  const [name, ...rest] = path.split("/").map(decode);
  const panel = PANELS.includes(name) ? name : PANELS[0];
  showNav(panel);
  connect();
  countNeeds();
  openPanel(panel, rest, place);
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // an address that somebody typed
  }
}

async function openPanel(name, rest, place = null) {
  leaving.abort();
  leaving = new AbortController();
  again = null;
  const { signal } = leaving;
  const title = t(`${name}.title`);
  document.title = `${title} · byok`;
  const root = h("div", { class: `panel ${name}`, "data-loading": t("overview.loading") });
  replace(at("main"), h("div", { class: "title" },
    h("div", {}, h("h1", { tabindex: "-1" }, title), h("p", {}, t(`${name}.question`))),
    h("div", { class: "row", id: "tools" })),
  captureLine(signal), root);
  try {
    if (!loaded.has(name)) await requireDaemon(); // else another program's script
    const panel = await import(`./panels/${name}.js`);
    loaded.add(name);
    if (!signal.aborted) await panel.open(root, rest, signal);
    if (place && !signal.aborted) restorePlace(at("main"), place, signal);
  } catch (error) {
    if (signal.aborted) return;
    root.append(errorBox(error));
    again = async () => {
      const isThere = at("main").contains(document.activeElement);
      await openPanel(name, rest);
      if (isThere) focusTitle();
    };
  }
}

function showNav(current) {
  const nav = at("nav");
  const more = button([icon("more"), h("span", {}, t("more"))], "",
    () => unfoldNav(!nav.classList.contains("open")), { id: "more", "aria-expanded": "false" });
  nav.classList.remove("open");
  replace(nav, h("ul", {}, PANELS.map((name, place) =>
    h("li", { class: place < MAIN ? null : "second" }, h("a", { href: `#/${name}`,
      "aria-current": name === current ? "page" : null },
    icon(name), h("span", {}, t(`${name}.title`))))), h("li", { class: "more" }, more)),
  h("div", { class: "foot" }, looks()));
  nav.setAttribute("aria-label", t("nav"));
  showCounts();
}

// On narrow screens the rest of the navigation is a menu over the panel.
function unfoldNav(isOpen) {
  at("nav").classList.toggle("open", isOpen);
  at("more")?.setAttribute("aria-expanded", String(isOpen));
}

// How the page looks, and the way out of it.
function looks() {
  const theme = chosenTheme();
  const select = (id, label, run, options) => h("label", {},
    h("span", { class: "small quiet" }, label),
    h("select", { id, on: { change: (event) => run(event.target.value) } }, options));
  return [
    select("theme", t("theme"), setTheme, ["auto", "light", "dark"].map((name) =>
      h("option", { value: name, selected: name === theme }, t(`theme.${name}`)))),
    select("language", t("language"), changeLanguage, LANGUAGES.map(([name, title]) =>
      h("option", { value: name, lang: name, selected: name === language() }, title))),
    isSignedIn() ? button(t("sign-out"), "", () => signOut().catch(show), { id: "sign-out" })
      : null,
  ];
}

// The numbers beside the names of panels: what runs now, and what needs the user.
function showCounts() {
  showCount("live", running, "count calm", "conversations.running");
  showCount("problems", needs, "count", "problems.needing");
}

function showCount(panel, count, kind, words) {
  const link = at("nav").querySelector(`a[href='#/${panel}']`);
  link?.querySelector(".count")?.remove();
  if (count) link?.append(h("span", { class: kind }, number(count), h("span", {}, ` ${t(words)}`)));
}

// A journal that cannot be read tells so on the panels that show it.
async function countNeeds() {
  clearTimeout(counting);
  counting = 0;
  if (!isSignedIn()) return;
  try {
    needs = (await call("today", {}, { background: true })).needs_you.length;
  } catch (error) {
    if (!(error instanceof ApiError)) reportError(error);
  }
  showCounts();
}

function showTop() {
  const seek = button([icon("search"), h("span", { class: "grow cut" }, t("palette.title")),
    h("kbd", {}, "Ctrl K")], "seek", palette);
  replace(at("top"),
    h("a", { class: "brand", href: "#/overview", "aria-label": "byok" },
      h("img", { src: "/ui/icon.svg", alt: "" }), h("span", {}, "byok")),
    isSignedIn() ? seek : null,
    h("span", { class: "space" }), at("status"),
    h("span", { id: "connection", class: "row", role: "status" }),
    isSignedIn() ? null : h("span", { class: "row" }, looks()));
  showConnection();
}

function palette() {
  if (isSignedIn()) openPalette(PANELS, { setTheme, changeLanguage });
}

// Whether what the page shows of requests is live.
function showConnection() {
  if (!at("connection")) return;
  const tone = TONES[connection] ?? "quiet";
  replace(at("connection"),
    connection === "off" ? null : badge(tone, t(`connection.${connection}`)),
    connection === "replaced"
      ? button(t("connection.again"), "", connect) : null);
}

async function changeLanguage(name) {
  try {
    await requireDaemon(); // else another program's script
    await setLanguage(name);
    dispatchEvent(new Event("byok-language"));
  } catch (error) {
    return show(error);
  }
  show();
  at("language").focus();
}

function setTheme(name) {
  localStorage.setItem(THEME, name);
  applyTheme();
  at("theme").value = name;
}

const chosenTheme = () => localStorage.getItem(THEME) ?? "auto";

// Colour the page as the user or, by "auto", the system wants it. Charts are drawn anew.
function applyTheme() {
  const [theme, system] = [chosenTheme(), dark.matches ? "dark" : "light"];
  document.documentElement.dataset.theme = theme === "auto" ? system : theme;
  dispatchEvent(new Event("byok-theme"));
}

function showSignIn(error) {
  document.title = "byok";
  replace(at("nav"));
  const form = codeForm(t("sign-in.title"), async (code) => {
    await trySignIn(code);
    focusTitle();
  });
  replace(at("main"), h("div", { class: "card sign-in" },
    h("h1", { tabindex: "-1" }, t("sign-in.title")),
    error ? errorBox(error) : null,
    h("p", {}, t("sign-in.how")),
    h("pre", {}, "byok dashboard"),
    form));
}

// Return the form that takes a code of the terminal.
function codeForm(button, onCode, ...more) {
  const field = lineField({ id: "code", name: "code", required: true,
    autocapitalize: "characters" });
  return entryForm({ class: "code" }, () => onCode(field.value.trim()),
    h("label", { for: "code" }, t("sign-in.code")), field,
    h("div", { class: "row" }, h("button", { class: "primary" }, button), more));
}

// Ask for a new code, which confirms a change; "" if the user does not want to give one.
function askForCode(error) {
  return new Promise((resolve) => {
    const leave = (code) => { resolve(code); dialog.close(); };
    const dialog = openDialog(t("confirm.title"), [
      error.code === "dashboard_code" ? errorBox(error) : h("p", {}, t("confirm.why")),
      h("pre", {}, "byok dashboard"),
      codeForm(t("confirm.submit"), leave, button(t("cancel"), "", () => leave("")))]);
    dialog.addEventListener("close", () => resolve(""));
    dialog.querySelector("input").focus();
  });
}

start();
