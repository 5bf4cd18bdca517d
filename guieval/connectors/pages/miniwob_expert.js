// What a person who knows each page of MiniWoB++ would do next, from the page's structure. Used to record demonstrations.
// A rule looks at the page as it is and gives the first thing that is not done yet; `memory` holds what a page does not show.
() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const text = element => element.textContent.trim();
  const named = (selector, words) => all(selector).find(each => text(each) === words);
  const spoken = core.getUtterance();
  const goal = (typeof spoken === 'string' ? spoken : spoken.utterance).replace(/\s+/g, ' ').trim();
  const found = pattern => (goal.match(pattern) || [])[1];
  const quoted = [...goal.matchAll(/"([^"]*)"/g)].map(match => match[1]);
  const order = words => parseInt(words, 10) - 1;

  // Places, in CSS pixels of the page.
  const rect = element => element.getClientRects()[0] || element.getBoundingClientRect();
  const shown = element => !!element && rect(element).width > 0 && rect(element).height > 0
    && getComputedStyle(element).visibility !== 'hidden';
  const box = element => { const r = rect(element); return [r.left, r.top, r.right, r.bottom]; };
  const middle = ([left, top, right, bottom]) => [(left + right) / 2, (top + bottom) / 2];
  const scroller = element => {
    for (let up = element.parentElement; up && up !== document.body; up = up.parentElement)
      if (up.scrollHeight > up.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(up).overflowY)) return up;
    return null;
  };

  // Actions.
  const scroll = (area, by) => ({do: 'scroll', at: middle(box(area)), box: box(area), by});
  const reach = element => {  // null, or the scroll that brings the element into view
    const area = scroller(element), place = box(element);
    if (!area) return null;
    const [, y] = middle(place), [, top, , bottom] = box(area);
    return y > Math.max(top, 0) + 4 && y < Math.min(bottom, 210) - 4 ? null : scroll(area, y - (top + bottom) / 2);
  };
  const act = (what, element) => element && (reach(element) || {do: what, at: middle(box(element)), box: box(element)});
  const click = element => act('click', element);
  const hover = element => act('hover', element);
  const corner = element => { const [l, t, r, b] = box(element); return {do: 'click', at: [l + 8, (t + b) / 2], box: [l, t, l + 16, b]}; };
  const type = words => ({do: 'type', text: words});
  const keys = (...names) => ({do: 'keys', keys: names});
  const wait = milliseconds => ({do: 'wait', milliseconds});
  const drag = (from, to, element) => ({do: 'drag', from, to, box: box(element)});
  const fill = (field, words) => {
    if (field.value === words) return null;
    if (document.activeElement !== field) return click(field);
    return field.value && once(`${field.id} ${field.value}`, keys('ctrl', 'a')) || type(words);
  };
  const segments = (field, value, words) => field.value === value ? null
    : document.activeElement !== field ? corner(field) : type(words);
  const tick = (input, wanted, target = input) => input.checked === wanted ? null : click(target);
  const submit = () => click(one('#subbtn') || one('#submit') || named('button', 'Submit'));
  const first = (list, next) => { for (const each of list) { const action = next(each); if (action) return action; } return null; };
  const memory = window.expertMemory = window.expertMemory || {};
  const once = (name, action) => { if (memory[name]) return null; memory[name] = true; return action; };
  const slide = (element, value) => {  // a slider of jQuery UI: drag the handle, then arrow keys for what is left
    const slider = jQuery(element), min = slider.slider('option', 'min'), max = slider.slider('option', 'max');
    const left = value - slider.slider('value'), handle = one('.ui-slider-handle', element);
    if (!left) return null;
    if (memory[element.id]) return document.activeElement === handle ? keys(left > 0 ? 'right' : 'left') : click(handle);
    memory[element.id] = true;
    const [l, t, r, b] = box(element), at = middle(box(handle)), share = (value - min) / (max - min);
    const to = slider.slider('option', 'orientation') === 'vertical' ? [at[0], b - share * (b - t)] : [l + share * (r - l), at[1]];
    return drag(at, to, handle);
  };
  const date = () => {
    const field = one('#datepicker'), [month, day, year] = found(/(\d+\/\d+\/\d+)/).split('/').map(Number);
    if (field.value === found(/(\d+\/\d+\/\d+)/)) return submit();
    if (!shown(one('#ui-datepicker-div'))) return click(field);
    const cell = one('#ui-datepicker-div td[data-month]');
    const away = (year - cell.dataset.year) * 12 + month - 1 - cell.dataset.month;
    if (away) return click(one(away < 0 ? '.ui-datepicker-prev' : '.ui-datepicker-next'));
    return click(named('#ui-datepicker-div td a', `${day}`));
  };
  const paged = element => {  // a link in a tab or a section that may be closed
    if (shown(element)) return click(element);
    const panel = element.closest('.ui-accordion-content, [id^=tabs-]');
    return click(panel.id.startsWith('tabs-') ? one(`a[href="#${panel.id}"]`) : panel.previousElementSibling);
  };
  const bottom = area => area.scrollTop + area.clientHeight >= area.scrollHeight - 3 ? null : scroll(area, area.scrollHeight);
  const marked = (element, words) => {  // the text of an element, selected from its first character to its last
    const plain = words => words.replace(/\s/g, '');
    if (plain(getSelection().toString()) === plain(words)) return null;
    const range = document.createRange(); range.selectNodeContents(element);
    const lines = [...range.getClientRects()].filter(line => line.width > 1), start = lines[0], end = lines[lines.length - 1];
    return drag([start.left + 1, (start.top + start.bottom) / 2], [end.right + 2, (end.top + end.bottom) / 2], element);
  };
  const sorted = (items, from, to) => {  // one item of a sortable list, dragged onto the place of another
    const start = middle(box(items[from])), [l, t, r, b] = box(items[to]), later = to > from ? 1 : -1;
    return drag(start, [(l + r) / 2, (t + b) / 2 + later * (b - t) * 0.3], items[from]);
  };
  const pushed = element => {  // a shape of an SVG, dragged 25 pixels the way that the goal states
    const [x, y] = middle(box(element)), way = {left: [-25, 0], right: [25, 0], up: [0, -25], down: [0, 25]}[found(/(left|right|up|down)/)];
    return once('pushed', drag([x, y], [x + way[0], y + way[1]], element)) || submit();
  };
  const describes = (words, element) => {
    const kind = {rect: 'rectangle', circle: 'circle', polygon: 'triangle', text: text(element)}[element.tagName];
    const size = element.tagName === 'text' ? parseFloat(element.getAttribute('font-size')) : 0;
    const colour = element.getAttribute('fill') || element.style.fill, family = element.tagName !== 'text' ? 'shape' : /\d/.test(kind) ? 'digit' : 'letter';
    const big = size ? size > 15 : Math.max(rect(element).width, rect(element).height) > 15;
    return words.every(word => word === 'item' || word === kind || word === family || word === colour
      || (word === 'large' && big) || (word === 'small' && !big));
  };
  const shapesOf = words => all('#area_svg > *').filter(element => describes(words, element));
  const labels = wanted => first(all('#area label'), label => tick(one('input', label), wanted(text(label)), label)) || submit();
  const chosen = () => found(/Select (.*) and click Submit/).split(', ');
  const table = () => Object.fromEntries(all('#tab tr').map(row => all('td', row).map(text)));
  const enter = value => fill(one('#area input'), value) || submit();
  const tab = () => { const link = named('.alink', quoted[0]); return link ? paged(link) : click(one('a[href="#tabs-2"]')); };
  const boxesChecked = () => labels(words => chosen().includes(words));
  const login = () => shown(one('#popup-cancel')) ? click(one('#popup-cancel'))
    : fill(one('#username'), quoted[0]) || fill(one('#password'), quoted[1]) || submit();
  const complete = () => {
    const field = one('#tags'), [start, end] = [quoted[0], quoted[1] || ''], fits = words => words.startsWith(start) && words.endsWith(end);
    if (fits(field.value)) return submit();
    const option = all('.ui-autocomplete .ui-menu-item').find(each => shown(each) && fits(text(each)));
    return option ? click(option) : document.activeElement !== field ? click(field) : field.value === start ? wait(500) : type(start);
  };
  const opened = span => {  // a file in a tree whose folders may be closed
    if (shown(span)) return click(span);
    let up = span.parentElement.closest('ul').closest('li');
    while (!shown(up.firstElementChild)) up = up.parentElement.closest('li');
    return click(all(':scope > span', up)[0]);
  };
  const menu = () => {
    const path = found(/Select (.*)/).split('>');
    const item = words => all('#menu div').find(each => text(each) === words);
    let deep = path.length - 1;
    while (deep && !shown(item(path[deep]))) deep -= 1;
    return deep === path.length - 1 ? click(item(path[deep])) : hover(item(path[deep]));
  };
  const iconMenu = () => {
    if (!shown(one('#menu'))) return click(one('#open-menu'));
    const icon = one('#query .ui-icon');
    const item = icon ? one(`#menu .${icon.classList[1]}`).parentElement : named('#menu div', quoted[1]);
    return shown(item) ? click(item) : hover(named('#menu div', 'Playback'));
  };
  const person = words => all('.media').find(each => text(one('.username', each)) === words);
  const social = () => {
    const entry = person(found(/For the user (\S+),/)), wanted = quoted[0];
    const of = {Reply: '.reply', Retweet: '.retweet', Like: '.like'}[wanted];
    if (of) return click(one(of, entry));
    const item = all('ul li', entry).find(each => text(each) === wanted);
    return shown(item) ? click(item) : click(one('.more', entry));
  };
  const result = (page, entry) => {
    if (!shown(one('#pagination li.active'))) return null;
    return entry ? click(entry) : click(all('#pagination li a').find(each => text(each) === `${page}`));
  };
  const search = () => {
    const place = order(found(/the (\d+)\w\w search result/)), page = Math.floor(place / 3) + 1;
    return fill(one('#search-text'), quoted[0]) || (shown(one('#pagination li.active'))
      ? result(page, one(`#page-content a[data-result="${place}"]`)) : click(one('#search')));
  };
  const mail = () => {
    const sender = memory.sender = memory.sender || all('.email-thread .email-sender').map(text).filter(name => goal.includes(name))
      .sort((a, b) => core.currentFields ? (core.currentFields.by === b) - (core.currentFields.by === a) : 0)[0];
    const thread = all('#main .email-thread').find(each => text(one('.email-sender', each)) === sender);
    const task = (core.currentFields || {}).task || (/delete|trash/i.test(goal) ? 'delete' : /important|star/i.test(goal) ? 'star'
      : quoted.length || /reply|respond/i.test(goal) ? 'reply' : 'forward');
    if (task === 'delete') return click(one('.trash', thread));
    if (task === 'star') return click(one('.star', thread));
    const send = one(task === 'reply' ? '#send-reply' : '#send-forward');
    if (!shown(send)) return shown(one('#email')) ? click(one(`.email-${task}`)) : click(thread);
    if (task === 'reply') return fill(one('#reply-text'), quoted[0] || found(/(?:text|with) (.*?)\.?$/)) || click(send);
    const to = (core.currentFields || {}).to || found(/(?:to|DEST) ([A-Z][a-z]+)\b(?!.*\bto [A-Z])/) || found(/to (\w+)/);
    return fill(one('.forward-sender'), to) || click(send);
  };

  const posts = () => {
    const name = found(/by (\S+?)(?: and|\.|,|$)/), kind = quoted[0].toLowerCase(), wanted = Number(found(/on (\d+)/) || Infinity);
    const mine = all('.media').filter(each => text(one('.username', each)) === name);
    const left = mine.slice(0, wanted).filter(each => !memory[all('.media').indexOf(each)]);
    if (!left.length) return submit();
    const action = click(one(`.${kind}`, left[0]));
    if (action.do === 'click') memory[all('.media').indexOf(left[0])] = true;
    return action;
  };

  const number = () => Number(found(/(-?\d+)/));
  const rules = {
    'click-test': () => click(one('#subbtn')),
    'click-test-2': () => click(named('button', 'ONE')),
    'click-test-transfer': () => click(named('button', found(/button (\w+)/))),
    'click-button': () => click(named('#area button', quoted[0])),
    'unicode-test': () => click(named('#area button', quoted[0])),
    'click-button-sequence': () => once('one', click(one('#subbtn'))) || click(one('#subbtn2')),
    'button-delay': () => once('one', click(one('#subbtn'))) || once('pause', wait(1000 * number() - 500)) || click(one('#subbtn2')),
    'click-dialog': () => click(all('.ui-dialog-titlebar button').find(each => shown(each) && box(each)[0] > 0)),
    'click-dialog-2': () => click(quoted[0] === 'x' ? one('.ui-dialog-titlebar button') : named('.ui-dialog-buttonset button', quoted[0])),
    'click-link': () => click(named('.alink', quoted[0])),
    'click-collapsible': () => shown(one('.ui-accordion-content')) ? submit() : click(one('#area h3')),
    'click-collapsible-2': tab,
    'click-tab': () => click(named('#area ul a', found(/(Tab #\d)/))),
    'click-tab-2': tab,
    'click-widget': () => click(one(`[data-type="${quoted[0]}"]`)),
    'click-option': () => labels(words => chosen()[0] === words),
    'click-checkboxes': boxesChecked,
    'click-checkboxes-soft': () => {
      const wanted = found(/similar to (.*) and click Submit/).split(', ');
      return labels(words => SYNONYMS.some(row => row.includes(words) && row.some(each => wanted.includes(each))));
    },
    'click-color': () => click(one(`#area [data-color="${found(/on the (\w+) colored/)}"]`)),
    'click-shades': () => first(all('#area span'), span => span.dataset.color === found(/shades of (\w+)/)
      && span.className !== 'selected' ? click(span) : null) || submit(),
    'click-shape': () => click(shapesOf(found(/Click on a (.*?)\.?$/).split(' '))[0]),
    'count-shape': () => click(named('#count-buttons button', `${shapesOf(found(/How many (.*)s are there/).split(' ')).length}`)),
    'click-menu': menu,
    'click-menu-2': iconMenu,
    'click-scroll-list': () => {
      const wanted = found(/Select (.*) from the scroll list/), option = named('option', wanted);
      return option && !option.selected ? click(option) : option ? submit() : null;
    },
    'choose-list': () => {
      const list = one('#options'), wanted = found(/Select (.*) from the list/);
      if (list.selectedOptions[0].textContent === wanted) return submit();
      if (document.activeElement !== list) return keys('tab');
      return keys('down');
    },
    'choose-date': date,
    'enter-text': () => enter(quoted[0]),
    'enter-text-dynamic': () => enter(quoted[0]),
    'enter-text-2': () => enter(/all upper/.test(goal) ? quoted[0].toUpperCase() : quoted[0].toLowerCase()),
    'enter-password': () => fill(one('#password'), quoted[0]) || fill(one('#verify'), quoted[0]) || submit(),
    'enter-date': () => {
      const [month, day, year] = found(/(\d+\/\d+\/\d+)/).split('/');
      return segments(one('#tt'), `${year}-${month}-${day}`, month + day + year) || submit();
    },
    'enter-time': () => {
      const [, hour, minute, half] = goal.match(/(\d+):(\d+)\s*([AP]M)/);
      const day = (hour % 12) + (half === 'PM' ? 12 : 0);
      return segments(one('#tt'), `${`${day}`.padStart(2, '0')}:${minute}`, hour.padStart(2, '0') + minute + half) || submit();
    },
    'login-user': login,
    'login-user-popup': login,
    'find-word': () => enter(text(one('#area p')).split(/\s+/)[order(found(/the (\d+)\w\w word/))].replace(/[^a-zA-Z]/g, '')),
    'focus-text': () => click(one('#tt')),
    'focus-text-2': () => click(one(`#tt${order(found(/the (\d)/)) + 1}`)),
    'form-sequence': () => slide(one('#slider'), number()) || tick(one(`#checkbox-${order(found(/the (\d)/)) + 1}`), true) || submit(),
    'form-sequence-2': () => tick(all('input[type=radio]')[order(found(/the (\d)\w\w radio/))], true)
      || fill(one(`#input-${order(found(/the (\d)\w\w textbox/)) + 1}`), quoted[0]) || submit(),
    'form-sequence-3': () => {
      const wanted = found(/Choose (.*) from the dropdown/), item = all('.selectric-scroll li').find(each => text(each) === wanted);
      if (one('#dropdown').value === wanted) return click(named('#buttons button', quoted[0]));
      return shown(item) ? click(item) : click(one('.selectric'));
    },
    'generate-number': () => {
      const now = text(one('#display-number')), value = Number(now), limit = number();
      const fits = /less/.test(goal) ? value < limit : /greater/.test(goal) ? value > limit : value % 2 === (/odd/.test(goal) ? 1 : 0);
      return now !== '-' && fits ? submit() : click(one('#generate'));
    },
    'grid-coordinate': () => click(document.getElementById(found(/(\(.*?\))/))),
    'guess-number': () => {
      const guess = parseInt(one('#tt').value, 10);
      memory.low ??= 0; memory.high ??= 9;
      if (shown(one('#higher'))) memory.low = Math.max(memory.low, Number(text(one('#higher span'))) + 1);
      if (shown(one('#lower'))) memory.high = Math.min(memory.high, Number(text(one('#lower span'))) - 1);
      return fill(one('#tt'), `${Math.floor((memory.low + memory.high) / 2)}`) || submit();
    },
    'identify-shape': () => {
      const figure = one('#area_svg > *'), name = {rect: 'rectangle', circle: 'circle', polygon: 'triangle'}[figure.tagName];
      return click(one(`[data-type="${name || (/\d/.test(text(figure)) ? 'digit' : 'letter')}"]`));
    },
    'read-table': () => enter(table()[found(/value of (.*) into/)]),
    'read-table-2': () => first(['1', '2'], which => fill(one(`#tt${which}`), table()[text(one(`#ll${which}`)).slice(0, -1)])) || submit(),
    'scroll-text': () => { const area = one('#text-area'); return bottom(area) || fill(one('#answer-input'), text(area).split(/\s+/).pop().replace('.', '')) || submit(); },
    'scroll-text-2': () => { const area = one('#text-area'); return (/bottom/.test(goal) ? bottom(area) : area.scrollTop > 0 ? scroll(area, -area.scrollHeight) : null) || submit(); },
    'sign-agreement': () => /^Click the cancel/.test(goal) ? click(one('#cancel')) : bottom(one('#text-area'))
      || fill(one('#name'), quoted[0]) || click(one(quoted[1] === 'Agree' ? '#agree' : '#cancel')),
    'simple-algebra': () => {
      const [, left, sign, right, sum] = text(one('#math-problem')).match(/(\w+) ([-+]) (\w+) = (-?\d+)/);
      const known = Number(left === 'x' ? right : left);
      return enter(`${sign === '+' ? sum - known : left === 'x' ? Number(sum) + known : known - sum}`);
    },
    'simple-arithmetic': () => {
      const [, left, sign, right] = text(one('#math-problem')).match(/(\d+) ([-+x]) (\d+)/);
      return enter(`${sign === 'x' ? left * right : sign === '+' ? Number(left) + Number(right) : left - right}`);
    },
    'visual-addition': () => enter(`${all('.addition-block').length}`),
    'text-transform': () => enter(text(one('#captcha'))),
    'copy-paste': () => fill(one('#answer-input'), one('#to-copy').value) || submit(),
    'copy-paste-2': () => fill(one('#answer-input'), one(`#text-${order(found(/the (\d)/)) + 1}`).value) || submit(),
    'use-spinner': () => {
      const away = number() - parseInt(one('#spinner').value, 10);
      return away ? click(one(away > 0 ? '.ui-spinner-up' : '.ui-spinner-down')) : submit();
    },
    'use-slider': () => slide(one('#slider'), number()) || submit(),
    'use-slider-2': () => first(JSON.parse(found(/(\[.*?\])/)).map((value, index) => [value, index]),
      ([value, index]) => slide(one(`#slider-${index + 1}`), value)) || submit(),
    'use-autocomplete': complete,
    'multi-orderings': () => {
      const [, genre, director, year] = goal.match(/for (.*) movies directed by (.*) from year (\d+)/);
      return first(all('#area tr'), row => fill(one('input', row), {Genre: genre, Director: director, Year: year}[text(one('th', row))]))
        || click(one('.final'));
    },
    'navigate-tree': () => opened(named('#tree span', quoted[0])),
    'odd-or-even': () => first(all('.row'), row => {
      const button = one(Number(text(one('.display-number', row))) % 2 ? '.odd' : '.even', row);
      return button.classList.contains('selected') ? null : click(button);
    }) || submit(),
    'ascending-numbers': () => click(all('svg text').find(each => text(each) === '1') || one('svg rect')),
    'circle-center': () => one('#blue-circle') ? submit() : click(one('circle.black-circle, svg circle')),
    'find-greatest': () => {
      const cards = all('.card'), best = cards.reduce((a, b) => Number(text(a)) > Number(text(b)) ? a : b);
      return best.classList.contains('hidden') ? click(best) : submit();
    },
    'drag-box': () => once('dragged', drag(middle(box(one('#draggableSmall'))), middle(box(one('#draggableLarge'))), one('#draggableSmall'))) || submit(),
    'drag-circle': () => pushed(one('svg circle')),
    'drag-single-shape': () => pushed(one('.black-shape')),
    'drag-items': () => {
      const items = all('#sortable li'), from = items.findIndex(item => text(item) === found(/^Drag (\S+)/));
      const to = /to the top/.test(goal) ? 0 : /to the bottom/.test(goal) ? items.length - 1 : /down by/.test(goal) ? from + 1
        : /up by/.test(goal) ? from - 1 : order(found(/to the (\d)/));
      return sorted(items, from, to);
    },
    'drag-items-grid': () => {
      const items = all('#sortable li'), from = items.findIndex(item => text(item) === found(/^Drag (\S+)/));
      const step = {up: -3, down: 3, left: -1, right: 1}[found(/(up|down|left|right) by one/)];
      const row = ['top', 'center', 'bottom'].indexOf(found(/to the (top|center|bottom)/)), column = ['left', 'center', 'right'].indexOf(found(/(left|center|right)\.$/));
      const to = step ? from + step : 3 * row + column;
      const [x, y] = middle(box(items[to]));
      return drag(middle(box(items[from])), [x + (to > from ? 8 : -8), y], items[from]);
    },
    'drag-sort-numbers': () => {
      const items = all('#sortable li'), values = items.map(item => Number(text(item)));
      const order = [...values].sort((a, b) => a - b), place = values.findIndex((value, index) => value !== order[index]);
      return place < 0 ? submit() : sorted(items, values.indexOf(order[place]), place);
    },
    'highlight-text': () => marked(one('#randomText'), one('#randomText').textContent) || submit(),
    'highlight-text-2': () => { const part = all('#randomText p')[order(found(/the (\d)/))]; return marked(part, part.textContent) || submit(); },
    'resize-textarea': () => {
      const handle = one('.ui-resizable-se'), [x, y] = middle(box(handle)), by = /larger/.test(goal) ? 15 : -15;
      return once('resized', drag([x, y], /width/.test(goal) ? [x + by, y] : [x, y + by], handle)) || submit();
    },
    'search-engine': search,
    'social-media': social,
    'email-inbox': mail,
    'click-pie': () => {
      const word = all('svg text').find(each => text(each) === text(one('#query .bold')) && shown(each));
      return once('open', click(all('svg text').find(each => text(each) === '+') || one('svg'))) || click(word);
    },
    'phone-book': () => {
      const name = found(/Find (.*?) in the/), kind = found(/(phone|email|address)/);
      return text(one('.name')) === name ? click(one(`#contact .${kind}`)) : click(named('#pagination li a', '>'));
    },
    'social-media-all': posts,
    'social-media-some': posts,
  };
  const aliases = {
    'choose-date-easy': 'choose-date', 'choose-date-medium': 'choose-date', 'choose-date-nodelay': 'choose-date',
    'click-checkboxes-large': 'click-checkboxes', 'click-checkboxes-transfer': 'click-checkboxes',
    'click-collapsible-nodelay': 'click-collapsible', 'click-collapsible-2-nodelay': 'click-collapsible-2',
    'click-tab-2-easy': 'click-tab-2', 'click-tab-2-medium': 'click-tab-2', 'click-tab-2-hard': 'click-tab-2',
    'use-autocomplete-nodelay': 'use-autocomplete', 'click-pie-nodelay': 'click-pie',
    ...Object.fromEntries(['delete', 'forward', 'forward-nl', 'forward-nl-turk', 'important', 'nl-turk', 'noscroll', 'reply', 'star-reply']
      .map(name => [`email-inbox-${name}`, 'email-inbox'])),
  };
  const page = location.pathname.split('/').pop().replace('.html', '');
  const rule = rules[page] || rules[aliases[page]];
  try {
    return rule ? rule() || null : null;
  } catch (error) {
    if (error instanceof TypeError) return null;  // the page lacks an element that the rule expects
    throw error;
  }
}
