// The head of the page: whose numbers these are, whether they are live, and how the page looks.

import { el, setAttribute, setText } from "./dom.js";
import { duration } from "./format.js";
import { LANGUAGES, currentLanguage, read, t, write } from "./i18n.js";

const THEME_KEY = "gputap.theme";
const THEMES = ["auto", "light", "dark"];
const WINDOWS = [60, 300, 900];

/** The head. */
export class TopBar {
  /**
   * @param {Object} options
   * @param {number} options.seconds the window now
   * @param {(seconds: number) => void} options.onWindow
   * @param {(language: string) => void} options.onLanguage
   * @param {() => void} options.onTheme
   */
  constructor({ seconds, onWindow, onLanguage, onTheme }) {
    this.host = el("span", { class: "host" });
    this.state = el("span", { class: "feed-state", "data-testid": "feed-state" });
    const brand = el("div", { class: "brand" }, el("img", { src: "favicon.svg", alt: "", width: 22, height: 22 }), el("h1", {}, "gputap"), this.host, this.state);
    const tools = el("div", { class: "tools" }, windowChoice(seconds, onWindow), languageChoice(onLanguage), themeButton(onTheme));
    this.elements = [brand, tools];
  }

  /**
   * @param {Object} store
   * @param {string} state of the feed
   */
  update(store, state) {
    setText(this.host, store.hello?.host ?? "");
    setAttribute(this.state, "data-state", state);
    const old = state !== "live" && store.age !== null;
    setText(this.state, old ? t("feed.old", { state: t(`feed.${state}`), age: duration(store.age) }) : t(`feed.${state}`));
    setAttribute(this.state, "title", store.missedTicks > 0 ? t("feed.missed", { count: store.missedTicks }) : null);
  }
}

function windowChoice(seconds, onWindow) {
  const group = el("div", { class: "segmented", role: "radiogroup", "aria-label": t("history.window") });
  for (const choice of WINDOWS) {
    const input = el("input", { type: "radio", name: "window", value: choice, checked: choice === seconds, "data-testid": `window-${choice}` });
    input.addEventListener("change", () => onWindow(choice));
    group.append(el("label", {}, input, el("span", {}, t("history.minutes", { minutes: choice / 60 }))));
  }
  return group;
}

function languageChoice(onLanguage) {
  const select = el("select", { "aria-label": t("language.label"), "data-testid": "language" });
  for (const [name, label] of Object.entries(LANGUAGES)) select.append(el("option", { value: name, lang: name, selected: name === currentLanguage() }, label));
  select.addEventListener("change", () => onLanguage(select.value));
  return select;
}

function themeButton(onTheme) {
  const icon = el("span", { class: "theme-icon", "aria-hidden": "true" });
  const button = el("button", { type: "button", class: "theme", "data-testid": "theme" }, icon);
  const show = (theme) => {
    setAttribute(button, "data-theme-choice", theme);
    const label = t("theme.label", { theme: t(`theme.${theme}`) });
    setAttribute(button, "aria-label", label);
    setAttribute(button, "title", label);
  };
  show(rememberedTheme());
  button.addEventListener("click", () => {
    const theme = THEMES[(THEMES.indexOf(rememberedTheme()) + 1) % THEMES.length];
    write(THEME_KEY, theme === "auto" ? null : theme);
    setAttribute(document.documentElement, "data-theme", theme === "auto" ? null : theme);
    show(theme);
    onTheme();
  });
  return button;
}

function rememberedTheme() {
  const theme = read(THEME_KEY);
  return THEMES.includes(theme) ? theme : "auto";
}
