// All that is known of the step, in words.

function told(action) {
  if (!action) return ["none"];
  const parts = [el("b", {}, action.type)];
  if (action.type === "SCROLL") parts.push(` ${action.direction}`);
  if (action.type === "LONG_PRESS" || action.type === "WAIT") parts.push(` ${action.duration} ms`);
  if (action.point) parts.push(` at ${action.point.map((side) => Number(side.toFixed(1))).join(", ")}`);
  for (const name of ["text", "app", "button", "status", "name", "arguments"]) {
    if (!(name in action) || (name === "arguments" && action[name] === "{}")) continue;
    const quote = name === "text" || name === "app" ? ["“", "”"] : ["", ""]; // outside, where no word can move them
    parts.push(" ", quote[0], foreign(action[name]), quote[1]);
  }
  return parts;
}

const section = (title, ...content) => el("section", {}, el("h3", {}, title), ...content);
const quoted = (title, text) => text && section(title, el("p", { class: "prose", dir: "auto" }, text));
const tag = (...content) => el("span", { class: "tag" }, ...content);
const remark = (...content) => paragraph("reason", ...content);
const plainList = (items) => el("ul", { class: "plain" }, items.map((each) => el("li", {}, each)));
const signed = (kind, letter, action) => paragraph("action", el("span", { class: `sign ${kind}` }, letter), told(action));

function renderPanel() {
  const { task } = shown;
  const { row } = state;
  const turn = (label, key, by, sign) =>
    button({ "aria-label": label, "aria-keyshortcuts": key, disabled: beside(row, by) < 0, click: () => move(by) }, sign);
  const heading = el(
    "header",
    {},
    el(
      "div",
      { class: "where" },
      el("h2", {}, `Step ${index.steps[row]}`, el("small", {}, task?.length > 1 ? ` of 0–${task.length - 1}` : "")),
      turn("Step before", "k", -1, "←"),
      turn("Next step", "j", 1, "→"),
    ),
    paragraph("episode-name", foreign(index.labels[episodeOf[row]])),
  );
  const unrecorded = "No run has a record of this step; task, screen and reference are from the data folder.";
  const kind = comparing() ? `answers two${index.runs.length > 2 ? " more" : ""}` : "answers";
  const parts = [
    heading,
    ...(task ? aboutTask(task) : []),
    el("div", { class: kind }, index.runs.map((_, run) => answerOf(run))),
    comparing() ? protocolsTable() : null,
    notesSection(),
    task && aboutStep(task),
  ];
  if (task && !shown.recorded) parts.splice(2, 0, remark(unrecorded));
  refill(panel, parts.filter(Boolean));
  for (const node of panel.querySelectorAll("[data-part]")) node.open = folds.get(node.dataset.part) ?? node.open;
  if (panel.dataset.row !== String(row)) panel.scrollTop = 0;
  panel.dataset.row = String(row);
}

/** The instruction, the labels, and what is accepted. */
function aboutTask(task) {
  const low = task.low && paragraph("low", tag("this step"), foreign(task.low));
  const labels = Object.entries(task.groups).map(([name, value]) => tag(foreign(name), ": ", foreign(value)));
  const more = task.alternatives.map(told);
  return [
    section("Task", paragraph("goal", foreign(task.instruction)), low),
    labels.length ? paragraph("labels", labels) : null,
    section(
      "Reference",
      signed("reference", "R", task.reference),
      more.length ? folded(`${more.length} more accepted`, { "data-part": "accepted" }, plainList(more)) : null,
    ),
  ];
}

function aboutStep(task) {
  const facts = [
    ["name", foreign(shown.key), ` step ${shown.step}`],
    ["setting", `${task.setting}, split `, foreign(task.split)],
    ...(task.perturbed ? [["perturbed", foreign(task.perturbed)]] : []),
    ["screen", `${task.size[0]} × ${task.size[1]} pixels`],
  ];
  return folded(
    "About the step",
    { class: "more", "data-part": "about" },
    el("dl", {}, facts.map(([name, ...words]) => [el("dt", {}, name), el("dd", {}, words)])),
    task.extras ? el("pre", { dir: "auto" }, task.extras) : null,
  );
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
  const model = foreign(`${index.runs[run].model}, ${index.runs[run].mode}`);
  const name = comparing() && el("h3", { class: "run" }, el("span", { class: `sign ${sideOf(run)}` }, LETTERS[run]), model);
  const outcome = sample?.outcomes[state.protocol];
  const own = outcome ? outcome[0] : code; // of the sample that is shown
  const nowhere = "Under this protocol the episode ended before this step, so the answer counts nowhere.";
  const verdict = el(
    "div",
    { class: `verdict end${own}` },
    el("p", {}, badge(own), el("strong", {}, ENDS[own].word)),
    outcome && remark(foreign(outcome[3])),
    code === NOT_REACHED && sample && remark(nowhere),
  );
  if (!sample) return el("section", { class: "answer" }, name, verdict, promptOf(run, seen));
  const response = { open: !sample.thought && !sample.conclusion, "data-part": `response${run || ""}` };
  return el(
    "section",
    { class: "answer" },
    name,
    verdict,
    decisionsSection(run),
    samplesOf(run, seen),
    section("Prediction", signed(sideOf(run), letterOf(run), sample.action)),
    sample.stage && section("Placed by", remark(foreign(sample.stage))),
    sample.error && section(`Failed at: ${sample.error[0]}`, remark(foreign(sample.error[1]))),
    quoted("Conclusion", sample.conclusion),
    quoted("Thought", sample.thought),
    quoted("Reasoning", sample.reasoning),
    comparing() ? null : protocolsTable(),
    sample.stages && section("Responses", sample.stages.map(stageNode)),
    sample.raw === null ? null : folded("Raw response", response, el("pre", { dir: "auto" }, sample.raw || "(empty)")),
    promptOf(run, seen),
    costs(sample),
  );
}

