// The page's frame: sign-in, navigation, language and colours. Each panel is a module with
// `open(root, parts, signal)`, which fills `root` until `signal` is aborted; `parts` are the
// parts of the address after the panel's name.

import {
  ApiError, call, isSignedIn, onSessionEnd, requireDaemon, setCodePrompt, signIn, signOut,
} from "./api.js";
import { captureLine } from "./capture.js";
import {
  announce, badge, button, commandBox, entryForm, errorBox, focusTitle, h, lineField, openDialog,
  replace,
} from "./dom.js";
import { number } from "./format.js";
import { icon } from "./icons.js";
import { followKeys } from "./keys.js";
import { connect, onRequests, onState } from "./live.js";
import { openPalette } from "./palette.js";
import { restorePosition, switchEntry } from "./places.js";
import { joinSession } from "./session.js";
import { language, LANGUAGES, setLanguage, t } from "./texts.js";

const PANELS = ["overview", "live", "conversations", "problems", "usage", "models", "search",
  "index", "settings"];
// On a phone this many panels stand in a bar, the others are behind "More".
const MAIN_PANELS = 4;
const THEME_KEY = "byok-theme"; // of localStorage
const CONNECTION_TONES = { lost: "bad", restarting: "warn", replaced: "warn" };
const JOURNAL_DELAY_MS = 2000; // until a request that ended is in the journal
const byId = (id) => document.getElementById(id);
const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const loadedPanels = new Set(); // the names of panels whose modules are loaded
let panelAborter = new AbortController(); // of the panel that is shown
let runningCount = 0; // requests that are being answered
let problemCount = 0; // problems that need the user, as counted last
let countTimer = 0; // of the next count of problems
let connectionState = "off";
let reopenPanel = null; // tries again to open a panel that failed to open

async function start() {
  // Before the user can enter a code.
  if (navigator.serviceWorker?.controller) return removeServiceWorkers();
  applyTheme();
  darkScheme.addEventListener("change", applyTheme);
  byId("skip").addEventListener("click", skipToMain);
  onSessionEnd((error) => { show(error); focusTitle(); });
  setCodePrompt(askForCode);
  onState((state) => {
    connectionState = state;
    showConnection();
    if (state === "on") reopenPanel?.();
  });
  onRequests(({ rows, changed, reset }) => {
    runningCount = [...rows.values()].filter((row) => row.outcome === "open").length;
    showCounts();
    const changesCount = ({ outcome }) => outcome === "failed" || (problemCount && outcome === "ok");
    if (!reset && changed.some(changesCount)) countTimer ||= setTimeout(countProblems, JOURNAL_DELAY_MS);
  });
  onSessionEnd(() => { problemCount = 0; });
  addEventListener("byok-upstreams", countProblems);
  addEventListener("click", ({ target }) => byId("nav").contains(target) || unfoldNav(false));
  addEventListener("keydown", ({ key }) => key === "Escape" && unfoldNav(false));
  await joinSession(() => show());
  followKeys({ panels: PANELS, palette: showPalette });
  addEventListener("hashchange", async () => {
    show(null, switchEntry(byId("main")));
    focusTitle();
  });
  show();
  byId("code")?.focus();
}

// A program that used this address before byok may have left a service worker in the browser,
// which would see everything that this page sends and receives. byok has no service worker.
async function removeServiceWorkers() {
  const registrations = await navigator.serviceWorker.getRegistrations();
  await Promise.all(registrations.map((registration) => registration.unregister()));
  location.reload();
}

// Move the focus without following the link: its address would be taken for a panel's name.
function skipToMain(event) {
  event.preventDefault();
  byId("main").focus();
}

async function trySignIn(code) {
  try {
    await signIn(code);
    show();
  } catch (error) {
    show(error);
  }
}

