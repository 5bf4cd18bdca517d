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
const VERDICTS = ["right", "wrong", "unparseable", "unsupported", "infrastructure failure", "not run", "not reached"];

async function overviewPage(main) {
  const head = await get("data/head");
  const several = head.runs.length > 1;
  const ways = head.links.map((each) => el("a", { class: "way", href: each.link }, each.name));
  main.append(el("nav", { "aria-label": "Pages of the run" }, ways), el("div", { class: "abouts" }, head.runs.map((run, at) => about(run, at, several))));
  for (const name of head.sections) {
    const title = TITLES[name] ?? `${"ABCDEFGH"[Number(name.split("-")[1])]} against A`;
    const place = el("section", { class: "part", id: name, tabindex: "-1", "aria-label": title }, el("h2", {}, title));
    main.append(place);
    if (name === "protocols") {
      const start = el("button", { type: "button" }, "Score the same answers under every protocol");
      start.addEventListener("click", () => {
        start.remove();
        place.focus({ preventScroll: true }); // the button that was pressed is gone
        history.replaceState(null, "", `#${name}`); // a link to this section opens it
        return fetchPart(place, name);
      });
      if (location.hash === `#${name}`) await fetchPart(place, name);
      else place.append(start);
    } else await fetchPart(place, name, name === "metrics" ? head.stored : null);
  }
  if (location.hash.length > 1) $(location.hash.slice(1))?.scrollIntoView();
  if (head.links[0].link === "steps/") fetch("steps/data/index.js", { method: "HEAD" }).catch(() => {}); // the server keeps it, so the steps open at once
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
    part.cards?.length ? el("ul", { class: "cards" }, part.cards.map(card)) : null,
    part.verdicts ? verdictBar(part.verdicts, part.planned) : null,
    part.failures ? failureList(part) : null,
    notesList(part.notes),
    part.tables?.length ? el("div", { class: "tables" }, part.tables.map(tableNode)) : null,
  ].filter(Boolean);

const card = (each) =>
  el("li", {}, el("span", {}, each.name), el("strong", {}, each.value), el("small", {}, [each.ends, each.n === null ? "" : `n = ${number(each.n)}`, each.mark].filter(Boolean).join(" · ")));

/** How every planned step ended: a bar, and the same in words with links to the steps. */
function verdictBar(verdicts, planned) {
  const strip = el("div", { class: "verdicts", "aria-hidden": "true" });
  for (const each of verdicts) {
    const part = el("i", { class: `v${VERDICTS.indexOf(each.name)}` });
    part.style.flexGrow = String(each.count);
    strip.append(part);
  }
  const words = (each) => [el("i", { class: `key v${VERDICTS.indexOf(each.name)}`, "aria-hidden": "true" }), `${each.name}: ${number(each.count)} (${percent(each.count, planned)})`];
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
  const heads = ["answers", "verdict", "reason", "steps"].map((name) => el("th", { scope: "col" }, name));
  return el(
    "div",
    { class: "wide", tabindex: "0", role: "group", "aria-label": "What failed" },
    el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, part.failures.map(row))),
    part.more ? el("p", { class: "soft" }, `${counted(part.more, "more reason")}.`) : null,
  );
}

/** What a run is, with its tags and the note on it. */
function about(run, at, several) {
  const letter = "ABCDEFGH"[at];
  const named = several ? ` of ${letter}` : "";
  const tags = el("input", { value: run.tags.join(" "), "aria-label": `Tags${named}, with spaces between them`, placeholder: "tags", autocomplete: "off" });
  const note = el("textarea", { rows: "2", "aria-label": `Note on the run${several ? ` ${letter}` : ""}`, placeholder: "a note on the run", maxlength: "10000", dir: "auto" });
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
    several ? el("h2", {}, `${letter}: `, el("a", { href: `../${run.id}/` }, foreign(run.name))) : null,
    el("ul", { class: "facts" }, run.facts.map((fact) => el("li", {}, foreign(fact)))),
    run.noted ? el("p", {}, el("a", { href: several ? `../${run.id}/steps/#?noted=yes` : "steps/#?noted=yes" }, `${counted(run.noted, "step")} with a note`)) : null,
    el("div", { class: "own" }, tags, note, status),
  );
}
