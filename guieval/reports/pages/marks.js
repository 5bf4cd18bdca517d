// The mark of an action on a screen. x and y turn thousandths of the screen into pixels of the page.

function mark(action, kind, letter, x, y) {
  if (!action.point) return [];
  const px = x(action.point[0]);
  const py = y(action.point[1]);
  const nodes = [];
  if (action.path) {
    const [x1, y1, x2, y2] = [x(action.path[0]), y(action.path[1]), x(action.path[2]), y(action.path[3])];
    const turn = Math.atan2(y2 - y1, x2 - x1);
    const wing = (angle) => `${x2 - 13 * Math.cos(turn + angle)},${y2 - 13 * Math.sin(turn + angle)}`;
    const path = `M${x1},${y1}L${x2},${y2}M${wing(0.5)}L${x2},${y2}L${wing(-0.5)}`;
    nodes.push(svg("path", { class: `halo ${kind}`, d: path }), svg("path", { class: `arrow ${kind}`, d: path }));
  }
  const shape = (cls) => {
    if (kind === "first")
      return svg("path", { class: cls, d: `M${px},${py - 11}L${px + 11},${py}L${px},${py + 11}L${px - 11},${py}Z` });
    if (kind === "second" || kind === "further") return svg("rect", { class: cls, x: px - 8.5, y: py - 8.5, width: 17, height: 17 });
    return svg("circle", { class: cls, cx: px, cy: py, r: kind === "alternative" ? 6 : 10 });
  };
  nodes.push(shape(`halo ${kind}`), shape(`ring ${kind}`), svg("circle", { class: `dot ${kind}`, cx: px, cy: py, r: 2.5 }));
  const offset = { reference: [17, -10], first: [-17, -10], second: [17, 21], further: [-17, 21] }[kind];
  if (offset) {
    // on the other side of the mark where the screen ends
    const inside = (from, by, least, most) => (from + by < least || from + by > most ? from - by : from + by);
    nodes.push(
      svg(
        "text",
        { class: `letter ${kind}`, x: inside(px, offset[0], 8, x(1000) - 8), y: inside(py, offset[1], 14, y(1000) - 2) },
        letter,
      ),
    );
  }
  return nodes;
}