// Show the panel of the address, or the sign-in form with the error that led to it. `position`
// is where the user was in that panel before, if known (see places.js).
function show(error = null, position = null) {
  announce(""); // removes an announcement of the previous panel
  panelAborter.abort();
  document.documentElement.lang = language();
  byId("skip").textContent = t("skip");
  showTop();
  if (!isSignedIn()) return showSignIn(error);
  const [path] = location.hash.replace(/^#\/?/, "").split("?"); // the panel reads the query
  const [name, ...parts] = path.split("/").map(decodePart);
  const panel = PANELS.includes(name) ? name : PANELS[0];
  showNav(panel);
  connect();
  countProblems();
  openPanel(panel, parts, position);
}

function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a malformed address, such as one that was typed
  }
}

async function openPanel(name, parts, position = null) {
  panelAborter.abort();
  panelAborter = new AbortController();
  reopenPanel = null;
  const { signal } = panelAborter;
  const title = t(`${name}.title`);
  document.title = `${title} · byok`;
  const root = h("div", { class: `panel ${name}`, "data-loading": t("overview.loading") });
  replace(byId("main"), h("div", { class: "title" },
    h("div", {}, h("h1", { tabindex: "-1" }, title), h("p", {}, t(`${name}.question`))),
    h("div", { class: "row", id: "tools" })),
  captureLine(signal), root);
  try {
    // Another program that has the port now must not get its script into this page.
    if (!loadedPanels.has(name)) await requireDaemon();
    const panel = await import(`./panels/${name}.js`);
    loadedPanels.add(name);
    if (!signal.aborted) await panel.open(root, parts, signal);
    if (position && !signal.aborted) restorePosition(byId("main"), position, signal);
  } catch (error) {
    if (signal.aborted) return;
    root.append(errorBox(error));
    reopenPanel = async () => {
      const hadFocus = byId("main").contains(document.activeElement);
      await openPanel(name, parts);
      if (hadFocus) focusTitle();
    };
  }
}

function showNav(current) {
  const nav = byId("nav");
  const moreButton = button([icon("more"), h("span", {}, t("more"))], "",
    () => unfoldNav(!nav.classList.contains("open")), { id: "more", "aria-expanded": "false" });
  nav.classList.remove("open");
  replace(nav, h("ul", {}, PANELS.map((name, index) =>
    h("li", { class: index < MAIN_PANELS ? null : "second" }, h("a", { href: `#/${name}`,
      "aria-current": name === current ? "page" : null },
    icon(name), h("span", {}, t(`${name}.title`))))), h("li", { class: "more" }, moreButton)),
  h("div", { class: "foot" }, lookControls()));
  nav.setAttribute("aria-label", t("nav"));
  showCounts();
}

// Open or close the menu that holds the rest of the navigation on narrow screens.
function unfoldNav(isOpen) {
  byId("nav").classList.toggle("open", isOpen);
  byId("more")?.setAttribute("aria-expanded", String(isOpen));
}

// Return the controls of the page's look, and the button that signs out.
function lookControls() {
  const theme = chosenTheme();
  const createSelect = (id, label, onChange, options) => h("label", {},
    h("span", { class: "small quiet" }, label), " ",
    h("select", { id, on: { change: (event) => onChange(event.target.value) } }, options));
  return [
    createSelect("theme", t("theme"), setTheme, ["auto", "light", "dark"].map((name) =>
      h("option", { value: name, selected: name === theme }, t(`theme.${name}`)))),
    createSelect("language", t("language"), changeLanguage, LANGUAGES.map(([name, title]) =>
      h("option", { value: name, lang: name, selected: name === language() }, title))),
    isSignedIn() ? button(t("sign-out"), "", () => signOut().catch(show), { id: "sign-out" })
      : null,
  ];
}

// Show the numbers in the navigation: running requests, and problems that need the user.
function showCounts() {
  showCount("live", runningCount, "count calm", "conversations.running");
  showCount("problems", problemCount, "count", "problems.needing");
}

function showCount(panel, count, classes, label) {
  const link = byId("nav").querySelector(`a[href='#/${panel}']`);
  link?.querySelector(".count")?.remove();
  if (count) link?.append(h("span", { class: classes }, number(count), h("span", {}, ` ${t(label)}`)));
}

