// SPDX-License-Identifier: Apache-2.0
// Lines of the four panes. Texts of the model only ever become text nodes.
'use strict';

/** An element with classes, attributes and children; strings become text. */
function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  const {on = {}, data = {}, ...attributes} = options;
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) made.setAttribute(name, value === true ? '' : value);
  }
  for (const [name, value] of Object.entries(data)) made.dataset[name] = value;
  for (const [name, listener] of Object.entries(on)) made.addEventListener(name, listener);
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** What words of each colour look like. */
const word_patterns = {
  comment: '\\/\\/.*$|;.*$',
  name: '[%@][\\w.]+|\\b(?:source|sink)\\d+\\b',
  type: '\\b(?:boolean|bf16|nf4|[uif]\\d+(?:e\\d+m\\d+(?:fnuz)?)?)\\b',
  number: '-?\\b(?:0x[\\da-f]+|\\d+(?:\\.\\d+)?)\\b',
  register: '\\b(?:[xyzt]mm\\d+|k[0-7]|r(?:[abcd]x|[sd]i|[sb]p|ip|\\d+[dwb]?)|e(?:[abcd]x|[sd]i|[sb]p))\\b',
  label: '\\bL\\d+\\b',
};
const words_of = (...kinds) => new RegExp(kinds.map((kind) => `(?<${kind}>${word_patterns[kind]})`).join('|'), 'g');
const text_words = words_of('comment', 'name', 'type', 'number');
const code_words = words_of('register', 'number', 'label');

/** A line with its words in colours. `link_of` gives where a label leads. */
function coloured(text, words, link_of = null) {
  const made = document.createDocumentFragment();
  let plain = 0;
  for (const match of text.matchAll(words)) {
    if (match.index > plain) made.append(text.slice(plain, match.index));
    const kind = Object.keys(match.groups).find((each) => match.groups[each] !== undefined);
    const is_link = kind === 'label' && link_of !== null;
    const word = document.createElement(is_link ? 'a' : 'span');
    if (is_link) word.href = link_of(match[0]);
    word.className = 'w-' + kind;
    word.textContent = match[0];
    made.append(word);
    plain = match.index + match[0].length;
  }
  if (plain < text.length) made.append(text.slice(plain));
  return made;
}

/** One line that can be pointed at. `keys` says what it is of: "op:2", "lane:0:3", ... */
function line(keys, ...children) {
  return element('div', {class: 'line', tabindex: -1, role: 'option', data: {keys: keys.join(' ')}},
    ...children);
}

function pane(id, title, note, ...children) {
  const list = element('div',
    {class: 'lines', role: 'listbox', tabindex: 0, 'aria-label': title, id: id + '-lines'}, ...children);
  return element('section', {class: 'pane', id, role: 'tabpanel', 'aria-label': title},
    element('h2', {}, title, element('small', {}, note)), list);
}

// ---- the function

function function_pane(view) {
  const lines = view.lines.map(([text, operation]) =>
    line(operation < 0 ? [] : ['op:' + operation], coloured(text, text_words)));
  const is_written = view.written.length > 0;
  if (is_written) {
    lines.unshift(element('h3', {}, 'as it was written'), ...view.written.map(([text, operation, became]) =>
      line([...became.map((each) => 'op:' + each), ...(operation < 0 ? [] : ['written:' + operation])], coloured(text, text_words))),
    element('h3', {}, 'canonical form'));
  }
  return pane('pane-function', 'Function', '', ...lines);
}

// ---- nests and loops

/** What a nest's line is of: its operand's loads and stores, or all of it. */
function nest_keys(text, nest, index) {
  const operand = /^\s*((?:source|sink)\d+)\b/.exec(text);
  if (operand !== null) return ['operand:' + index + ':' + operand[1]];
  return nest.operation < 0 ? ['nest:' + index] : ['op:' + nest.operation, 'nest:' + index];
}

const words_of_name = (name) => name.replaceAll('_', ' ');

function number_text(value) {
  return value.toLocaleString('en', {maximumFractionDigits: 2});
}

/** `cycles` of the loop's bound, which is a full bar. */
function bar([name, meaning, cycles], bound) {
  const percent = bound > 0 ? 100 * cycles / bound : 0;
  const holds = cycles === bound && bound > 0;
  const kinds = ['bar', ...(holds ? ['holds'] : []), ...(cycles === 0 ? ['idle'] : [])];
  return element('div', {class: kinds.join(' '), title: `${meaning}: ${cycles.toFixed(2)} of ${bound.toFixed(2)} cycles`},
    element('span', {class: 'bar-name'}, words_of_name(name)),
    element('span', {class: 'bar-track'}, element('span', {class: 'bar-fill', style: `width:${percent.toFixed(1)}%`})),
    element('span', {class: 'bar-value'}, cycles.toFixed(2)));
}

