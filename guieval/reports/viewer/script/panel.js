// All that is known of the step, in words.

function told(action) {
  if (!action) return ["none"];
  const at = action.point ? ` at ${action.point.map((side) => Number(side.toFixed(1))).join(", ")}` : "";
  const parts = [el("b", {}, action.type)];
  if (action.type === "SCROLL") parts.push(` ${action.direction}`);
  if (action.type === "LONG_PRESS" || action.type === "WAIT") parts.push(` ${action.duration} ms`);
  parts.push(at);
  for (const name of ["text", "app", "button", "status", "name", "arguments"]) {
    if (!(name in action) || (name === "arguments" && action[name] === "{}")) continue;
    const quote = name === "text" || name === "app" ? ["“", "”"] : ["", ""]; // outside, where no word can move them
    parts.push(" ", quote[0], foreign(action[name]), quote[1]);
  }
  return parts;
}

const section = (title, ...content) => el("section", {}, el("h3", {}, title), ...content);
const quoted = (title, text) =>
  text === null || text === undefined || text === "" ? null : section(title, el("p", { class: "prose", dir: "auto" }, text));

function renderPanel() {
  const task = shown.task;
  const row = state.row;
  const episode = episodeOf[row];
  const length = task?.length;
  const heading = el(
    "header",
    {},
    el(
      "div",
      { class: "where" },
      el("h2", {}, `Step ${index.steps[row]}`, el("small", {}, length > 1 ? ` of 0–${length - 1}` : "")),
      el(
        "button",
        {
          type: "button",
          "aria-label": "Step before",
          "aria-keyshortcuts": "k",
          disabled: beside(row, -1) < 0,
          click: () => move(-1),
        },
        "←",
      ),
      el(
        "button",
        {
          type: "button",
          "aria-label": "Next step",
          "aria-keyshortcuts": "j",
          disabled: beside(row, 1) < 0,
          click: () => move(1),
        },
        "→",
      ),
    ),
    el("p", { class: "episode-name" }, foreign(index.labels[episode])),
  );
  const goal =
    task &&
    section(
      "Task",
      el("p", { class: "goal" }, foreign(task.instruction)),
      task.low ? el("p", { class: "low" }, el("span", { class: "tag" }, "this step"), foreign(task.low)) : null,
    );
  const unrecorded =
    task && !shown.recorded
      ? el("p", { class: "reason" }, "No run has a record of this step; task, screen and reference are from the data folder.")
      : null;
  const labels =
    task &&
    [...Object.entries(task.groups)].map(([name, value]) => el("span", { class: "tag" }, foreign(name), ": ", foreign(value)));
  const expected =
    task &&
    section(
      "Reference",
      el("p", { class: "action" }, el("span", { class: "sign reference" }, "R"), told(task.reference)),
      task.alternatives.length
        ? el(
            "details",
            { "data-part": "accepted" },
            el("summary", {}, `${task.alternatives.length} more accepted`),
            el(
              "ul",
              { class: "plain" },
              task.alternatives.map((each) => el("li", {}, told(each))),
            ),
          )
        : null,
    );
  const answers = el(
    "div",
    { class: comparing() ? `answers two${index.runs.length > 2 ? " more" : ""}` : "answers" },
    index.runs.map((_, run) => answerOf(run)),
  );
  const judged = comparing() ? protocolsTable() : null;
  const more =
    task &&
    el(
      "details",
      { class: "more", "data-part": "about" },
      el("summary", {}, "About the step"),
      el(
        "dl",
        {},
        el("dt", {}, "name"),
        el("dd", {}, foreign(shown.key), ` step ${shown.step}`),
        el("dt", {}, "setting"),
        el("dd", {}, `${task.setting}, split `, foreign(task.split)),
        el("dt", {}, "screen"),
        el("dd", {}, `${task.size[0]} × ${task.size[1]} pixels`),
      ),
      task.extras ? el("pre", { dir: "auto" }, task.extras) : null,
    );
  const named = labels?.length ? el("p", { class: "labels" }, labels) : null;
  refill(panel, [heading, goal, unrecorded, named, expected, answers, judged, notesSection(), more].filter(Boolean));
  for (const node of panel.querySelectorAll("[data-part]")) node.open = folds.get(node.dataset.part) ?? node.open;
  if (panel.dataset.row !== String(row)) panel.scrollTop = 0;
  panel.dataset.row = String(row);
}

