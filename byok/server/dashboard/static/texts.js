// The texts of the page in its language. A language is a file of texts/ and a row here;
// where it has no text, the English one is shown.

import { TEXTS as ENGLISH } from "./texts/en.js";

export const LANGUAGES = [["en", "English"], ["zh", "中文"]];
const KEY = "byok-language";
let own = {};
let shown = chosen(); // another tab may choose another one meanwhile
await load();

export const language = () => shown;

// Return the language that the user chose, else the one that the browser prefers.
function chosen() {
  const known = LANGUAGES.map(([name]) => name);
  const name = localStorage.getItem(KEY);
  if (known.includes(name)) return name;
  return known.find((one) => navigator.language.toLowerCase().startsWith(one)) ?? "en";
}

// Choose a language; its texts are there when this has ended.
export async function setLanguage(name) {
  localStorage.setItem(KEY, name);
  shown = name;
  await load();
}

async function load() {
  own = shown === "en" ? ENGLISH : (await import(`./texts/${shown}.js`)).TEXTS;
}

// Return the text of a key, or what stands for it where there is none.
export const textOr = (key, other, values) => (key in ENGLISH ? t(key, values) : other);

// Return a text in the page's language and in English, "" where there is none.
export const inBoth = (key) => [own[key], ENGLISH[key]].filter(Boolean).join(" ");

// Return the keys that fit a pattern, in their order.
export const keysLike = (pattern) => Object.keys(ENGLISH).filter((key) => pattern.test(key));

// Return what a setting does, in the page's language if that is known, perhaps by the end of its
// name.
export const aboutSetting = (name, english) =>
  own[`about.${name}`] ?? own[`about.${name.split(".").at(-1)}`] ?? english;

// Return a text in the page's language in parts; values that are elements stay such. What stands
// before " | " is for a `count` of one, where the language tells one from many.
export const parts = (key, values = {}) => {
  const [one, many = one] = (own[key] ?? ENGLISH[key]).split(" | ");
  return (String(values.count) === "1" ? one : many).split(/\{(\w+)\}/u)
    .map((part, place) => (place % 2 ? values[part] : part));
};

// Return a text in the page's language.
export const t = (key, values) => parts(key, values).join("");

// Return a name and its value, or the name alone where there is none.
export const pairOf = (name, value) => (value ? parts("pair", { name, value }) : [name]);

// Return several as one text, with what the page's language has between them.
export const listed = (names, key = "list") =>
  names.slice(1).reduce((first, name) => t(key, { first, name }), names[0] ?? "");

// Return those that are there of some sentences as one text.
export const sentences = (...all) => listed(all.filter(Boolean), "sentences");