/** What bounds a loop: its busiest ports, a class of instructions on ports that are not known, or a unit. */
function holding(cycles) {
  return cycles.limit === 'pipes' ? cycles.busiest.split(' ') : [cycles.limit];
}

/** A bar for each port of the core, then for what else works: those that bound the loop are full. */
function loop_bars(cycles) {
  const names = holding(cycles);
  const ports = cycles.ports.map(([name, value]) => [name, `port ${name}`, value]);
  if (cycles.limit === 'pipes' && !ports.some(([name]) => names.includes(name))) {
    ports.push([cycles.busiest, 'instructions on ports that are not known', cycles.pipes]);
  }
  const units = [['load', 'all load ports', cycles.load], ['store', 'all store ports', cycles.store],
    ['front end', 'decoding and dispatch', cycles.frontEnd]];
  const shown = (row) => bar(row, cycles.bound);
  return element('div', {class: 'load'}, element('div', {class: 'bars ports'}, ...ports.map(shown)),
    element('div', {class: 'bars units'}, ...units.map(shown)));
}

/** "by FP1 FP2", "by load". */
function bound_text(cycles) {
  return `${cycles.bound.toFixed(2)} cycles by ${words_of_name(holding(cycles).join(' '))}`;
}

function loop_card(loop, index, code) {
  const facts = [`${number_text(loop.read)} B loaded`, `${number_text(loop.written)} B stored`,
    `${number_text(loop.elements)} elements`, `${number_text(loop.end - loop.first)} instructions`,
    `${number_text(loop.bytes)} B of code`];
  if (loop.cycles?.hasForeignTiles) facts.push('tiles as on Granite Rapids');
  const card = element('div',
    {class: 'loop line', tabindex: -1, role: 'option', data: {keys: `loop:${code}:${index}`, goto: loop.first}},
    element('div', {class: 'loop-head'}, element('b', {}, loop.name),
      element('span', {class: 'loop-cycles'}, loop.cycles ? bound_text(loop.cycles) : 'no cycles')));
  card.append(loop.cycles ? loop_bars(loop.cycles) : element('p', {class: 'refusal'}, loop.refusal));
  card.append(element('p', {class: 'facts'}, facts.join(' · ')));
  return card;
}

function nest_pane(tier, codes) {
  if (tier.refusal !== '') {
    return pane('pane-nest', 'Nests', '', element('p', {class: 'refusal'}, tier.refusal));
  }
  const lines = [];
  tier.nests.forEach((nest, index) => {
    lines.push(element('h3', {}, `nest ${index}`));
    for (const text of nest.lines) {
      lines.push(line(nest_keys(text, nest, index), coloured(text.trimStart(), text_words)));
    }
    if (nest.convolution) {
      lines.push(element('a', {class: 'facts leads', href: '#convolution'}, 'candidates, blocks and layout ↓'));
    }
    if (!nest.convolution && !nest.codes.some((code) => code.name === 'nest')) {
      lines.push(element('p', {class: 'facts'}, 'The microkernel before applies it: see there.' +
        (nest.codes.length > 0 ? ' Its own code is for tensors of which that cannot be done.' : '')));
    }
    codes.forEach((entry, number) => {
      if (entry.nest !== index || entry.code.loops.length === 0) return;
      lines.push(element('h4', {}, entry.code.name === 'nest' ? 'loops' : `loops of ${words_of_name(entry.code.name)}`));
      entry.code.loops.forEach((loop, at) => lines.push(loop_card(loop, at, number)));
    });
  });
  if (tier.missing !== '') {
    lines.push(element('p', {class: 'refusal'}, `Kernels that binding makes are not shown: ${tier.missing}`));
  }
  const made = pane('pane-nest', 'Nests', `for ${tier.core}; cycles of ${tier.model}`, ...lines);
  made.querySelector('small').title = `planned for ${tier.core}, with vectors of ${tier.vectorBits} bits; ` +
    `cycles are those of an iteration on ${tier.model}, with data in L1`;
  return made;
}

// ---- lanes

