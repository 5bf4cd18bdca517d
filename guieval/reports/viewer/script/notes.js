// Notes on the step: written where the page is served, read in a report.

function notesSection() {
  const noted = index.noted.map((each) => each[String(state.row)] ?? "");
  if (index.writable) return section("Notes", noted.map((text, run) => noteEditor(run, text)));
  const words = (text, run) => el("p", { class: "prose", dir: "auto" }, comparing() ? `${LETTERS[run]}: ${text}` : text);
  const written = noted.map((text, run) => text && words(text, run)).filter(Boolean);
  return written.length ? section("Notes", written) : null;
}

function noteEditor(run, text) {
  const { row } = state;
  const { names, step } = shown;
  const label = comparing() ? `Note on the step in run ${LETTERS[run]}` : "Note on the step";
  const placeholder = comparing() ? `Run ${LETTERS[run]}` : "";
  const field = el("textarea", { rows: "3", maxlength: "10000", "aria-label": label, placeholder, dir: "auto" });
  field.value = text;
  const status = el("span", { role: "status" });
  const save = async () => {
    if (field.value === (index.noted[run][row] ?? "")) return;
    const wanted = field.value;
    try {
      await post("note", { run, step: [...names, step], text: wanted });
      if (wanted) index.noted[run][row] = wanted;
      else delete index.noted[run][row];
      status.textContent = wanted ? "Saved" : "Removed";
    } catch (error) {
      status.textContent = `Not saved: ${error.message}`;
    }
  };
  field.addEventListener("change", save);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
  });
  return el("div", { class: "note" }, field, el("p", {}, button({ click: save }, "Save"), " ", status));
}

const editNote = () => panel.querySelector(".note textarea")?.focus();