// Count the problems that need the user. Errors of the daemon are not shown here: the panels that
// show the journal show them.
async function countProblems() {
  clearTimeout(countTimer);
  countTimer = 0;
  if (!isSignedIn()) return;
  try {
    problemCount = (await call("today", {}, { background: true })).needs_you.length;
  } catch (error) {
    if (!(error instanceof ApiError)) reportError(error);
  }
  showCounts();
}

function showTop() {
  const paletteButton = button([icon("search"), h("span", { class: "grow cut" }, t("palette.title")),
    h("kbd", {}, "Ctrl K")], "seek", showPalette);
  replace(byId("top"),
    h("a", { class: "brand", href: "#/overview", "aria-label": "byok" },
      h("img", { src: "/ui/icon.svg", alt: "" }), h("span", {}, "byok")),
    isSignedIn() ? paletteButton : null,
    h("span", { class: "space" }), byId("status"),
    h("span", { id: "connection", class: "row", role: "status" }),
    isSignedIn() ? null : h("span", { class: "row" }, lookControls()));
  showConnection();
}

function showPalette() {
  if (isSignedIn()) openPalette(PANELS, { setTheme, changeLanguage });
}

// Show whether the page receives live requests.
function showConnection() {
  if (!byId("connection")) return;
  const tone = CONNECTION_TONES[connectionState] ?? "quiet";
  replace(byId("connection"),
    connectionState === "off" ? null : badge(tone, t(`connection.${connectionState}`)),
    connectionState === "replaced"
      ? button(t("connection.again"), "", connect) : null);
}

async function changeLanguage(name) {
  try {
    await requireDaemon(); // as for a panel's script: the texts are a script, too
    await setLanguage(name);
    dispatchEvent(new Event("byok-language"));
  } catch (error) {
    return show(error);
  }
  show();
  byId("language").focus();
}

function setTheme(name) {
  localStorage.setItem(THEME_KEY, name);
  applyTheme();
  byId("theme").value = name;
}

const chosenTheme = () => localStorage.getItem(THEME_KEY) ?? "auto";

// Apply the chosen theme, or with "auto" that of the system. Charts redraw on the event.
function applyTheme() {
  const [theme, system] = [chosenTheme(), darkScheme.matches ? "dark" : "light"];
  document.documentElement.dataset.theme = theme === "auto" ? system : theme;
  dispatchEvent(new Event("byok-theme"));
}

function showSignIn(error) {
  document.title = "byok";
  replace(byId("nav"));
  const form = codeForm(t("sign-in.title"), async (code) => {
    await trySignIn(code);
    focusTitle();
  });
  replace(byId("main"), h("div", { class: "card sign-in" },
    h("h1", { tabindex: "-1" }, t("sign-in.title")),
    error ? errorBox(error) : null,
    h("p", {}, t("sign-in.how")),
    commandBox("byok dashboard"),
    form));
}

// Return the form for a code that `byok dashboard` prints.
function codeForm(button, onCode, ...extraButtons) {
  const field = lineField({ id: "code", name: "code", required: true,
    autocapitalize: "characters" });
  return entryForm({ class: "code" }, () => onCode(field.value.trim()),
    h("label", { for: "code" }, t("sign-in.code")), field,
    h("div", { class: "row" }, h("button", { class: "primary" }, button), extraButtons));
}

// Ask for a new code that confirms a change. Resolves to "" if the user gives none.
function askForCode(error) {
  return new Promise((resolve) => {
    const finish = (code) => { resolve(code); dialog.close(); };
    const dialog = openDialog(t("confirm.title"), [
      error.code === "dashboard_code" ? errorBox(error) : h("p", {}, t("confirm.why")),
      commandBox("byok dashboard"),
      codeForm(t("confirm.submit"), finish, button(t("cancel"), "", () => finish("")))]);
    dialog.addEventListener("close", () => resolve(""));
    dialog.querySelector("input").focus();
  });
}

start();
