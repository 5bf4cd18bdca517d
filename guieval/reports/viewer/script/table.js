// The table of steps: those that the filters list, sorted by any column. Only its first rows exist, and more on a button.

const TABLE_ROWS = 200;
const table = { shown: false, by: -1, up: true, rows: TABLE_ROWS };

/** Name and value of each column; values are compared as they are shown. */
function tableColumns() {
  const of = (run) => (comparing() ? ` ${LETTERS[run]}` : "");
  return [
    ["episode", (row) => index.labels[episodeOf[row]]],
    ["step", (row) => index.steps[row]],
    ...index.runs.map((_, run) => [`verdict${of(run)}`, (row) => ENDS[end(row, run)].word, run]),
    ["error", kindOf],
    ["reference", (row) => type(index.reference[row]) ?? ""],
    ...index.runs.map((_, run) => [`prediction${of(run)}`, (row) => type(index.predicted[run][row]) ?? ""]),
    ...index.groups.map((group, place) => [group.name, (row) => group.values[index.groups[place].of[row]] ?? ""]),
  ];
}

function showTable(wanted) {
  table.shown = wanted;
  document.body.classList.toggle("as-table", wanted);
  $("table-open").setAttribute("aria-pressed", String(wanted));
  renderTable();
}

function switchTable() {
  showTable(!table.shown);
  followFilters();
}

function sortTable(by) {
  table.up = table.by === by ? !table.up : true;
  table.by = by;
  renderTable();
}

function renderTable() {
  if (!table.shown) return;
  const columns = tableColumns();
  const compare = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
  const value = columns[table.by]?.[1];
  const sorted = value ? [...listed].sort((a, b) => (table.up ? 1 : -1) * compare(value(a), value(b))) : listed;
  const order = table.up ? "ascending" : "descending";
  const sorting = ([name], at) =>
    head(button({ click: () => sortTable(at) }, foreign(name)), { "aria-sort": at === table.by ? order : null });
  const open = (row) => {
    showTable(false);
    go(row);
  };
  const cell = (row) => ([, of, run], at) => {
    const props = { class: "quiet", "aria-label": `Open step ${index.steps[row]} of ${of(row)}`, click: () => open(row) };
    if (!at) return el("th", { scope: "row" }, button(props, foreign(of(row))));
    return el("td", { class: at === 1 ? "number" : null }, run === undefined ? null : [badge(end(row, run)), " "], foreign(of(row)));
  };
  const more = () => {
    table.rows += TABLE_ROWS;
    renderTable();
  };
  const line = (row) => el("tr", { class: row === state.row ? "current" : null }, columns.map(cell(row)));
  const shorter = sorted.length > table.rows;
  refill($("steps"), [
    tableOf({ class: "sortable" }, columns.map(sorting), sorted.slice(0, table.rows).map(line)),
    ...(shorter ? [button({ click: more }, `Show more of ${counted(sorted.length, "step")}`)] : []),
  ]);
}

$("table-open").addEventListener("click", switchTable);
