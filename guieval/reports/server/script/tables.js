// Tables and lists as the server sends them. A share has a bar, and its interval a line across the bar.

const get = async (address) => {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
};
/** Only addresses within this page, whatever the server's data hold. */
const link = (address, ...children) => (/^(steps|trajectories)\//.test(address) ? el("a", { href: address }, children) : children);

function bar(share, ends) {
  const node = el("span", { class: "share", "aria-hidden": "true" }, el("i", {}), ends ? el("b", {}) : null);
  node.firstChild.style.width = `${100 * share}%`;
  if (ends) {
    node.lastChild.style.left = `${100 * ends[0]}%`;
    node.lastChild.style.width = `${Math.max(0, 100 * (ends[1] - ends[0]))}%`;
  }
  return node;
}

function tableNode(table) {
  const cell = (value, at, address) => {
    const content = [foreign(value.text), value.share === undefined ? null : bar(value.share, value.ends)];
    const props = { class: table.columns[at].right ? "number" : null };
    return at ? el("td", props, content) : el("th", { scope: "row", ...props }, address ? link(address, content) : content);
  };
  const rows = table.rows.map((row, place) =>
    row.length
      ? el("tr", {}, row.map((value, at) => cell(value, at, table.links[place])))
      : el("tr", { class: "gap" }, el("td", { colspan: String(table.columns.length) })),
  );
  const heads = table.columns.map(({ name, right }) =>
    head(name ? foreign(name) : el("span", { class: "unseen" }, "metric"), { class: right ? "number" : null }),
  );
  return el(
    "section",
    { class: "sheet" },
    el("h3", {}, foreign(table.title)),
    el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": table.title || "Table" }, tableOf({}, heads, rows)),
    table.notes.map((note) => paragraph("soft", foreign(note))),
  );
}

const notesList = (notes) => notes?.length > 0 && el("ul", { class: "notes" }, notes.map((note) => el("li", {}, foreign(note))));
