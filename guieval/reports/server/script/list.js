// The list of runs: search, tags, and which ones to compare. What is set is in the address.

const FILTERS = ["benchmark", "mode", "model", "tag"];

async function listPage(main) {
  const runs = await get("data/runs");
  const search = el("input", {
    type: "search",
    id: "search",
    placeholder: "Search name, model, note",
    "aria-label": "Search the runs",
    "aria-keyshortcuts": "/",
    autocomplete: "off",
  });
  const values = (name) => [...new Set(runs.flatMap((run) => (name === "tag" ? run.tags : [run[name] ?? ""])))].filter(Boolean).sort();
  const optionsOf = (name) => [["", `any ${name}`], ...values(name).map((each) => [each, each])];
  const selects = FILTERS.filter((name) => values(name).length > 1 || name === "tag").map((name) =>
    el(
      "select",
      { "data-name": name, "aria-label": `Filter by ${name}` },
      optionsOf(name).map(([value, text]) => el("option", { value }, text)),
    ),
  );
  const count = el("p", { id: "count", role: "status" });
  const compare = button({ id: "compare", disabled: true }, "Compare");
  const chosen = new Set();
  const heads = ["", "run", "headline", "n", "model", "benchmark", "mode", "begun", "state", "tags"].map((name) =>
    head(name || el("span", { class: "unseen" }, "compare"), { class: ["headline", "n"].includes(name) ? "number" : null }),
  );
  const table = tableOf({ id: "runs" }, heads);
  main.append(
    el("form", { id: "filters", role: "search", submit: (event) => event.preventDefault() }, search, selects, compare),
    count,
    el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Runs" }, table),
  );

  const mark = () => {
    compare.disabled = chosen.size < 2 || chosen.size > 8;
    compare.textContent = chosen.size < 2 ? "Compare (choose two or more)" : `Compare ${chosen.size} runs`;
  };
  const row = (run) => {
    const box = el("input", { type: "checkbox", "aria-label": `Compare ${run.name}`, disabled: run.state === "broken" });
    box.checked = chosen.has(run.id);
    box.addEventListener("change", () => {
      chosen[box.checked ? "add" : "delete"](run.id);
      mark();
      address();
    });
    const shown = foreign(run.called ? `${run.called} (${run.name})` : run.name);
    const name = run.state === "broken" ? shown : el("a", { href: `runs/${run.id}/` }, shown);
    const headline = run.headline ? [percent(run.headline.value, 1), bar(Math.min(1, Math.max(0, run.headline.value)))] : "";
    const remarks = [run.note?.slice(0, 200), run.problem].filter(Boolean).map((each) => paragraph("soft", foreign(each)));
    const tags = run.tags.map((tag) =>
      button({ class: "tag", "aria-label": `Show runs with tag ${tag}`, click: () => showTag(tag) }, foreign(tag)),
    );
    const missing = run.headline?.missing ? ` (${number(run.headline.missing)} missing)` : "";
    return el(
      "tr",
      {},
      el("td", {}, box),
      el("th", { scope: "row" }, name, remarks),
      el("td", { class: "number", title: run.measure }, headline),
      el("td", { class: "number" }, run.headline ? `${number(run.headline.n)}${missing}` : ""),
      [run.model, run.benchmark, run.mode].map((each) => el("td", {}, foreign(each ?? ""))),
      el("td", {}, (run.created ?? "").slice(0, 16).replace("T", " ")),
      el("td", {}, run.state),
      el("td", {}, tags),
    );
  };
  const showTag = (tag) => {
    const node = selects.find((each) => each.dataset.name === "tag");
    node.value = tag;
    apply();
    node.focus(); // the button that was pressed is gone
  };
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = selects.filter((node) => node.value).map((node) => [node.dataset.name, node.value]);
    const fits = (run) => {
      const text = [run.called, run.name, run.model, run.benchmark, run.mode, run.note, ...run.tags].join("\n").toLowerCase();
      const has = ([name, value]) => (name === "tag" ? run.tags.includes(value) : run[name] === value);
      return words.every((word) => text.includes(word)) && wanted.every(has);
    };
    const listed = runs.filter(fits);
    table.tBodies[0].replaceChildren(...listed.map(row));
    count.textContent = `${listed.length === runs.length ? "" : `${number(listed.length)} of `}${counted(runs.length, "run")}`;
    address();
  };
  const address = () => {
    const parts = new URLSearchParams(selects.filter((node) => node.value).map((node) => [node.dataset.name, node.value]));
    if (search.value) parts.set("q", search.value);
    if (chosen.size) parts.set("compare", [...chosen].join("."));
    history.replaceState(null, "", `#${parts}`);
  };
  const follow = () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    search.value = parts.get("q") ?? "";
    for (const node of selects) node.value = parts.get(node.dataset.name) ?? "";
    const ticked = (parts.get("compare") ?? "").split(".");
    chosen.clear();
    for (const run of runs) if (ticked.includes(run.id) && run.state !== "broken") chosen.add(run.id);
    mark();
    apply();
  };
  compare.addEventListener("click", () => location.assign(`runs/${[...chosen].join(",")}/`));
  for (const node of [search, ...selects]) node.addEventListener("input", apply);
  addEventListener("hashchange", follow);
  searchKey(search);
  follow();
}
