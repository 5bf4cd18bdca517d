// Filters and search: which steps are listed.

/** The values of a function of rows, in order, each with the number of its rows. */
function withCounts(of, order) {
  const found = new Map();
  for (let row = 0; row < index.steps.length; row++) {
    const name = of(row);
    if (name) found.set(name, (found.get(name) ?? 0) + 1);
  }
  const known = order ? order.filter((each) => found.has(each)) : [...found.keys()].sort();
  return known.map((each) => [each, `${each} (${number(found.get(each))})`]);
}

/** Who was right: all, none, some, one alone, all but one. */
function patterns() {
  const letters = index.runs.map((_, run) => LETTERS[run]);
  const two = letters.length === 2;
  return [
    ["some", two ? "Flipped, either way" : "Right in some, not in all"],
    ...letters.map((each) => [`only${each}`, two ? `${each} right, ${letters.find((other) => other !== each)} not` : `Only ${each} right`]),
    ...(two ? [] : letters.map((each) => [`not${each}`, `All right but ${each}`])),
    ["all", two ? "Both right" : "All right"],
    ["none", two ? "Neither right" : "None right"],
  ];
}
function fits(pattern, row) {
  const right = index.runs.map((_, run) => end(row, run) === RIGHT);
  const count = right.filter(Boolean).length;
  const run = LETTERS.indexOf(pattern.at(-1));
  if (pattern.startsWith("only")) return count === 1 && right[run];
  if (pattern.startsWith("not")) return count === right.length - 1 && right[run] === false;
  return pattern === "all" ? count === right.length : pattern === "none" ? !count : count > 0 && count < right.length;
}

/** The filters of this index: name, title, a row's value, and the options; without any, all values with their counts. */
function choices() {
  const verdicts = [...new Set(ENDS.map((each) => each.verdict))];
  const answers = (test) => (row) => (test(row) ? "yes" : "no");
  const yesOrNo = (yes, no) => [["yes", yes], ["no", no]];
  const numbered = (values) => values.map((name, at) => [String(at), name || "(none)"]);
  const noted = (row) => index.noted.some((each) => String(row) in each);
  return [
    ["verdict", "Verdict", (row) => ENDS[end(row)].verdict, null, verdicts],
    ["kind", "Error", kindOf],
    ["reference", "Reference", (row) => type(index.reference[row])],
    ["predicted", "Prediction", (row) => type(index.predicted[0][row])],
    index.protocols.length > 1 && ["disagree", "Agreement", answers(disagree), yesOrNo("Protocols disagree", "Protocols agree")],
    comparing() && [
      "flipped",
      index.runs.length > 2 ? "Runs" : "A and B",
      (row, pattern) => (fits(pattern, row) ? pattern : null),
      patterns(),
    ],
    index.subsets.length > 1 && ["subset", "Subset", (row) => String(index.subset[episodeOf[row]]), numbered(index.subsets)],
    ...index.groups.map(
      ({ name, values, of }, at) => values.length > 1 && [`group:${at}`, name, (row) => String(of[row]), numbered(values)],
    ),
    (index.writable || index.noted.some((each) => Object.keys(each).length)) && [
      "noted",
      "Notes",
      answers(noted),
      yesOrNo("With a note", "Without"),
    ],
  ].filter(Boolean);
}

const optionsOf = ([, title, of, options, order]) =>
  [["", title], ...(options ?? withCounts(of, order))].map(([value, text]) => el("option", { value }, text));
const filterNodes = () => [...$("filters").elements].filter((node) => node.name);

function buildFilters() {
  const form = $("filters");
  const search = el("input", {
    type: "search",
    name: "query",
    placeholder: "Search task, response, app",
    "aria-label": "Search the instruction, the response and the app",
    "aria-keyshortcuts": "f",
    autocomplete: "off",
    spellcheck: "false",
  });
  const select = (each) => el("span", {}, el("select", { name: each[0], "aria-label": each[1] }, optionsOf(each)));
  form.append(search, ...choices().map(select), el("button", { type: "reset", id: "clear", class: "quiet" }, "Clear filters"));
  form.addEventListener("submit", (event) => event.preventDefault());
  let timer = 0;
  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(readFilters, event.target === search ? 120 : 0);
  });
  form.addEventListener("reset", () => setTimeout(readFilters, 0));
}