/** The response of one stage of a composition. */
const stageNode = (stage, at) => [
  paragraph("asked", el("b", {}, `${at + 1} `, foreign(stage.name)), stage.about && foreign(`, ${stage.about}`)),
  el("pre", { dir: "auto" }, stage.text || "(empty)"),
];

/** A button for each sample; the one that is pressed is shown. */
function samplesOf(run, seen) {
  if (seen.samples.length < 2) return null;
  const show = (at) => {
    state.sample = index.runs.map((_, each) => (each === run ? at : (state.sample[each] ?? 0)));
    followFilters();
    renderPanel();
    renderScreen();
  };
  const choose = (each, at) =>
    button(
      { "aria-pressed": String(at === (state.sample[run] ?? 0)), click: () => show(at) },
      `${at + 1} ${ENDS[each.outcomes[state.protocol][0]].mark}`,
    );
  const more = seen.more ? el("small", {}, `and ${number(seen.more)} more, in the journal`) : null;
  return el("p", { class: "samples", role: "group", "aria-label": "Samples" }, seen.samples.map(choose), more);
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
      const measured = distance !== null ? distance.toFixed(1) : similarity !== null ? similarity.toFixed(2) : "";
      const skipped = shown.runs[run].ends[at] === NOT_REACHED ? " (not reached)" : "";
      return [comparing() ? null : el("td", { class: "number" }, measured), el("td", {}, foreign(reason + skipped))];
    });
    const props = { class: "quiet", title: protocol.summary, click: () => go(state.row, { protocol: at }) };
    return el(
      "tr",
      { class: at === state.protocol ? "current" : null },
      told.map((run) => el("td", { class: "mark" }, badge(outcomes(run)[at][0]))),
      el("th", { scope: "row" }, button(props, protocol.name)),
      cells,
    );
  };
  const heads = [
    told.map((run) => el("th", {}, letter(run) || el("span", { class: "unseen" }, "verdict"))),
    head("protocol"),
    comparing() ? null : head("Δ", { title: "distance in thousandths of the screen, or similarity of texts" }),
    told.map((run) => head(`reason ${letter(run)}`)),
  ];
  const right = told.map((run) => outcomes(run).filter((each) => each[0] === RIGHT).length);
  const split = right.some((each) => each > 0 && each < index.protocols.length);
  const summary = told.map((run, at) => `${letter(run)} right under ${right[at]} of ${index.protocols.length}`.trim()).join(", ");
  const rows = index.protocols.map(row);
  return folded(`Protocols: ${summary}`, { open: split, "data-part": "protocols" }, tableOf({}, heads, rows));
}

function promptOf(run, seen) {
  const origin = (each, at) =>
    el("span", { class: `origin ${each}`, title: `step ${at}: ${each}` }, `${at}${each === "model" ? "M" : "R"}`);
  const origins =
    seen.history?.length > 0 &&
    paragraph(
      "history",
      "Past in the prompt: ",
      seen.history.map(origin),
      el("small", {}, " (M: the model's own, R: the reference)"),
    );
  const note = seen.note && remark(foreign(seen.note));
  const patch =
    seen.patch &&
    paragraph(
      "history",
      el("span", { class: "origin patch" }, `patched: ${seen.patch.method}`),
      " later steps saw the reference's action here",
      seen.patch.thought ? [", with the thought ", foreign(seen.patch.thought)] : ", without a thought",
    );
  const empty = !seen.prompt?.length;
  const write = () => {
    if (empty || !details.open || details.querySelector("pre")) return;
    details.append(el("pre", { dir: "auto" }, seen.prompt.map((at) => shown.lines[at]).join("\n")));
  };
  const props = { open: empty && !!patch, "data-part": `prompt${run || ""}`, toggle: write };
  const details = folded("Prompt", props, origins, patch, note);
  return details;
}

function costs(sample) {
  const [prompt, completion] = sample.tokens ?? [];
  const said = [
    prompt != null && `${number(prompt)} prompt tokens`,
    completion != null && `${number(completion)} completion tokens`,
    sample.seconds !== null && `${sample.seconds} s`,
    sample.attempts > 1 && `${sample.attempts} attempts`,
    sample.finish && `finished: ${sample.finish}`,
  ].filter(Boolean);
  return said.length ? paragraph("costs", foreign(said.join(" · "))) : null;
}
