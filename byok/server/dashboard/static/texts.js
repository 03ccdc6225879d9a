// The texts of the page in its language. A language is a file of texts/ and a row here; where it
// has no text, the English one is shown.

import { TEXTS as ENGLISH } from "./texts/en.js";

export const LANGUAGES = [["en", "English"], ["zh", "中文"]];
const LANGUAGE_KEY = "byok-language"; // of localStorage
let translations = {}; // texts of the language by key
// Stored here as well: another tab may change the choice while this page is open.
let current = chosenLanguage();
await loadTexts();

export const language = () => current;

// Return the language that the user chose, else the one that the browser prefers.
function chosenLanguage() {
  const codes = LANGUAGES.map(([name]) => name);
  const name = localStorage.getItem(LANGUAGE_KEY);
  if (codes.includes(name)) return name;
  return codes.find((code) => navigator.language.toLowerCase().startsWith(code)) ?? "en";
}

// Choose a language, and load its texts.
export async function setLanguage(code) {
  localStorage.setItem(LANGUAGE_KEY, code);
  current = code;
  await loadTexts();
}

async function loadTexts() {
  translations = current === "en" ? ENGLISH : (await import(`./texts/${current}.js`)).TEXTS;
}

// Return the text of a key, or `fallback` if there is no such text.
export const textOr = (key, fallback, values) => (key in ENGLISH ? t(key, values) : fallback);

// Return a text in the page's language and in English, "" where there is none.
export const inBoth = (key) => [translations[key], ENGLISH[key]].filter(Boolean).join(" ");

// Return the keys that match a pattern, in the order of the catalogue.
export const keysMatching = (pattern) => Object.keys(ENGLISH).filter((key) => pattern.test(key));

// Return what a setting does in the page's language: the text for its full name, else the one for
// the last part of its name, else the English text of the daemon.
export const aboutSetting = (name, english) =>
  translations[`about.${name}`] ?? translations[`about.${name.split(".").at(-1)}`] ?? english;

// Return a text in the page's language in parts, so that values may be elements. A text may have
// two forms, "one | many": the first is for a `count` of 1.
export const textParts = (key, values = {}) => {
  const [one, many = one] = (translations[key] ?? ENGLISH[key]).split(" | ");
  return (String(values.count) === "1" ? one : many).split(/\{(\w+)\}/u)
    .map((part, index) => (index % 2 ? values[part] : part));
};

// Return a text in the page's language.
export const t = (key, values) => textParts(key, values).join("");

// Return a name and its value, or the name alone where there is none.
export const pairOf = (name, value) => (value ? textParts("pair", { name, value }) : [name]);

// Return names as one text, joined as the page's language joins a list.
export const joinList = (names, key = "list") =>
  names.slice(1).reduce((first, name) => t(key, { first, name }), names[0] ?? "");

// Return sentences as one text; empty ones are left out.
export const joinSentences = (...all) => joinList(all.filter(Boolean), "sentences");
