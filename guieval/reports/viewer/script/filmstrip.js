// The steps of the episode, as small pictures with their verdicts.

async function renderStrip() {
  const row = state.row;
  const episode = episodeOf[row];
  const wanted = `${episode}/${state.protocol}`;
  if (strip.dataset.shown !== wanted) {
    const first = index.starts[episode];
    const last = lastRow(episode);
    const parts = new Map();
    for (let at = Math.floor(first / index.chunk); at <= Math.floor(last / index.chunk); at++) {
      parts.set(at, await load("steps", at));
    }
    if (state.row !== row) return;
    strip.dataset.shown = wanted;
    stopLoading(strip);
    strip.replaceChildren();
    for (let each = first; each <= last; each++) {
      strip.append(frame(each, parts.get(Math.floor(each / index.chunk)).rows[each % index.chunk]));
    }
  }
  markStrip();
}

function frame(row, step) {
  const [width, height] = step.task?.size ?? [9, 16];
  const picture = imagePath("thumbs", step.thumb) ?? imagePath("images", step.image);
  const image = picture
    ? el("img", { src: picture, alt: "", loading: "lazy", decoding: "async", draggable: "false" })
    : el("span", { class: "blank" });
  image.style.aspectRatio = `${Math.min(Math.max(width / height, 0.4), 2.4)}`;
  const code = end(row);
  const words = `Step ${index.steps[row]}: ${ENDS[code].word}`;
  const badges = [badge(code), ...index.runs.slice(1).map((_, other) => badge(end(row, other + 1), "other"))];
  return button(
    { class: `frame end${code}`, "data-row": String(row), "aria-label": words, title: words, click: () => go(row) },
    image,
    el("span", { class: "foot", "aria-hidden": "true" }, badges, el("span", {}, String(index.steps[row]))),
  );
}

function markStrip() {
  for (const node of strip.children) {
    const row = Number(node.dataset.row);
    node.classList.toggle("off", !matches[row]);
    if (row === state.row) {
      node.setAttribute("aria-current", "step");
      const left = node.offsetLeft - strip.offsetLeft;
      if (left < strip.scrollLeft || left + node.offsetWidth > strip.scrollLeft + strip.clientWidth)
        strip.scrollLeft = left - strip.clientWidth / 2;
    } else node.removeAttribute("aria-current");
  }
}

/** Images that are no longer shown would hold up those that are: a browser asks a server for six things at a time. */
function stopLoading(node) {
  for (const image of node.querySelectorAll("img")) image.removeAttribute("src");
}

const imagePath = (folder, name) => (/^[0-9a-f]{16}(\.(png|jpg|webp))?$/.test(name ?? "") ? `${folder}/${name}` : null);
