// The list of episodes. Only the rows that are seen exist.

function renderList(reveal) {
  const height = list.clientHeight;
  const at = listedEpisodes.findIndex((each) => each.episode === episodeOf[state.row]);
  rows.style.height = `${listedEpisodes.length * ROW_HEIGHT}px`;
  if (reveal && at >= 0) {
    const top = at * ROW_HEIGHT;
    if (top < list.scrollTop || top + ROW_HEIGHT > list.scrollTop + height) list.scrollTop = top - height / 3;
  }
  const first = Math.max(0, Math.floor(list.scrollTop / ROW_HEIGHT) - 3);
  const last = Math.min(listedEpisodes.length, Math.ceil((list.scrollTop + height) / ROW_HEIGHT) + 3);
  const focused = rows.contains(document.activeElement) ? document.activeElement.dataset.episode : null;
  rows.replaceChildren();
  for (let place = first; place < last; place++) rows.append(episodeRow(place));
  if (focused !== null) rows.querySelector(`[data-episode="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

function episodeRow(place) {
  const { episode, first, count } = listedEpisodes[place];
  const from = index.starts[episode];
  const to = lastRow(episode);
  const total = to - from + 1;
  const blocks = [];
  for (let row = from; row <= Math.min(to, from + 39); row++) {
    blocks.push(el("i", { class: `end${end(row)}${matches[row] ? "" : " off"}` }));
  }
  const current = episodeOf[state.row] === episode;
  const open = () => go(current && matches[state.row] ? state.row : first);
  const steps = el("span", { class: "of" }, `${count === total ? "" : `${count} of `}${total} step${total > 1 ? "s" : ""}`);
  const entry = button(
    { class: "episode", "data-episode": String(episode), "aria-current": current ? "true" : null, click: open },
    el("span", { class: "name" }, foreign(index.labels[episode]), steps),
    el("span", { class: "task" }, foreign(index.instructions[episode] || "(no instruction recorded)")),
    el("span", { class: "blocks", "aria-hidden": "true" }, blocks),
  );
  const item = el("li", { "aria-setsize": listedEpisodes.length, "aria-posinset": place + 1 }, entry);
  item.style.top = `${place * ROW_HEIGHT}px`;
  return item;
}