/** A part that somebody opens or closes stays so on further steps, and in the address. */
panel.addEventListener("click", (event) => {
  const node = event.target.closest("summary")?.parentElement;
  if (!node?.dataset.part) return;
  folds.set(node.dataset.part, !node.open);
  followFilters();
});

function answerOf(run) {
  const seen = shown.runs[run];
  const code = seen.ends[state.protocol];
  const sample = answer(run);
  const name = comparing()
    ? el(
        "h3",
        { class: "run" },
        el("span", { class: `sign ${sideOf(run)}` }, LETTERS[run]),
        foreign(`${index.runs[run].model}, ${index.runs[run].mode}`),
      )
    : null;
  const outcome = sample?.outcomes[state.protocol];
  const own = outcome ? outcome[0] : code; // of the sample that is shown
  const verdict = el(
    "div",
    { class: `verdict end${own}` },
    el("p", {}, badge(own), el("strong", {}, ENDS[own].word)),
    outcome ? el("p", { class: "reason" }, foreign(outcome[3])) : null,
    code === NOT_REACHED && sample
      ? el("p", { class: "reason" }, "Under this protocol the episode ended before this step, so the answer counts nowhere.")
      : null,
  );
  if (!sample) return el("section", { class: "answer" }, name, verdict, promptOf(run, seen));
  const samples =
    seen.samples.length > 1
      ? el(
          "p",
          { class: "samples", role: "group", "aria-label": "Samples" },
          seen.samples.map((each, at) =>
            el(
              "button",
              {
                type: "button",
                "aria-pressed": String(at === (state.sample[run] ?? 0)),
                click: () => {
                  state.sample = index.runs.map((_, each) => (each === run ? at : (state.sample[each] ?? 0)));
                  followFilters();
                  renderPanel();
                  renderScreen();
                },
              },
              `${at + 1} ${ENDS[each.outcomes[state.protocol][0]].mark}`,
            ),
          ),
          seen.more ? el("small", {}, `and ${seen.more.toLocaleString("en")} more, in the journal`) : null,
        )
      : null;
  return el(
    "section",
    { class: "answer" },
    name,
    verdict,
    decisionsSection(run),
    samples,
    section(
      "Prediction",
      el(
        "p",
        { class: "action" },
        el("span", { class: `sign ${sideOf(run)}` }, letterOf(run)),
        told(sample.action),
      ),
    ),
    sample.error ? section(`Failed at: ${sample.error[0]}`, el("p", { class: "reason" }, foreign(sample.error[1]))) : null,
    quoted("Conclusion", sample.conclusion),
    quoted("Thought", sample.thought),
    quoted("Reasoning", sample.reasoning),
    comparing() ? null : protocolsTable(),
    sample.raw === null
      ? null
      : el(
          "details",
          { open: !sample.thought && !sample.conclusion, "data-part": `response${run || ""}` },
          el("summary", {}, "Raw response"),
          el("pre", { dir: "auto" }, sample.raw || "(empty)"),
        ),
    promptOf(run, seen),
    costs(sample),
  );
}

