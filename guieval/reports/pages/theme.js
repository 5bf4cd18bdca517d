// Colours: as the system has them, until somebody chooses.

const THEMES = { auto: "Auto", light: "Light", dark: "Dark" };

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  $("theme").textContent = THEMES[name];
  $("theme").setAttribute("aria-label", `${THEMES[name]}: colours ${name === "auto" ? "as the system has them" : "of the page"}`);
}

function theme() {
  try {
    return THEMES[localStorage.getItem("guieval-theme")] ? localStorage.getItem("guieval-theme") : "auto";
  } catch {
    return "auto"; // a browser may refuse pages from disk any storage
  }
}

function nextTheme() {
  const known = Object.keys(THEMES);
  const next = known[(known.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % known.length];
  setTheme(next);
  try {
    localStorage.setItem("guieval-theme", next);
  } catch {
    // it then lasts for as long as the page
  }
}

$("theme").addEventListener("click", nextTheme);
setTheme(theme());
