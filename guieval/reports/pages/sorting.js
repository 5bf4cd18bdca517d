// Sorts a table by the column whose head is pressed: numbers largest first, texts from A; pressed again, the other way round.
// What a column has no value of stays below, either way. A row of class "more" stays below its own.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, place) => {
    const numeric = head.classList.contains("number");
    const value = ({ cells }) => (numeric ? Number(cells[place].dataset.value ?? NaN) : cells[place].textContent.trim());
    head.querySelector("button").addEventListener("click", () => {
      const [first, second] = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
      const order = head.getAttribute("aria-sort") === first ? second : first;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].filter((row) => !row.matches(".more")).map((row) => [value(row), row]);
      rows.sort(([a], [b]) => {
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return sign * (numeric ? a - b : a.localeCompare(b, undefined, { numeric: true }));
      });
      body.append(...rows.flatMap(([, row]) => (row.nextElementSibling?.matches(".more") ? [row, row.nextElementSibling] : [row])));
    });
  });
}
