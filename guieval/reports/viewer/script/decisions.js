// The decisions that a step's samples come to: their points on the screen by cluster, and all of them in words.

const COLOURS = 8; // the further decisions share one
const LISTED_DECISIONS = 12;

const decisionsOf = (run) => shown.runs[run]?.decisions ?? null;
/** Decisions are numbered without the points that lie alone. */
const numbered = (clusters) => clusters.filter((each) => !each.alone);
const rankClass = (rank) => (rank < 0 ? "d-alone" : rank < COLOURS ? `d${rank}` : "d-more");
const hasPoints = (run) => Boolean(decisionsOf(run)?.clusters.some((each) => each.points.length));

/** Every different point, larger where it was drawn more often, and the number of its decision at the middle of each cluster. */
function drawSamples(run, x, y) {
  const clusters = decisionsOf(run)?.clusters ?? [];
  const ranked = numbered(clusters);
  const nodes = [];
  for (const cluster of [...clusters].reverse()) {
    // the most frequent last, on top
    const kind = `sampled ${rankClass(ranked.indexOf(cluster))}`;
    for (const [px, py, count] of cluster.points)
      nodes.push(svg("circle", { class: kind, cx: x(px), cy: y(py), r: Math.min(9, 3 + Math.log2(count)) }));
  }
  for (const [rank, cluster] of ranked.slice(0, COLOURS).entries()) {
    if (!cluster.points.length) continue;
    const [px, py] = cluster.prototype.point;
    const below = y(py) + 26 > y(1000) - 4 ? -16 : 26;
    nodes.push(svg("text", { class: `letter ${rankClass(rank)}`, x: x(px), y: y(py) + below }, String(rank + 1)));
  }
  return nodes;
}

function decisionsSection(run) {
  const found = decisionsOf(run);
  if (!found) return null;
  const ranked = numbered(found.clusters);
  const alone = found.clusters.length - ranked.length;
  const decided = found.clusters.reduce((sum, each) => sum + each.count, 0);
  const right = found.clusters.reduce((sum, each) => sum + each.right[state.protocol], 0);
  const left = ranked.length - LISTED_DECISIONS;
  const cell = (...content) => el("td", { class: "number" }, ...content);
  const row = (cluster, rank) => {
    const share = percent(cluster.count, decided);
    return el(
      "tr",
      {},
      el("td", {}, el("span", { class: `swatch ${rankClass(rank)}`, "aria-hidden": "true" }), ` ${rank + 1}`),
      el("td", { class: "action" }, told(cluster.prototype), cluster.texts.length > 1 && textsOf(cluster)),
      cell(number(cluster.count), el("meter", { min: "0", max: decided, value: cluster.count, "aria-label": share })),
      cell(share),
      cell(number(cluster.right[state.protocol])),
    );
  };
  const heads = ["#", "decision", "drawn", "share", "right"].map((name) => head(name));
  const apart = [
    ["hold no action", found.unparseable],
    ["are outside the action space", found.unsupported],
    ["were never answered", found.failed],
  ].flatMap(([what, count]) => (count ? [`${number(count)} ${what}`] : []));
  const measures =
    found.diversity === null
      ? "None of them holds a decision."
      : `Diversity ${found.diversity.toFixed(3)} nats, as ${found.support.toFixed(2)} equally likely decisions; stability ` +
        `${found.n ? (right / found.n).toFixed(3) : "-"}.`;
  const lone =
    alone > 1
      ? `${number(alone)} more points lie alone (grey rings on the screen), each a decision of its own.`
      : "1 more point lies alone (a grey ring on the screen), a decision of its own.";
  return section(
    `Decisions of ${number(found.n)} samples`,
    paragraph("measures", measures),
    ranked.length > 0 && tableOf({ class: "decisions" }, heads, ranked.slice(0, LISTED_DECISIONS).map(row)),
    left > 0 && remark(`${counted(left, "more decision")}.`),
    alone > 0 && remark(lone),
    apart.length > 0 && remark(`${apart.join("; ")}.`),
    paragraph("costs", foreign(found.settings)),
  );
}

function textsOf(cluster) {
  const more = cluster.different - cluster.texts.length;
  const items = cluster.texts.map(([text, count]) => [`${count} × “`, foreign(text), "”"]);
  return folded(`${cluster.different} texts`, {}, plainList([...items, ...(more > 0 ? [`and ${more} more`] : [])]));
}