/** The counts are of the protocol that is shown, and of what is answered by now. */
function recount() {
  for (const each of choices().filter(([, , , options]) => !options)) {
    const node = $("filters").elements[each[0]];
    const chosen = node.value;
    node.replaceChildren(...optionsOf(each));
    node.value = chosen;
    if (node.value !== chosen) node.value = filters[each[0]] = "";
  }
}

function readFilters() {
  takeFilters();
  applyFilters(true);
  followFilters();
}

/** The state of the form; the texts are loaded if a search needs them. */
function takeFilters() {
  for (const node of filterNodes()) {
    node.classList.toggle("set", node.value !== "");
    filters[node.name] = node.value;
  }
  if (filters.query.trim()) searchTexts();
}

/** What is set, as the part of a link after the question mark. */
function query() {
  const set = new URLSearchParams();
  for (const node of filterNodes()) if (node.value) set.set(node.name, node.value.toWellFormed?.() ?? node.value);
  if (state.sample.some(Boolean)) set.set("sample", state.sample.join("."));
  if (state.zoom > 1) set.set("zoom", "2");
  if (table.shown) set.set("view", "table");
  const lists = {
    show: Object.keys(MARKS).filter((name) => drawn[name] && !MARKS[name]),
    hide: Object.keys(MARKS).filter((name) => !drawn[name] && MARKS[name]),
    open: [...folds.keys()].filter((name) => folds.get(name)),
    closed: [...folds.keys()].filter((name) => !folds.get(name)),
  };
  for (const [name, list] of Object.entries(lists)) if (list.length) set.set(name, list.join("."));
  return set.size ? `?${set}` : "";
}

/** Sets the form as a link says; whether that changed anything. */
function setFilters(given) {
  let changed = false;
  for (const node of filterNodes()) {
    const wanted = given.get(node.name) ?? "";
    if (node.value === wanted) continue;
    node.value = wanted;
    if (node.value !== wanted) node.value = "";
    changed = true;
  }
  if (changed) takeFilters();
  return changed;
}

/** Loads the texts one file after the other; what is found is listed as they come. */
async function searchTexts() {
  const asked = filters.query;
  const files = Math.ceil(index.steps.length / index.search);
  for (let number = 0; number < files; number++) {
    if (texts[number]) continue;
    try {
      texts[number] = await load("text", number);
    } catch (error) {
      return say(error.message);
    }
    if (filters.query !== asked) return;
    if (number % 4 === 3 || number === files - 1) applyFilters(true);
  }
}

function accepts() {
  const tests = [];
  const words = filters.query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length) {
    tests.push((row) => {
      const near = lowered[episodeOf[row]];
      const text = texts[Math.floor(row / index.search)]?.[row % index.search] ?? "";
      return words.every((word) => near.includes(word) || text.includes(word));
    });
  }
  for (const [name, , of] of choices()) {
    const wanted = filters[name];
    if (wanted) tests.push((row) => of(row, wanted) === wanted);
  }
  return (row) => tests.every((test) => test(row));
}

const disagree = (row) => index.protocols.some((_, each) => (end(row, 0, each) === RIGHT) !== (end(row, 0, 0) === RIGHT));

function applyFilters(move) {
  const accept = accepts();
  listed = [];
  listedEpisodes = [];
  matches = new Uint8Array(index.steps.length);
  let right = 0;
  let reached = 0;
  for (let row = 0; row < index.steps.length; row++) {
    if (!accept(row)) continue;
    matches[row] = 1;
    listed.push(row);
    const code = end(row);
    right += code === RIGHT;
    reached += code !== NOT_REACHED;
    const last = listedEpisodes.at(-1);
    if (last?.episode === episodeOf[row]) last.count++;
    else listedEpisodes.push({ episode: episodeOf[row], first: row, count: 1 });
  }
  const all = index.steps.length;
  const share = reached ? `${percent(right, reached)} right of ${number(reached)}` : "none reached";
  const what = listed.length === all ? counted(all, "step") : `${number(listed.length)} of ${counted(all, "step")}`;
  $("count").textContent = listed.length ? `${what}: ${share}` : "No step matches these filters.";
  $("clear").hidden = listed.length === all;
  if (move && listed.length && !matches[state.row]) return go(listed[0], { replace: true }); // renders the list too
  renderList(true);
  renderTable();
  markStrip();
}