/** What each protocol says of the samples that are shown: a row a protocol, columns for each run that has an answer. */
function protocolsTable() {
  const told = index.runs.map((_, run) => run).filter((run) => answer(run));
  if (index.protocols.length < 2 || !told.length) return null;
  const outcomes = (run) => answer(run).outcomes;
  const letter = (run) => (comparing() ? LETTERS[run] : "");
  const row = (protocol, at) => {
    const cells = told.map((run) => {
      const [, distance, similarity, reason] = outcomes(run)[at];
      const number = distance !== null ? distance.toFixed(1) : similarity !== null ? similarity.toFixed(2) : "";
      const skipped = shown.runs[run].ends[at] === NOT_REACHED ? " (not reached)" : "";
      return [comparing() ? null : el("td", { class: "number" }, number), el("td", {}, foreign(reason + skipped))];
    });
    const choose = { type: "button", class: "quiet", title: protocol.summary, click: () => go(state.row, { protocol: at }) };
    return el(
      "tr",
      { class: at === state.protocol ? "current" : null },
      told.map((run) => el("td", { class: "mark" }, badge(outcomes(run)[at][0]))),
      el("th", { scope: "row" }, el("button", choose, protocol.name)),
      cells,
    );
  };
  const unit = "distance in thousandths of the screen, or similarity of texts";
  const head = el(
    "tr",
    {},
    told.map((run) => el("th", {}, letter(run) || el("span", { class: "unseen" }, "verdict"))),
    el("th", { scope: "col" }, "protocol"),
    comparing() ? null : el("th", { scope: "col", title: unit }, "Δ"),
    told.map((run) => el("th", { scope: "col" }, `reason ${letter(run)}`)),
  );
  const right = told.map((run) => outcomes(run).filter((each) => each[0] === RIGHT).length);
  const split = right.some((each) => each > 0 && each < index.protocols.length);
  const summary = told
    .map((run, at) => `${letter(run)} right under ${right[at]} of ${index.protocols.length}`.trim())
    .join(", ");
  const table = el("table", {}, el("thead", {}, head), el("tbody", {}, index.protocols.map(row)));
  return el("details", { open: split, "data-part": "protocols" }, el("summary", {}, `Protocols: ${summary}`), table);
}

function promptOf(run, seen) {
  const part = `prompt${run || ""}`;
  const origins = seen.history?.length
    ? el(
        "p",
        { class: "history" },
        "Past in the prompt: ",
        seen.history.map((each, at) =>
          el("span", { class: `origin ${each}`, title: `step ${at}: ${each}` }, `${at}${each === "model" ? "M" : "R"}`),
        ),
        el("small", {}, " (M: the model's own, R: the reference)"),
      )
    : null;
  const note = seen.note ? el("p", { class: "reason" }, foreign(seen.note)) : null;
  const patch = seen.patch
    ? el(
        "p",
        { class: "history" },
        el("span", { class: "origin patch" }, `patched: ${seen.patch.method}`),
        " later steps saw the reference's action here",
        seen.patch.thought ? [", with the thought ", foreign(seen.patch.thought)] : ", without a thought",
      )
    : null;
  if (!seen.prompt?.length) return el("details", { open: !!patch, "data-part": part }, el("summary", {}, "Prompt"), origins, patch, note);
  const details = el(
    "details",
    {
      "data-part": part,
      toggle: () => {
        if (details.open && !details.querySelector("pre"))
          details.append(el("pre", { dir: "auto" }, seen.prompt.map((at) => shown.lines[at]).join("\n")));
      },
    },
    el("summary", {}, "Prompt"),
    origins,
    patch,
    note,
  );
  return details;
}

function costs(sample) {
  const said = [];
  if (sample.tokens?.[0] != null) said.push(`${sample.tokens[0].toLocaleString("en")} prompt tokens`);
  if (sample.tokens?.[1] != null) said.push(`${sample.tokens[1].toLocaleString("en")} completion tokens`);
  if (sample.seconds !== null) said.push(`${sample.seconds} s`);
  if (sample.attempts > 1) said.push(`${sample.attempts} attempts`);
  if (sample.finish) said.push(`finished: ${sample.finish}`);
  return said.length ? el("p", { class: "costs" }, foreign(said.join(" · "))) : null;
}