function lane_keys(text, operation, index, entry, code) {
  const keys = [`lane:${code}:${index}`, 'nest:' + entry.nest];
  if (operation >= 0) keys.push('op:' + operation);
  const operand = /\b(?:source|sink)\d+\b/.exec(text);
  if (operand !== null) keys.push(`operand:${entry.nest}:${operand[0]}`);
  return keys;
}

function lanes_pane(codes) {
  const lines = [];
  codes.forEach((entry, number) => {
    if (entry.code.lanes.length === 0) return;
    lines.push(element('h3', {}, entry.title + (entry.code.name === 'microkernel' ? ': epilogue' : '')));
    entry.code.lanes.forEach(([text, operation, is_constant], index) => {
      const made = line(lane_keys(text, operation, index, entry, number), coloured(text, text_words));
      if (is_constant) made.classList.add('constant');
      lines.push(made);
    });
  });
  if (lines.length === 0) lines.push(element('p', {class: 'facts'}, 'No code here runs a lane program.'));
  return pane('pane-lanes', 'Lane program', 'one chunk of lanes', ...lines);
}

// ---- machine code

function origin_keys(origin, entry, code) {
  const [section, number, lane, operation] = origin;
  const keys = [`section:${code}:${section}:${number}`, 'nest:' + entry.nest];
  if (lane >= 0) {
    keys.push(`lane:${code}:${lane}`);
    const operand = /\b(?:source|sink)\d+\b/.exec(entry.code.lanes[lane][0]);
    if (operand !== null) keys.push(`operand:${entry.nest}:${operand[0]}`);
  }
  if (operation >= 0) keys.push('op:' + operation);
  return keys;
}

function instruction_line(instruction, keys, kind, link_of) {
  const [offset, bytes, text, comment] = instruction;
  const made = line(keys, element('i', {class: 'kind k-' + kind}),
    element('span', {class: 'offset'}, offset.toString(16).padStart(4, '0')),
    element('span', {class: 'bytes'}, bytes), element('span', {class: 'text'}, coloured(text, code_words, link_of)));
  if (comment !== '') made.append(element('span', {class: 'comment', title: comment}, '; ' + comment));
  return made;
}

/** Where loops begin and end, before an instruction. */
function* loop_edges(entry, number, index) {
  for (const [at, loop] of entry.code.loops.entries()) {
    if (loop.first === index) {
      yield element('div', {class: 'loop-edge', data: {loop: `loop:${number}:${at}`}}, `▾ ${loop.name}`);
    }
    if (loop.end === index) yield element('div', {class: 'loop-edge end'}, `▴ end of ${loop.name}`);
  }
}

/** The lines of one code. Where another section begins, its name is beside the instruction. */
function* code_lines(entry, number, sections) {
  const {code} = entry;
  const link_of = (label) => `#code${number}-${label}`;
  let last = -1;
  for (const [index, instruction] of code.instructions.entries()) {
    yield* loop_edges(entry, number, index);
    if (instruction[4] >= 0) {
      const name = `L${instruction[4]}`;
      yield element('div', {class: 'code-label', id: `code${number}-${name}`}, name + ':');
    }
    const origin = code.origins[instruction[5]];
    const keys = origin_keys(origin, entry, number);
    code.loops.forEach((loop, at) => {
      if (index >= loop.first && index < loop.end) keys.push(`loop:${number}:${at}`);
    });
    const made = instruction_line(instruction, keys, sections[origin[0]][1], link_of);
    if (instruction[5] !== last) {
      const lane = origin[2] < 0 ? '' : ' · ' + code.lanes[origin[2]][0].split(/[: ]/, 1)[0];
      made.append(element('span', {class: 'section'}, section_text(sections, origin) + lane));
    }
    last = instruction[5];
    made.dataset.code = number;
    made.dataset.origin = instruction[5];
    yield made;
  }
}

function section_text(sections, origin) {
  return sections[origin[0]][0] + (origin[1] >= 0 ? ' ' + origin[1] : '');
}

function code_heading(entry) {
  const {code} = entry;
  return element('h3', {}, entry.title,
    element('small', {}, `${number_text(code.instructionBytes)} B in ${number_text(code.instructions.length)} ` +
      `instructions, ${number_text(code.constantBytes)} B of constants, ${code.spills} spills`));
}

/** All lines of all codes, one by one: large codes are shown before the last lines are made. */
function* all_code_lines(codes, sections) {
  for (const [number, entry] of codes.entries()) {
    yield code_heading(entry);
    yield* code_lines(entry, number, sections);
  }
}
