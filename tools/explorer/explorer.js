// SPDX-License-Identifier: Apache-2.0
// The page: what is shown, what lights up, and the keys.
'use strict';

(() => {
  const model = JSON.parse(document.getElementById('model').textContent);
  const panes = ['pane-function', 'pane-nest', 'pane-lanes', 'pane-code'];
  const pane_names = ['Function', 'Nests', 'Lanes', 'Code'];
  const by_id = (id) => document.getElementById(id);
  const state = {
    function: 0,
    tier: Math.max(0, model.functions[0]?.tiers.findIndex((tier) => tier.name === model.selected) ?? 0),
    pane: 3,
    kept: null,  // the line whose counterparts stay lit
  };
  let codes = [];
  let lines_of_key = new Map();

  // ---- what lights up

  const keys_of = (line) => (line.dataset.keys ?? '').split(' ').filter((key) => key !== '');

  /**
   * What belongs to a line, most exact first. A line of an operation has all of that operation; an
   * instruction its lane, else its section and the operation.
   */
  function lit_keys(line) {
    const keys = keys_of(line);
    const of = (kind) => keys.filter((key) => key.startsWith(kind + ':'));
    if (of('loop').length > 0 && line.classList.contains('loop')) return {strong: of('loop'), weak: []};
    if (line.closest('#pane-code') !== null) {
      const exact = of('lane').length > 0 ? of('lane') : of('section');
      return {strong: exact, weak: of('op')};
    }
    if (line.closest('#pane-lanes') !== null) return {strong: of('lane'), weak: [...of('op'), ...of('operand')]};
    if (of('operand').length > 0) return {strong: of('operand'), weak: []};
    return {strong: of('op').length > 0 ? of('op') : of('nest'), weak: []};
  }

  let lit = [];
  function darken() {
    for (const line of lit) line.classList.remove('lit', 'near');
    lit = [];
  }

  function light(line) {
    darken();
    if (line === null) return;
    const {strong, weak} = lit_keys(line);
    // An operation or nest that is near says so in its own pane alone; its code is not all lit.
    for (const key of weak) {
      for (const other of lines_of_key.get(key) ?? []) {
        if (other.closest('#pane-function, #pane-nest') === null && key.startsWith('op:')) continue;
        other.classList.add('near');
        lit.push(other);
      }
    }
    for (const key of strong) {
      for (const other of lines_of_key.get(key) ?? []) {
        other.classList.add('lit');
        lit.push(other);
      }
    }
    line.classList.add('lit');
    lit.push(line);
    say_origin(line);
  }

  /** The footer: operation, lane, section and its meaning. */
  function say_origin(line) {
    const footer = by_id('origin');
    const words = [];
    const code = codes[line.dataset.code];
    if (code !== undefined) {
      const [section, number, lane, operation] = code.code.origins[line.dataset.origin];
      const info = model.sections[section];
      words.push(['section', section_text(model.sections, [section, number])], ['meaning', info[2]]);
      if (lane >= 0) words.push(['lane', code.code.lanes[lane][0]]);
      if (operation >= 0) words.push(['op', operation_text(operation)]);
    } else {
      words.push(...operation_words(keys_of(line)));
    }
    footer.replaceChildren(...words.map(([kind, text]) => element('span', {class: 'o-' + kind}, text)));
  }

  /** The operations of a line, and whether there is code of any of them. */
  function operation_words(keys) {
    const operations = keys.filter((key) => key.startsWith('op:'));
    if (operations.length === 0 && !keys.some((key) => key.startsWith('written:'))) return [];
    const words = operations.length > 3 ? [['meaning', `${operations.length} operations in canonical form`]] :
      operations.map((key) => ['op', operation_text(Number(key.slice(3)))]);
    return operations.some(has_code) ? words : [...words, ['meaning', 'needs no instruction of its own here']];
  }

  /** Whether code is of what has the key. */
  function has_code(key) {
    append_all_code();
    return (lines_of_key.get(key) ?? []).some((line) => line.closest('#pane-code') !== null);
  }

  function operation_text(operation) {
    const found = model.functions[state.function].lines.find((each) => each[1] === operation);
    return found === undefined ? '' : found[0].trim();
  }

  function keep(line) {
    if (line !== null) append_all_code();
    for (const kept of document.querySelectorAll('.kept')) kept.classList.remove('kept');
    state.kept = line;
    if (line === null) {
      darken();
      by_id('origin').replaceChildren();
      return;
    }
    line.classList.add('kept');
    light(line);
    for (const id of panes) if (line.closest('#' + id) === null) reveal(by_id(id));
  }

  /** Scrolls a pane to what is lit in it: to its first line, unless one is in sight already. */
  function reveal(of) {
    const list = of.querySelector('.lines');
    const all = [...list.querySelectorAll('.lit, .near')];
    if (all.length === 0) return;
    const inside = (line) => line.offsetTop >= list.scrollTop &&
      line.offsetTop + line.offsetHeight <= list.scrollTop + list.clientHeight;
    if (!all.some(inside)) list.scrollTop = Math.max(0, all[0].offsetTop - list.clientHeight / 3);
  }

  // ---- what is shown

  function shown_codes(tier) {
    const all = [];
    tier.nests.forEach((nest, index) => nest.codes.forEach((code) => all.push(
      {nest: index, code, title: code.name === 'nest' ? `nest ${index}` : `nest ${index}: ${words_of_name(code.name)}`})));
    return all;
  }

  function know(line) {
    for (const key of keys_of(line)) {
      if (!lines_of_key.has(key)) lines_of_key.set(key, []);
      lines_of_key.get(key).push(line);
    }
  }

  /** Lines of code that are made at once: the first are shown before the others are made. */
  const first_lines = 1200;
  let later_code = null;

  function append_code(count) {
    const made = [];
    while (made.length < count) {
      const {value, done} = later_code.next();
      if (done) { later_code = null; break; }
      made.push(value);
      if (value.classList.contains('line')) know(value);
    }
    by_id('pane-code-lines').append(...made);
    document.body.dataset.complete = String(later_code === null);
    if (later_code === null) performance.mark('complete');
  }

  function append_all_code() {
    if (later_code !== null) append_code(Infinity);
  }

  function append_later(code) {
    setTimeout(() => {
      if (later_code !== code) return;  // another tier, or all is there
      append_code(2 * first_lines);
      if (later_code !== null) append_later(code);
    });
  }

  function show() {
    const view = model.functions[state.function];
    const tier = view.tiers[state.tier];
    codes = shown_codes(tier);
    by_id('panes').replaceChildren(function_pane(view), nest_pane(tier, codes), lanes_pane(codes),
      pane('pane-code', 'Machine code', ''));
    lines_of_key = new Map();
    document.querySelectorAll('.line').forEach(know);
    later_code = all_code_lines(codes, model.sections);
    append_code(first_lines);
    if (later_code !== null) append_later(later_code);
    const convolution = by_id('convolution');
    const views = tier.nests.flatMap((nest, index) => nest.convolution ? [convolution_view(nest, index)] : []);
    convolution.replaceChildren(...views);
    convolution.hidden = views.length === 0;
    keep(null);
    show_tabs();
  }

  function tab(text, selected, choose, controls) {
    return element('button', {type: 'button', role: 'tab', 'aria-selected': String(selected), 'aria-controls': controls,
      tabindex: selected ? 0 : -1, on: {click: choose}}, text);
  }

  function show_tabs() {
    const view = model.functions[state.function];
    by_id('tiers').replaceChildren(...view.tiers.map((tier, index) =>
      tab(tier.name, index === state.tier, () => choose_tier(index), 'panes')));
    by_id('pane-tabs').replaceChildren(...panes.map((id, index) =>
      tab(pane_names[index], index === state.pane, () => choose_pane(index), id)));
    panes.forEach((id, index) => by_id(id).classList.toggle('chosen', index === state.pane));
    const tabs = by_id('tiers');
    tabs.scrollLeft = tabs.children[state.tier].offsetLeft - tabs.clientWidth / 2;
  }

  function choose_tier(index) {
    const count = model.functions[state.function].tiers.length;
    const had_focus = by_id('tiers').contains(document.activeElement);
    state.tier = (index + count) % count;
    show();
    if (had_focus) by_id('tiers').children[state.tier].focus();
  }

  function choose_pane(index) {
    const had_focus = by_id('pane-tabs').contains(document.activeElement);
    state.pane = (index + panes.length) % panes.length;
    show_tabs();
    if (had_focus) by_id('pane-tabs').children[state.pane].focus();
    if (state.kept !== null) reveal(by_id(panes[state.pane]));
  }

  // ---- keys

  const lines_in = (pane) => [...pane.querySelectorAll('.line')];

  function focus_line(line) {
    line.focus({preventScroll: true});
    line.scrollIntoView({block: 'nearest'});
    light(line);
  }

  function step_line(pane, line, by) {
    const all = lines_in(pane);
    if (all.length === 0) return;
    const at = line === null ? (by > 0 ? 0 : all.length - 1) : all.indexOf(line) + by;
    focus_line(all[Math.min(Math.max(at, 0), all.length - 1)]);
  }

  /** The first counterpart in the next pane that has one; else that pane's first line. */
  function step_pane(pane, by) {
    const at = panes.indexOf(pane.id) + by;
    if (at < 0 || at >= panes.length) return;
    const other = by_id(panes[at]);
    const line = other.querySelector('.line.lit') ?? other.querySelector('.line.near') ?? other.querySelector('.line');
    state.pane = at;
    show_tabs();
    line === null ? other.querySelector('.lines').focus() : focus_line(line);
  }

  function on_pane_key(event, pane) {
    const line = event.target.closest('.line');
    switch (event.key) {
      case 'ArrowDown': step_line(pane, line, 1); break;
      case 'ArrowUp': step_line(pane, line, -1); break;
      case 'PageDown': step_line(pane, line, 20); break;
      case 'PageUp': step_line(pane, line, -20); break;
      case 'Home': step_line(pane, null, 1); break;
      case 'End': append_all_code(); step_line(pane, null, -1); break;
      case 'ArrowRight': step_pane(pane, 1); break;
      case 'ArrowLeft': step_pane(pane, -1); break;
      case 'Enter': case ' ': if (line === null) return; choose(line); break;
      default: return;
    }
    event.preventDefault();
  }

  function on_tab_key(event) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (step === undefined) return;
    event.target.closest('#tiers') ? choose_tier(state.tier + step) : choose_pane(state.pane + step);
    event.preventDefault();
  }

  function on_key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === 'SELECT') return;
    if (event.key === 'Escape') keep(null);
    else if (event.key === ']') choose_tier(state.tier + 1);
    else if (event.key === '[') choose_tier(state.tier - 1);
    else if (event.key === 'b') document.body.classList.toggle('with-bytes');
    else if (event.key === 'd') turn_theme();
    else if (event.key === '?') turn_help();
    else if (event.target.closest('.tabs')) on_tab_key(event);
    else if (event.target.closest('.pane')) on_pane_key(event, event.target.closest('.pane'));
  }

  // ---- dark and light, help

  function turn_theme() {
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    const now = document.documentElement.dataset.theme ?? (dark ? 'dark' : 'light');
    document.documentElement.dataset.theme = now === 'dark' ? 'light' : 'dark';
  }

  function turn_help() {
    const help = by_id('help');
    help.hidden = !help.hidden;
    by_id('help-button').setAttribute('aria-expanded', String(!help.hidden));
  }

  /** A line that was clicked. A loop's shows its code. */
  function choose(line) {
    if (state.kept === line) return keep(null);
    keep(line);
    if (line.dataset.goto === undefined) return;
    const first = by_id('pane-code').querySelector('.line.lit');
    if (first !== null) by_id('pane-code-lines').scrollTop = Math.max(0, first.offsetTop - 40);
  }

  function begin() {
    by_id('file').textContent = model.file;
    document.title = `${model.file} – castor explorer`;
    by_id('origin').dataset.version = model.version;
    const choice = by_id('function');
    choice.replaceChildren(...model.functions.map((each, index) => element('option', {value: index}, '@' + each.name)));
    by_id('function-choice').hidden = model.functions.length < 2;
    choice.addEventListener('change', () => { state.function = Number(choice.value); show(); });
    by_id('theme').addEventListener('click', turn_theme);
    by_id('help-button').addEventListener('click', turn_help);
    document.addEventListener('keydown', on_key);
    const main = by_id('panes');
    main.addEventListener('pointerover', (event) => {
      const line = event.target.closest('.line');
      if (line !== null && state.kept === null) light(line);
    });
    main.addEventListener('pointerleave', () => { if (state.kept === null) { darken(); by_id('origin').replaceChildren(); } });
    main.addEventListener('click', (event) => {
      if (event.target.closest('a') !== null) return append_all_code();
      const line = event.target.closest('.line');
      if (line !== null) choose(line);
    });
    if (model.functions.length > 0) show();
    document.body.dataset.ready = 'true';
  }

  begin();
})();
