// The list of a <select> as a part of the page: Chromium draws it in a window of its own, which no screenshot has.
// It is in the top layer and in a closed shadow root, so that the page neither styles nor finds it, and the page sees no
// event on it; a choice is an `input` and a `change` event, as in Chromium.
(() => {
  let select = null, host = null, root = null, list = null, at = -1, typed = '';
  const options = () => [...select.options].filter(each => !each.hidden && getComputedStyle(each).display !== 'none');
  const dead = each => each.disabled || (each.parentElement.localName === 'optgroup' && each.parentElement.disabled);
  const STYLE = `
    .list { position: fixed; overflow: auto; box-sizing: border-box; background: #fff; color: #000; border: 1px solid #767676;
      box-shadow: 0 1px 4px #0006; cursor: default; white-space: nowrap; scrollbar-width: thin; }
    .row, .group { padding: 2px 6px; min-height: 1.1em; } .group { font-weight: bold; } .in { padding-left: 16px; }
    .dead { color: #8c8c8c; } .at { background: #1967d2; color: #fff; }`;

  const made = (name, text) => Object.assign(document.createElement('div'), { className: name, textContent: text });
  const close = () => { if (host) host.remove(); select = host = root = list = null; };
  const mark = index => {
    at = index;
    for (const row of list.querySelectorAll('.row')) row.classList.toggle('at', +row.dataset.index === at);
    list.querySelector('.at')?.scrollIntoView({ block: 'nearest' });
  };
  const move = by => {
    const all = options(), alive = each => all[each] && !dead(all[each]);
    const ends = by === -Infinity ? [0, 1] : by === Infinity ? [all.length - 1, -1] : [at + by, Math.sign(by)];
    let next = Math.min(Math.max(ends[0], 0), all.length - 1);
    while (all[next] && !alive(next)) next += ends[1];
    if (alive(next)) mark(next);
  };
  const choose = index => {
    const chosen = options()[index], from = select;
    close();
    if (!chosen || dead(chosen) || chosen.selected) return;
    chosen.selected = true;
    from.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    from.dispatchEvent(new Event('change', { bubbles: true }));
  };

  const open = of => {
    close();
    select = of;
    select.focus();
    host = document.createElement('div');
    host.style.cssText = 'all: initial; position: fixed; inset: 0; width: 0; height: 0; margin: 0; padding: 0; border: 0; overflow: visible;';
    root = host.attachShadow({ mode: 'closed' });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    root.append(list = made('list', ''));
    let group = null;
    options().forEach((each, index) => {
      const parent = each.parentElement.localName === 'optgroup' ? each.parentElement : null;
      if (parent && parent !== group) list.append(made('group', parent.label));
      group = parent;
      const row = made('row', each.label || '\u00a0');
      row.classList.toggle('dead', dead(each));
      row.classList.toggle('in', parent !== null);
      row.dataset.index = index;
      list.append(row);
    });
    const box = select.getBoundingClientRect(), width = document.documentElement.clientWidth, height = innerHeight;
    list.style.font = getComputedStyle(select).font;
    list.style.minWidth = `${box.width}px`;
    list.style.maxWidth = `${width}px`;
    host.popover = 'manual';
    document.documentElement.append(host);
    host.showPopover();
    const below = height - box.bottom, wanted = list.offsetHeight, down = wanted <= below || below >= box.top;
    const room = Math.max(20, Math.min(400, down ? below : box.top)), tall = Math.min(wanted, room);
    list.style.maxHeight = `${room}px`;
    list.style.top = `${Math.max(0, down ? box.bottom : box.top - tall)}px`;
    list.style.left = `${Math.max(0, Math.min(box.left, width - list.offsetWidth))}px`;
    typed = '';
    mark(options().indexOf(select.selectedOptions[0]));
  };

  const dropdown = event => {
    const found = event.composedPath()[0], of = found instanceof Element ? found.closest('select') : null;
    return of && !of.multiple && of.size <= 1 && !of.matches(':disabled') ? of : null;
  };
  const mine = event => {
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  const rowAt = event => root.elementFromPoint(event.clientX, event.clientY)?.closest('.row');

  const pointer = event => {
    if (!event.isTrusted) return;
    if (select && !select.isConnected) close();
    if (host && event.target === host) {
      const row = rowAt(event);
      if (event.type === 'mousemove' && row) mark(+row.dataset.index);
      if (event.type === 'click' && row) choose(+row.dataset.index);
      return mine(event);
    }
    if (event.type !== 'mousedown') return;
    const of = event.button === 0 ? dropdown(event) : null, again = of !== null && of === select;
    close();
    if (of === null) return;
    event.preventDefault();  // else Chromium opens its own
    if (!again) open(of);
  };
  const key = event => {
    if (!event.isTrusted) return;
    const of = dropdown(event);
    if (host === null) {
      const opens = [' ', 'F4'].includes(event.key) || (event.altKey && ['ArrowDown', 'ArrowUp'].includes(event.key));
      if (of && opens) { mine(event); open(of); }
      return;
    }
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    if (event.key in by) { typed = ''; move(by[event.key]); }
    else if (event.key === 'Enter') choose(at);
    else if (event.key === 'Tab') return choose(at);
    else if (event.key === 'Escape') close();
    else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) {
      typed += event.key.toLowerCase();
      const found = options().findIndex(each => !dead(each) && each.label.toLowerCase().startsWith(typed));
      if (found >= 0) mark(found);
    } else return;
    mine(event);
  };
  for (const kind of ['pointerdown', 'pointerup', 'pointermove', 'mousedown', 'mouseup', 'mousemove', 'click', 'dblclick', 'contextmenu'])
    addEventListener(kind, pointer, true);
  addEventListener('keydown', key, true);
  addEventListener('wheel', event => { if (host && event.target !== host) close(); }, { capture: true, passive: true });
  addEventListener('resize', () => close());
})();
