// A run that still writes: how far it is, and, if it is served, its new answers every few seconds.

const LIVE_SECONDS = 10;

function showLive() {
  const done = [...index.ends[0][0]].filter((code) => code !== "7").length;
  $("live").hidden = !index.running;
  const when = index.writable ? "" : " when this was written";
  $("live").textContent = `Running: ${number(done)} of ${counted(index.steps.length, "step")}${when}`;
  if (!index.running || !index.writable) return;
  setTimeout(() => loadScript("data/index.js").catch((error) => say(error.message)), 1000 * LIVE_SECONDS);
}

/** The index again, with what was answered meanwhile; the step, the filters and the place stay. */
function renew(value) {
  index = value;
  for (const kept of Object.values(loaded)) kept.clear();
  texts = [];
  delete strip.dataset.shown;
  recount();
  applyFilters(false);
  openStep(state.row, state.protocol);
  showLive();
}
