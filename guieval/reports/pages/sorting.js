// Sorts a table by the column whose head is pressed: numbers largest first, texts from A; pressed again, the other way round.
// What a column has no value of stays below, either way.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...[...table.tHead.rows].at(-1).cells];
  const body = table.tBodies[0];
  const value = (row, place, kind) => {
    const cell = row.cells[place];
    if (kind === "text") return cell.textContent.trim();
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  };
  heads.forEach((head, place) => {
    const kind = head.dataset.kind;
    head.querySelector("button").addEventListener("click", () => {
      const first = kind === "number" ? "descending" : "ascending";
      const second = kind === "number" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? second : first;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [value(row, place, kind), row]);
      rows.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * (kind === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true }));
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}
