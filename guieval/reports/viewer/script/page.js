// Help, keys, and the start.

function buildHelp() {
  const keys = [
    ["j or →", "next step that is listed"],
    ["k or ←", "step before"],
    ["n", "next episode"],
    ["p", "episode before"],
    ["f or /", "search and filters"],
    ["t", "the table of steps, or the step again"],
    ["z", "enlarge the screen, or fit it again"],
    ...(index.writable ? [["e", "write a note on the step"]] : []),
    ["?", "this help"],
  ];
  const pressable = (key) => key.split(" or ").flatMap((each, at) => [at ? " or " : "", el("kbd", {}, each)]);
  const about = (run) =>
    `${run.name ? `${run.name}: ` : ""}${run.model} on ${run.benchmark}, ${run.mode}, run under ${run.protocol}, begun ` +
    `${run.created}; ${run.steps}${run.labels ? `; labels: ${run.labels}` : ""}; scaffold: ${run.scaffold}`;
  fill($("help-body"), {}, [
    el("dl", {}, keys.map(([key, what]) => [el("dt", {}, pressable(key)), el("dd", {}, what)])),
    el("h3", {}, "Verdicts"),
    plainList(ENDS.slice(0, comparing() ? 9 : 8).map((each, code) => [badge(code), ` ${each.word}`])),
    el("h3", {}, "On the screen"),
    el(
      "p",
      {},
      "R, a ring: the reference point. P (or A, B, ... of several runs), a diamond or a square: the prediction. An arrow is the ",
      "finger's path. Small rings are further accepted points. Thick lines are the targets, thin ",
      "dotted ones other elements of the screen; a red frame is the distractor that was drawn, with what closes it in green; a dashed frame is the part that a zoomed query showed; green areas are where the chosen protocol accepts a click; where that ",
      "“varies”, it chooses among them by the click itself. Dots are the points ",
      "of all samples, in the colour of the decision they belong to, larger where drawn more often; grey rings lie alone.",
    ),
    el("h3", {}, "This report"),
    index.runs.map((run, at) => {
      const more = [["answered by", run.served], ["set-up:", run.setup], ["tags:", run.tags], ["note:", run.note]];
      const facts = more.filter(([, text]) => text).map(([name, text]) => foreign(`; ${name} ${text}`));
      return el("p", {}, comparing() ? `${LETTERS[at]}: ` : "", foreign(about(run)), facts);
    }),
    index.notes.map((note) => el("p", {}, foreign(note))),
  ]);
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const field = event.target.closest?.("input, select, textarea");
  if (field) {
    if (event.key === "Escape") field.blur();
    return;
  }
  const search = () => $("filters").elements.query.focus();
  const act = {
    j: () => move(1),
    ArrowRight: () => move(1),
    k: () => move(-1),
    ArrowLeft: () => move(-1),
    n: () => moveEpisode(1),
    p: () => moveEpisode(-1),
    f: search,
    "/": search,
    z: zoom,
    t: switchTable,
    e: editNote,
    "?": () => $("help").showModal(),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function start(value) {
  index = value;
  episodeOf = new Int32Array(index.steps.length);
  index.starts.forEach((first, episode) => episodeOf.fill(episode, first, lastRow(episode) + 1));
  lowered = index.labels.map((label, at) => `${label}\n${index.instructions[at]}`.toLowerCase());
  names = new Map(index.labels.map((label, at) => [encodeSafe(label), at]));
  state.protocol = index.shown;
  const [run] = index.runs;
  const runs = index.runs.map((each, at) => `${LETTERS[at]}: ${each.model}, ${each.mode}, engine ${each.engine}`);
  $("about").append(foreign(comparing() ? runs.join("   ") : `${run.steps}; engine: ${run.engine}`));
  $("protocol").append(...index.protocols.map((each, at) => el("option", { value: String(at), title: each.summary }, each.name)));
  $("protocol").addEventListener("change", (event) => go(state.row, { protocol: Number(event.target.value) }));
  $("help-open").addEventListener("click", () => $("help").showModal());
  document.body.classList.toggle("two", comparing());
  buildFilters();
  buildHelp();
  document.addEventListener("keydown", pressed);
  window.addEventListener("hashchange", (event) => followLink(event.newURL));
  list.addEventListener("scroll", () => renderList(false), { passive: true });
  new ResizeObserver(() => {
    fit();
    renderList(false);
  }).observe(canvas);
  applyFilters(false);
  followLink();
  showLive();
}

/** A label as it comes back from a link: half a surrogate pair does not survive one. */
function encodeSafe(label) {
  return decodeURIComponent(encode(label));
}
