// The page's words. English is always loaded: it fills in what a translation lacks.

/** The languages there are, by their own names. */
export const LANGUAGES = { en: "English", zh: "中文" };

const STORAGE_KEY = "gputap.language";
let fallback = {};
let words = {};
let language = "en";

/**
 * The text of a key, with `{name}` replaced by a parameter. A key without text is shown as it is.
 * @param {string} key
 * @param {Object<string, string|number>} [parameters]
 * @returns {string}
 */
export function t(key, parameters = {}) {
  const text = words[key] ?? fallback[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in parameters ? String(parameters[name]) : whole));
}

/**
 * The text of a key, or null where no language has one.
 * @param {string} key
 * @returns {?string}
 */
export function optional(key) {
  return words[key] ?? fallback[key] ?? null;
}

/** @returns {string} the language in use */
export function currentLanguage() {
  return language;
}

/**
 * The language to start with: the remembered one, else the browser's, else English.
 * @param {?string} remembered
 * @param {readonly string[]} preferred
 * @returns {string}
 */
export function chooseLanguage(remembered, preferred) {
  if (remembered && Object.hasOwn(LANGUAGES, remembered)) return remembered;
  for (const tag of preferred) {
    const short = tag.slice(0, 2).toLowerCase();
    if (Object.hasOwn(LANGUAGES, short)) return short;
  }
  return "en";
}

/**
 * Loads the words of the remembered or preferred language.
 * @returns {Promise<void>}
 */
export async function startLanguage() {
  fallback = await load("en");
  await useLanguage(chooseLanguage(read(STORAGE_KEY), navigator.languages ?? []), false);
}

/**
 * Switches to a language.
 * @param {string} name a key of LANGUAGES
 * @param {boolean} [remember]
 * @returns {Promise<void>}
 */
export async function useLanguage(name, remember = true) {
  words = name === "en" ? fallback : await load(name);
  language = name;
  document.documentElement.lang = name;
  if (remember) write(STORAGE_KEY, name);
}

/**
 * Reads a remembered setting; null where storage is blocked.
 * @param {string} key
 * @returns {?string}
 */
export function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/**
 * Remembers a setting where storage is allowed; null forgets it.
 * @param {string} key
 * @param {?string} value
 */
export function write(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // A browser that blocks storage still shows everything.
  }
}

async function load(name) {
  try {
    const response = await fetch(new URL(`locale/${name}.json`, import.meta.url));
    return response.ok ? await response.json() : {};
  } catch {
    return {};
  }
}
