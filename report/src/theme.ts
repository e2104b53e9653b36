/** Light and dark: as the system has it, until the reader chooses otherwise. */

import { h } from "./dom";

type Theme = "light" | "dark";
const KEY = "nodeproof-theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function remembered(): Theme | null {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : null;
  } catch {
    return null; // Storage may be forbidden; then the system decides each time.
  }
}

function remember(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // The choice holds until the page is closed.
  }
}

/** Applies the remembered theme, and gives the button that switches it. */
export function themeSwitch(): HTMLElement {
  let chosen = remembered();
  const button = h("button", { class: "theme", type: "button" });
  const show = () => {
    const theme = chosen ?? (systemIsDark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light colours" : "Dark colours";
  };
  button.addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    remember(chosen);
    show();
  });
  systemIsDark.addEventListener("change", show);
  show();
  return button;
}
