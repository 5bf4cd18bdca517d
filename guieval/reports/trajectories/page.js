// The page of an online run: the list is in the page; the steps of a trajectory are loaded when it is opened.

const list = $("list");
const entries = [...list.children].map((node) => ({ node, link: node.querySelector("a"), text: node.textContent.toLowerCase() }));
const STRIP = [260, 440];
const loadScript = loaderOf(/^data\/task-\d{5}\.js$/);
let current = -1;
let large = -1; // the place in the strip of the screen that is enlarged

window.guieval = Object.freeze({ task: (number, value) => number === current && show(value) });

function open(number) {
  if (!(number in entries)) return;
  current = number;
  for (const { link } of entries) link.removeAttribute("aria-current");
  entries[number].link.setAttribute("aria-current", "true");
  loadScript(fileName("task", number)).catch((error) => $("trajectory").replaceChildren(el("p", {}, error.message)));
}

function show(task) {
  const strip = el("ol", { id: "strip", tabindex: "0", "aria-label": "Screens in order", keydown: walk });
  const size = task.steps.at(-1)?.size ?? [9, 16];
  strip.append(...task.steps.map(stepNode), lastNode(task, size));
  $("trajectory").replaceChildren(
    el("h2", {}, foreign(task.name), task.repetition ? ` · repetition ${task.repetition}` : null),
    paragraph("goal", foreign(task.goal)),
    verdict(task),
    strip,
  );
  $("trajectory").scrollTop = 0;
  enlargeLinked();
}

const verdict = (task) =>
  el(
    "div",
    { class: "verdict" },
    el("p", {}, el("span", { class: `badge end${task.code}`, "aria-hidden": "true" }, task.sign), " ", el("b", {}, task.ended)),
    task.progress && el("p", {}, `progress ${task.progress}`),
    el("p", {}, counted(task.count, "step")),
    /^moving\/task-\d{5}\.(gif|webp)$/.test(task.moving ?? "") && el("a", { href: task.moving }, "As a moving picture"),
    task.reason && el("p", {}, foreign(task.reason)),
    task.effects.length > 0 && el("div", {}, "Side effects:", el("ul", {}, task.effects.map((each) => el("li", {}, foreign(each))))),
  );

function stepNode(step) {
  const type = step.action?.type ?? "no action";
  return el(
    "li",
    { class: "step sheet", tabindex: "-1" },
    el("h3", {}, `${step.index + 1} `, foreign(type)),
    screenNode(step.screen, step.size, step.action, `Screen of step ${step.index + 1}`),
    paragraph("action", foreign(step.words)),
    step.missed !== null && paragraph("missed", "Not carried out: ", foreign(step.missed)),
    step.thought && paragraph("thought", foreign(step.thought)),
    step.conclusion && step.conclusion !== step.words && paragraph("soft", foreign(step.conclusion)),
    [["Reasoning", step.reasoning], ["Response", step.raw], ["Text of the screen", step.text]].map(
      ([title, text]) => text && folded(title, {}, el("pre", {}, foreign(text))),
    ),
    step.seconds !== null && paragraph("soft", `${step.seconds.toFixed(1)} s`),
  );
}

const lastNode = (task, size) =>
  el(
    "li",
    { class: "step sheet last", tabindex: "-1" },
    el("h3", {}, "End: ", task.ended),
    task.last && screenNode(task.last, size, null, "Last screen"),
    task.reason && el("p", {}, foreign(task.reason)),
  );

/** A screen with the action drawn on it; a press shows it large. */
function screenNode(screen, size, action, name) {
  if (!screen?.name) return paragraph("empty", "No screenshot: ", foreign(screen?.why ?? "none was recorded"));
  const enlarge = (event) => {
    const room = [innerWidth * 0.94, innerHeight * 0.86];
    const close = button({ click: () => $("large").close() }, "Close");
    $("large").replaceChildren(close, drawn(screen.name, size, action, name, room));
    if (!$("large").open) $("large").showModal();
    large = [...$("strip").children].indexOf(event.currentTarget.closest("li"));
    address();
  };
  const props = { class: "enlarge", "aria-label": `${name}: enlarge`, click: enlarge };
  return button(props, drawn(screen.name, size, action, name, STRIP));
}

function drawn(file, size, action, name, room) {
  const scale = Math.min(room[0] / size[0], room[1] / size[1]);
  const [width, height] = size.map((side) => Math.max(1, Math.round(side * scale)));
  const image = el("img", { src: `screens/${file}`, alt: name, loading: "lazy", decoding: "async", width, height });
  const marks = svg("svg", { class: "marks", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  if (action) marks.append(...mark(action, "first", "P", (x) => (x * width) / 1000, (y) => (y * height) / 1000));
  const frame = el("span", { class: "screen" }, image, marks);
  frame.style.width = `${width}px`;
  image.addEventListener("error", () => frame.replaceChildren(el("span", { class: "empty" }, "The screenshot cannot be shown.")));
  return frame;
}

/** Left and right go from step to step. */
function walk(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const all = [...event.currentTarget.children];
  const at = all.indexOf(document.activeElement.closest("li.step"));
  const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ inline: "nearest", block: "nearest" });
}

function filter() {
  const ended = $("ended").value;
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { node, text } of entries) {
    node.hidden = Boolean((ended && node.dataset.ended !== ended) || !words.every((word) => text.includes(word)));
    count += !node.hidden;
  }
  $("count").textContent = `${count} of ${entries.length} trajectories`;
  entries.forEach(({ link }, number) => link.setAttribute("href", linkTo(number)));
}

/** Up and down go through the list. */
list.addEventListener("keydown", (event) => {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const seen = entries.filter(({ node }) => !node.hidden).map(({ link }) => link);
  seen[seen.indexOf(document.activeElement) + step]?.focus();
});
searchKey($("search"));
$("filters").addEventListener("input", () => {
  filter();
  address();
});
$("filters").addEventListener("submit", (event) => event.preventDefault());

/** The link of a trajectory under the filters that are set. */
function linkTo(number, set = new URLSearchParams()) {
  for (const name of ["ended", "search"]) if ($(name).value) set.set(name, $(name).value);
  return `#${number}${set.size ? `?${set}` : ""}`;
}

/** The address says what is shown. */
const address = () => history.replaceState(null, "", linkTo(Math.max(0, current), new URLSearchParams(large < 0 ? "" : { large })));

function follow() {
  const [number, options = ""] = location.hash.slice(1).split("?");
  const set = new URLSearchParams(options);
  for (const name of ["ended", "search"]) $(name).value = set.get(name) ?? "";
  filter();
  large = Number.parseInt(set.get("large") ?? "-1");
  const wanted = Number(number) in entries ? Number(number) : 0;
  if (wanted === current) enlargeLinked();
  else open(wanted);
}

function enlargeLinked() {
  const screen = $("strip")?.children[large]?.querySelector(".enlarge");
  if (screen) screen.click();
  else $("large").close();
}
$("large").addEventListener("close", () => {
  if ($("large").open) return;
  large = -1;
  address();
});
addEventListener("hashchange", follow);
follow();
