// Moving about: links, the way from step to step, and what happens when a step is opened.

const encode = (text) => encodeURIComponent(text.toWellFormed?.() ?? text.replace(/[\ud800-\udfff]/g, "�"));
const linkTo = (row, protocol = state.protocol) =>
  `#${encode(index.labels[episodeOf[row]])}/${index.steps[row]}/${encode(index.protocols[protocol].name)}${query()}`;

/** Show a step and say so in the address; history's methods cause no event, which could come late and undo a later choice. */
function go(row, { protocol = state.protocol, replace = false } = {}) {
  if (row !== state.row) state.sample = [];
  const link = linkTo(row, protocol);
  if (replace) history.replaceState(null, "", link);
  else if (link !== location.hash) history.pushState(null, "", link);
  openStep(row, protocol);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

function readLink(path) {
  const [episode, step, protocol] = path.split("/").map(decoded);
  const at = names.get(episode) ?? -1;
  if (at < 0) return null;
  const named = index.protocols.findIndex((each) => each.name === protocol);
  const judge = named < 0 ? state.protocol : named;
  for (let row = index.starts[at]; row <= lastRow(at); row++) {
    if (index.steps[row] === Number(step)) return [row, judge];
  }
  return [index.starts[at], judge];
}

/** Show what a link names: the link that was followed, even if a filter has changed the address meanwhile. */
function followLink(link = location.href) {
  const [path, options = ""] = new URL(link).hash.slice(1).split("?");
  const given = new URLSearchParams(options);
  if (setFilters(given)) applyFilters(false);
  const [row, protocol] = readLink(path) ?? [listed[0] ?? 0, state.protocol];
  const sample = (given.get("sample") ?? "").split(".").map((each) => Math.min(Math.max(Number.parseInt(each) || 0, 0), 63));
  const zoom = given.get("zoom") === "2" ? 2 : 1;
  setMarksAndFolds(given);
  state.zoom = zoom;
  if ((given.get("view") === "table") !== table.shown) showTable(!table.shown);
  state.sample = sample.some(Boolean) ? sample : [];
  const named = `${decoded(linkTo(row, protocol).split("?")[0])}/`.startsWith(`#${decoded(path)}/`); // a link may end with a step
  if (path && !named) say("The link names nothing in this report; this is what comes nearest.");
  history.replaceState(null, "", linkTo(row, protocol));
  openStep(row, protocol);
}

/** What is drawn, and which parts of the panel are open, as a link says. */
function setMarksAndFolds(given) {
  const [show, hide, open, closed] = ["show", "hide", "open", "closed"].map((name) => (given.get(name) ?? "").split("."));
  for (const name of Object.keys(MARKS)) drawn[name] = MARKS[name] ? !hide.includes(name) : show.includes(name);
  folds.clear();
  for (const name of [...open, ...closed]) if (FOLDS.test(name)) folds.set(name, open.includes(name));
}

/** The address says which filters are set, what is enlarged, drawn and open. */
function followFilters() {
  history.replaceState(null, "", linkTo(state.row));
}

/** The next row that matches, forwards or backwards; from a row that itself need not match. */
function beside(row, direction) {
  for (let next = row + direction; next >= 0 && next < matches.length; next += direction) if (matches[next]) return next;
  return -1;
}

function move(direction) {
  const next = beside(state.row, direction);
  if (next >= 0) go(next);
}

function moveEpisode(direction) {
  const here = episodeOf[state.row];
  const places = direction > 0 ? listedEpisodes : [...listedEpisodes].reverse();
  const next = places.find((each) => (direction > 0 ? each.episode > here : each.episode < here));
  if (next) go(next.first);
}

async function openStep(row, protocol) {
  const another = protocol !== state.protocol;
  state.row = row;
  state.protocol = protocol;
  $("protocol").value = String(protocol);
  if (another) {
    recount();
    applyFilters(false);
  } else {
    renderList(true);
    renderTable();
  }
  try {
    const chunk = await load("steps", Math.floor(row / index.chunk));
    if (state.row !== row) return; // another step was asked for meanwhile
    shown = { row, lines: chunk.lines, ...chunk.rows[row % index.chunk] };
    renderScreen();
    renderPanel();
    await renderStrip();
  } catch (error) {
    say(error.message);
  }
}

function say(text) {
  const note = el("p", { class: "toast", role: "alert" }, text);
  document.body.append(note);
  setTimeout(() => note.remove(), 6000);
}
