// The screen, and what is drawn on it. Places come in thousandths of the screen and are drawn in pixels of the page.

function renderScreen() {
  const task = shown.task;
  const [width, height] = task?.size ?? [9, 16];
  const picture = imagePath("images", (drawn.clean && shown.clean) || shown.image);
  const screen = el("div", { id: "screen", class: picture ? "" : "empty" });
  screen.dataset.ratio = String(width / height);
  const unknown = "There is no record of this step, and the data folder does not have it either.";
  screen.append(
    picture
      ? el("img", { src: picture, alt: "Screenshot of the step", decoding: "async", draggable: "false" })
      : el("p", {}, task ? foreign(`No screenshot: ${shown.why}`) : unknown),
    svg("svg", { id: "marks", class: "marks", "aria-hidden": "true" }),
  );
  stopLoading(canvas);
  canvas.replaceChildren(screen);
  renderLegend();
  fit();
}

/** The largest size at which the whole screen is seen, times the zoom. */
function fit() {
  const screen = $("screen");
  if (!screen) return;
  const style = getComputedStyle(canvas);
  const padding = (...sides) => sides.reduce((sum, side) => sum + parseFloat(style[`padding${side}`]), 0);
  const [across, down] = [canvas.clientWidth - padding("Left", "Right"), canvas.clientHeight - padding("Top", "Bottom")];
  const ratio = Number(screen.dataset.ratio);
  const width = Math.max(120, Math.min(across, down * ratio)) * state.zoom;
  screen.style.width = `${width}px`;
  screen.style.height = `${width / ratio}px`;
  draw(width, width / ratio);
}

const areaOf = (task) => (task?.area[state.protocol] >= 0 ? task.areas[task.area[state.protocol]] : null);
/** The boxes in which the protocol accepts a click; those that are one of the step's own lists come as its name. */
const acceptedBoxes = (area, task) => (typeof area.boxes === "string" ? task[area.boxes] : area.boxes);
/** The parts of the screen that stages of compositions were shown. */
const partsOf = () => index.runs.flatMap((_, run) => (answer(run)?.stages ?? []).flatMap(({ part }) => (part ? [part] : [])));
const answer = (run) => shown.runs[run]?.samples?.[state.sample[run] ?? 0] ?? null;

function draw(width, height) {
  const marks = $("marks");
  const task = shown.task;
  marks.setAttribute("viewBox", `0 0 ${width} ${height}`);
  marks.replaceChildren();
  if (!task) return;
  const x = (value) => (value * width) / 1000;
  const y = (value) => (value * height) / 1000;
  const rectangle = ([x1, y1, x2, y2], kind) =>
    svg("rect", { class: kind, x: x(x1), y: y(y1), width: Math.max(0, x(x2 - x1)), height: Math.max(0, y(y2 - y1)) });
  const corners = (points) => points.map(([px, py]) => `${x(px)},${y(py)}`).join(" ");
  const area = areaOf(task);
  if (drawn.accepted && area) {
    for (const kind of ["light", "accepted"]) {
      // light below dark, so that the lines are seen on any screen
      for (const box of acceptedBoxes(area, task)) marks.append(rectangle(box, kind));
      if (area.polygon) marks.append(svg("polygon", { class: kind, points: corners(task.polygon) }));
      for (const [px, py, across, down] of area.radii)
        marks.append(svg("ellipse", { class: `${kind} near`, cx: x(px), cy: y(py), rx: x(across), ry: y(down) }));
    }
  }
  if (drawn.elements) for (const box of task.elements) marks.append(rectangle(box, "light"), rectangle(box, "element"));
  if (drawn.targets) {
    for (const box of task.targets) marks.append(rectangle(box, "light"), rectangle(box, "target"));
    if (task.polygon) marks.append(svg("polygon", { class: "target", points: corners(task.polygon) }));
  }
  if (drawn.distractor) {
    for (const box of task.lure ?? []) marks.append(rectangle(box, "light"), rectangle(box, "lure"));
    for (const box of task.close ?? []) marks.append(rectangle(box, "light"), rectangle(box, "close"));
  }
  if (drawn.part) for (const box of partsOf()) marks.append(rectangle(box, "light"), rectangle(box, "part"));
  if (drawn.sampled) marks.append(...drawSamples(0, x, y));
  if (drawn.alternatives) for (const action of task.alternatives) marks.append(...mark(action, "alternative", "", x, y));
  if (drawn.reference) marks.append(...mark(task.reference, "reference", "R", x, y));
  if (drawn.prediction) {
    for (let run = index.runs.length - 1; run >= 0; run--) {
      const action = answer(run)?.action;
      if (action) marks.append(...mark(action, sideOf(run), letterOf(run), x, y));
    }
  }
}

function renderLegend() {
  const task = shown.task;
  if (!task) return legend.replaceChildren();
  const area = areaOf(task);
  const accepted = area && (area.radii.length > 0 || area.polygon || acceptedBoxes(area, task).length > 0);
  const located = (action) => Boolean(action?.point);
  const predicted = index.runs.some((_, run) => located(answer(run)?.action));
  const entries = [
    ["reference", "R", "Reference", located(task.reference)],
    ["prediction", index.runs.map((_, run) => letterOf(run)).join(" "), "Prediction", predicted],
    ["alternatives", "○", "Alternatives", task.alternatives.some(located)],
    ...(hasPoints(0) ? [["sampled", "●", comparing() ? "Samples of A" : "Samples", true]] : []),
    ["targets", "■", `Targets (${task.targets.length || (task.polygon ? 1 : 0)})`, task.targets.length > 0 || task.polygon],
    ["elements", "□", `Elements (${task.elements.length})`, task.elements.length > 0],
    ...(task.lure ? [["distractor", "▣", "Distractor", task.lure.length > 0]] : []),
    ...(task.lure ? [["clean", "◌", "Clean screen", Boolean(shown.clean)]] : []),
    ...(partsOf().length ? [["part", "▭", "Zoomed part", true]] : []),
    ["accepted", "▨", area?.varies ? "Accepted, varies" : "Accepted", accepted],
  ];
  const toggles = entries.map(([name, sign, word, there]) => {
    const toggle = (event) => {
      drawn[name] = !drawn[name];
      event.currentTarget.setAttribute("aria-pressed", String(drawn[name]));
      if (name === "clean") renderScreen();
      fit();
      followFilters();
    };
    const props = { class: `toggle ${name}`, "aria-pressed": String(drawn[name]), disabled: !there, click: toggle };
    return button(props, el("b", { "aria-hidden": "true" }, sign), ` ${word}`);
  });
  const zoomed = state.zoom > 1;
  const props = { class: "quiet", "aria-pressed": String(zoomed), "aria-keyshortcuts": "z", click: zoom };
  refill(legend, [...toggles, button(props, zoomed ? "Fit" : "Enlarge")]);
}

/** Twice as large about the reference, or where the prediction is, or the middle; and back. */
function zoom() {
  state.zoom = state.zoom > 1 ? 1 : 2;
  renderLegend();
  fit();
  followFilters();
  centre();
}

function centre() {
  const [x, y] = shown.task?.reference.point ?? answer(0)?.action?.point ?? [500, 500];
  const screen = $("screen");
  canvas.scrollLeft = screen.offsetLeft + (screen.offsetWidth * x) / 1000 - canvas.offsetLeft - canvas.clientWidth / 2;
  canvas.scrollTop = screen.offsetTop + (screen.offsetHeight * y) / 1000 - canvas.offsetTop - canvas.clientHeight / 2;
}
