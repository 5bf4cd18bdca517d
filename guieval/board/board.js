// Filters the numbers, unfolds what is known of one, and copies its commands.

const numbers = $("numbers");
if (numbers) {
  const table = numbers.querySelector("table");
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const rows = [...table.tBodies[0].rows].filter((row) => !row.matches(".more"));
  const textOf = (row, place) => row.cells[place].textContent.trim();
  const opened = (row, open) => {
    row.nextElementSibling.hidden = !open;
    row.querySelector("button").setAttribute("aria-expanded", String(open));
  };

  for (const row of rows) {
    const model = textOf(row, 0);
    row.dataset.model = model;
    const toggle = () => opened(row, row.nextElementSibling.hidden);
    row.cells[0].append(button({ "aria-expanded": "false", "aria-label": `Details of ${model}`, class: "tag", click: toggle }, "details"));
    const commands = row.nextElementSibling.querySelector("pre");
    if (!commands) continue;
    const copy = button({ click: () => copied(copy, commands) }, "Copy the commands");
    commands.after(copy);
  }

  async function copied(copy, commands) {
    try {
      await navigator.clipboard.writeText(commands.textContent);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(commands); // a page from disk may have no clipboard
      copy.textContent = "Selected: copy it with the keyboard";
    }
  }

  const words = el("input", { type: "search", input: filter });
  const choices = numbers.dataset.filtered.split(",").map((name) => {
    const place = heads.indexOf(name);
    const values = [...new Set(rows.map((row) => textOf(row, place)))];
    const select = el("select", { change: filter }, el("option", { value: "" }, "all"), values.map((value) => el("option", { value }, value)));
    return { name, place, select, several: values.length > 1 };
  });

  function filter() {
    const searched = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const chosen = choices.every(({ place, select }) => !select.value || textOf(row, place) === select.value);
      row.hidden = !(chosen && searched.every((word) => row.textContent.toLowerCase().includes(word)));
      if (row.hidden) opened(row, false);
      else shown += 1;
    }
    $("count").textContent = `${number(shown)} of ${counted(rows.length, "number")}`;
  }

  $("filters").append(
    el("label", {}, "search", words),
    ...choices.filter(({ several }) => several).map(({ name, select }) => el("label", {}, name, select)),
  );
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("filters").hidden = false;
  searchKey(words);
  filter();
}
