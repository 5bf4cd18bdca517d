// The overview of a run, or the comparison of several: sections that are fetched one after the other.

const TITLES = {
  metrics: "Metrics",
  breakdowns: "By action, horizon and error",
  failures: "What failed, and why",
  protocols: "Every protocol",
  decisions: "Decisions",
  online: "Metrics",
  patterns: "Who was right where",
};
const COLOURS = { right: 0, wrong: 2, unparseable: 3, unsupported: 4, "infrastructure failure": 5, "not run": 6, "not reached": 6 };

async function overviewPage(main) {
  const { runs, links, sections, stored } = await get("data/head");
  const ways = links.map((each) => el("a", { class: "way", href: each.link }, each.name));
  const abouts = runs.map((run, at) => about(run, at, runs.length > 1));
  main.append(el("nav", { "aria-label": "Pages of the run" }, ways), el("div", { class: "abouts" }, abouts));
  for (const name of sections) {
    const title = TITLES[name] ?? `${LETTERS[Number(name.split("-")[1])]} against A`;
    const place = el("section", { class: "part", id: name, tabindex: "-1", "aria-label": title }, el("h2", {}, title));
    main.append(place);
    if (name === "protocols") {
      const start = button({}, "Score the same answers under every protocol");
      start.addEventListener("click", () => {
        start.remove();
        place.focus({ preventScroll: true }); // the button that was pressed is gone
        history.replaceState(null, "", `#${name}`); // a link to this section opens it
        return fetchPart(place, name);
      });
      if (location.hash === `#${name}`) await fetchPart(place, name);
      else place.append(start);
    } else await fetchPart(place, name, name === "metrics" ? stored : null);
  }
  if (location.hash.length > 1) $(location.hash.slice(1))?.scrollIntoView();
  // The server keeps what it made, so the steps open at once.
  if (links[0].link === "steps/") fetch("steps/data/index.js", { method: "HEAD" }).catch(() => {});
}

/** Fetches a section; until it comes, `stored` metrics are shown, which need no journal. */
async function fetchPart(place, name, stored) {
  const before = stored ? partNodes(stored) : [];
  const wait = el("p", { class: "soft", role: "status" }, "Reading the journal…");
  place.append(...before, wait);
  try {
    const part = await get(`data/${name}`);
    for (const node of before) node.remove();
    wait.replaceWith(...partNodes(part));
  } catch (error) {
    wait.textContent = error.message;
  }
}

const partNodes = (part) =>
  [
    part.cards?.length && el("ul", { class: "cards" }, part.cards.map(card)),
    part.verdicts && verdictBar(part.verdicts, part.planned),
    part.failures && failureList(part),
    notesList(part.notes),
    part.tables?.length && el("div", { class: "tables" }, part.tables.map(tableNode)),
  ].filter(Boolean);

function card({ name, value, ends, n, mark }) {
  const more = [ends, n !== null && `n = ${number(n)}`, mark].filter(Boolean).join(" · ");
  return el("li", {}, el("span", {}, name), el("strong", {}, value), el("small", {}, more));
}

/** How every planned step ended: a bar, and the same in words with links to the steps. */
function verdictBar(verdicts, planned) {
  const strip = el("div", { class: "verdicts", "aria-hidden": "true" });
  for (const each of verdicts) {
    const part = el("i", { class: `end${COLOURS[each.name]}` });
    part.style.flexGrow = String(each.count);
    strip.append(part);
  }
  const words = ({ name, count }) => [
    el("i", { class: `key end${COLOURS[name]}`, "aria-hidden": "true" }),
    `${name}: ${number(count)} (${percent(count, planned)})`,
  ];
  return el("div", {}, strip, el("ul", { class: "legend" }, verdicts.map((each) => el("li", {}, link(each.link, words(each))))));
}

function failureList(part) {
  if (!part.failures.length) return el("p", {}, "No answer is missing, unreadable or outside the action space.");
  const row = (each) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", class: "number" }, number(each.count)),
      el("td", {}, each.kind),
      el("td", {}, foreign(each.reason)),
      el("td", {}, each.steps.map((step, at) => [at ? ", " : "", link(step.link, foreign(step.name))])),
    );
  const heads = ["answers", "verdict", "reason", "steps"].map((name) => head(name));
  return el(
    "div",
    { class: "wide", tabindex: "0", role: "group", "aria-label": "What failed" },
    tableOf({}, heads, part.failures.map(row)),
    part.more > 0 && paragraph("soft", `${counted(part.more, "more reason")}.`),
  );
}

/** What a run is, with its tags and the note on it. */
function about(run, at, several) {
  const letter = LETTERS[at];
  const [page, named] = several ? [`../${run.id}/`, ` ${letter}`] : ["", ""];
  const words = `Tags${several ? ` of ${letter}` : ""}, with spaces between them`;
  const tags = el("input", { value: run.tags.join(" "), "aria-label": words, placeholder: "tags", autocomplete: "off" });
  const labels = { "aria-label": `Note on the run${named}`, placeholder: "a note on the run", dir: "auto" };
  const note = el("textarea", { rows: "2", maxlength: "10000", ...labels });
  note.value = run.note;
  const status = el("span", { class: "soft", role: "status" });
  const saved = (make) => async () => {
    try {
      await post(`../${run.id}/note`, make());
      status.textContent = "Saved";
    } catch (error) {
      status.textContent = `Not saved: ${error.message}`;
    }
  };
  tags.addEventListener("change", saved(() => ({ tags: tags.value.split(/[\s,]+/).filter(Boolean) })));
  note.addEventListener("change", saved(() => ({ text: note.value })));
  return el(
    "section",
    { class: "sheet about", "aria-label": several ? `Run ${letter}` : "The run" },
    several && el("h2", {}, `${letter}: `, el("a", { href: page }, foreign(run.name))),
    el("ul", { class: "facts" }, run.facts.map((fact) => el("li", {}, foreign(fact)))),
    run.noted > 0 && el("p", {}, el("a", { href: `${page}steps/#?noted=yes` }, `${counted(run.noted, "step")} with a note`)),
    el("div", { class: "own" }, tags, note, status),
  );
}
