// SPDX-License-Identifier: Apache-2.0
// Convolutions: candidates with their costs, drawings of blocks and of the register tile.
'use strict';

function shape(tag, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function label(x, y, text, attributes = {}) {
  return shape('text', {x, y, ...attributes}, text);
}

function title_of(text) { return shape('title', {}, text); }

function drawing(name, width, height, caption, ...shapes) {
  return element('figure', {style: `width:${Math.max(width, 230)}px`},
    shape('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': name}, ...shapes),
    element('figcaption', {}, element('b', {}, name), ' ', caption));
}

// ---- candidates

/** Bars end at a few times the chosen candidate's, or all others would be too short to see. */
const max_times = 4;

const max_colours = 10;

/** Parts beyond the legend's have no colour of their own. */
function colour_of(name, colours) {
  const index = colours.indexOf(name);
  return index < 0 ? 'cost' : 'cost c' + index;
}

function candidate_row(candidate, first, colours) {
  const width = (cycles) => 100 * cycles / Math.min(first.slowest, max_times * first.cycles);
  const parts = candidate.parts.map(([name, meaning, count, cycles]) => element('span', {
    class: colour_of(name, colours),
    style: `width:${width(cycles).toFixed(2)}%`,
    title: `${name}: ${meaning}; ${number_text(count)} of them, ${number_text(cycles)} cycles`,
  }));
  const times = candidate.cycles / first.cycles;
  return element('tr', {class: times === 1 ? 'chosen' : ''},
    element('th', {scope: 'row'}, candidate.name.replaceAll('_', ' ')),
    element('td', {class: 'figure'}, number_text(Math.round(candidate.cycles))),
    element('td', {class: 'figure'}, times === 1 ? 'chosen' : times.toFixed(2) + ' ×'),
    element('td', {class: times > max_times ? 'cost-bar cut' : 'cost-bar'}, element('div', {}, ...parts)));
}

function candidates_table(candidates) {
  const colours = [];
  for (const {parts} of candidates) {
    for (const [name] of parts.slice(0, 4)) {
      if (!colours.includes(name) && colours.length < max_colours) colours.push(name);
    }
  }
  const meanings = new Map(candidates.flatMap(({parts}) => parts.map(([name, meaning]) => [name, meaning])));
  const first = {cycles: candidates[0].cycles, slowest: candidates[candidates.length - 1].cycles};
  return element('div', {class: 'candidates'},
    element('h3', {}, 'Candidates', element('small', {}, 'cycles an image, by the cost model')),
    element('div', {class: 'scroll'}, element('table', {},
      element('tbody', {}, ...candidates.map((each) => candidate_row(each, first, colours))))),
    element('ul', {class: 'legend'}, ...colours.map((name, index) =>
      element('li', {title: meanings.get(name)}, element('i', {class: 'cost c' + index}), name.replaceAll('_', ' ')))));
}

// ---- the output in cache blocks and register tiles

/** Pixels of the output, cut into blocks of `rows` by `columns`; `tile` of the first is marked. */
function output_drawing(plan, blocks, tile, caption) {
  const size = 240;
  const scale = size / Math.max(plan.rows.output, plan.columns.output);
  const width = plan.columns.output * scale;
  const height = Math.max(plan.rows.output * scale, 6);
  const shapes = [];
  blocks.forEach(({row, column, rows, columns}, index) => {
    shapes.push(shape('rect', {class: `block b${index % 2}`, x: column * scale, y: row * scale,
      width: Math.max(columns * scale - 0.8, 0.5), height: Math.max(rows * scale - 0.8, 0.5), rx: 1.5},
    title_of(`rows ${row} to ${row + rows - 1}, columns ${column} to ${column + columns - 1}`)));
  });
  shapes.push(shape('rect', {class: 'tile', x: 0, y: 0, width: Math.max(tile.columns * scale, 2),
    height: Math.max(tile.rows * scale, 2)}, title_of('a register tile')));
  shapes.push(label(0, height + 14, `${plan.columns.output} columns × ${plan.rows.output} rows of output`));
  return drawing('Blocks', size + 2, height + 20, caption, ...shapes);
}

const max_drawn_blocks = 400;

function blocks_of(all_rows, all_columns, rows, columns) {
  const blocks = [];
  for (let row = 0; row < all_rows; row += rows) {
    for (let column = 0; column < all_columns && blocks.length < max_drawn_blocks; column += columns) {
      blocks.push({row, column, rows: Math.min(rows, all_rows - row), columns: Math.min(columns, all_columns - column)});
    }
  }
  return blocks;
}

function dense_blocks(plan) {
  const {block, tile} = plan;
  const by_pixels = tile.vectorised === 'pixels';
  const pixels = by_pixels ? tile.nr * plan.lanes : tile.columns;
  const marked = {columns: Math.min(pixels, block.columns),
    rows: by_pixels ? Math.ceil(pixels / Math.max(block.columns, 1)) : tile.pixelRows};
  return output_drawing(plan, blocks_of(plan.rows.output, plan.columns.output, block.rows, block.columns), marked,
    `cache blocks of ${block.rows} × ${block.columns} pixels; outlined: the pixels of one register tile`);
}

// ---- the register tile

/** Accumulators, rows by columns of vectors, with an operand of each row and of each column. */
function accumulators_drawing(name, rows, columns, above, row_operand, caption) {
  const cell = {width: Math.min(64, 216 / columns), height: Math.min(18, 200 / rows)};
  const left = 58;
  const top = 34;
  const shapes = [];
  for (let column = 0; column < columns; ++column) {
    shapes.push(shape('rect', {class: 'operand', x: left + column * cell.width, y: top - 22,
      width: cell.width - 2, height: 16, rx: 2}));
  }
  for (let row = 0; row < rows; ++row) {
    const y = top + row * cell.height;
    shapes.push(shape('rect', {class: row_operand, x: left - 22, y, width: 16, height: cell.height - 2, rx: 2}));
    for (let column = 0; column < columns; ++column) {
      shapes.push(shape('rect', {class: 'accumulator', x: left + column * cell.width, y,
        width: cell.width - 2, height: cell.height - 2, rx: 2},
      title_of(`accumulator: row ${row}, vector ${column}`)));
    }
  }
  const height = top + rows * cell.height;
  shapes.push(label(left, 9, above));
  shapes.push(label(left - 28, top + rows * cell.height / 2, `${rows}`, {class: 'end'}));
  return drawing(name, left + Math.max(columns * cell.width, 112) + 2, height + 4,
    `${rows} × ${columns} accumulators; ${caption}`, ...shapes);
}

function tile_drawing(plan) {
  const {tile} = plan;
  const by_pixels = tile.vectorised === 'pixels';
  const rows = by_pixels ? 'weights of output channels' : 'pixels';
  return accumulators_drawing('Register tile', tile.mr, tile.nr,
    `${tile.nr} vector${tile.nr > 1 ? 's' : ''} of ${plan.lanes} ${by_pixels ? 'pixels' : 'channels'}`, 'broadcast',
    `rows: ${rows}, broadcast` + (tile.hasTileRegisters ? ' (in tile registers)' : '') +
    `; ${number_text(plan.kSteps)} k steps`);
}

/** Vectors along K of some pixels by those of four output channels. */
function dot_drawing(plan) {
  return accumulators_drawing('Dot products', plan.tilePixels, plan.tileChannels,
    `weights of ${plan.tileChannels} output channels`, 'operand',
    `rows: packed pixels; each vector has ${plan.step} elements along K, ${number_text(plan.steps)} of which make the ` +
    `${number_text(plan.depth)} of a pixel; lanes are added up at the end`);
}

function weight_rows_drawing(plan) {
  return accumulators_drawing('Rows of weights', plan.tilePixels, plan.tileChannels,
    `weights of ${plan.tileChannels} output channels`, 'operand',
    `columns: interleaved pixels; a k step takes ${plan.step} channels, and ${number_text(plan.steps)} steps make the ` +
    `${number_text(plan.depth)} of a pixel`);
}

// ---- sliding kernels

function sliding_blocks(plan) {
  const rows = Math.max(plan.rangeOutputs * plan.rowPhases * plan.rowsOfVector, 1);
  const parts = plan.columnParts ?? [0, plan.columns.output];
  const blocks = [];
  for (let row = 0; row < plan.rows.output; row += rows) {
    for (let part = 0; part + 1 < parts.length && blocks.length < max_drawn_blocks; ++part) {
      blocks.push({row, column: parts[part], rows: Math.min(rows, plan.rows.output - row), columns: parts[part + 1] - parts[part]});
    }
  }
  const along = plan.kind === 'depthwise' ? 'output pixels' : 'output channels';
  return output_drawing(plan, blocks, {columns: parts[1] - parts[0], rows: Math.min(rows, plan.rows.output)},
    `row ranges of ${plan.rangeOutputs} rows, of which ${plan.codes} have code of their own; a vector's ${plan.lanes} lanes are ${along}`);
}

function slide_drawing(plan) {
  const rows = (plan.rangeOutputs - 1) * plan.rows.stride + plan.rows.kernel;
  const cell = Math.min(20, 200 / rows);
  const column = Math.min(26, 300 / plan.rangeOutputs);
  const shapes = [];
  for (let row = 0; row < rows; ++row) {
    const y = 18 + row * cell;
    shapes.push(shape('rect', {class: 'operand', x: 0, y, width: 60, height: cell * 0.85, rx: 1.5}));
    for (let output = 0; output < plan.rangeOutputs; ++output) {
      const tap = row - output * plan.rows.stride;
      if (tap < 0 || tap >= plan.rows.kernel) continue;
      shapes.push(shape('rect', {class: `accumulator o${output % 2}`, x: 76 + output * column, y, width: column * 0.9, height: cell * 0.85, rx: 1.5},
        title_of(`input row ${row}, row ${tap} of the filter: output row ${output}`)));
    }
  }
  shapes.push(label(0, 11, 'input rows'), label(76, 11, 'output rows that take them'));
  return drawing('Slide', Math.max(240, 80 + plan.rangeOutputs * column), 22 + rows * cell,
    'each input row is loaded once, for all output rows of the range', ...shapes);
}

/** Everything about one convolution. */
function convolution_view(nest, index) {
  const {candidates, geometry, plan} = nest.convolution;
  const axis = (each) => `${each.input} by ${each.kernel}` + (each.stride > 1 ? `, stride ${each.stride}` : '') +
    (each.dilation > 1 ? `, dilation ${each.dilation}` : '');
  const facts = `${geometry.layout}, ${geometry.channels} to ${geometry.outChannels} channels` +
    (geometry.groups > 1 ? ` in ${geometry.groups} groups` : '') + `; ${geometry.axes.map(axis).join(' × ')}`;
  const sliding = () => [sliding_blocks(plan), slide_drawing(plan), panel_drawing(plan, geometry)];
  const figures = {
    dense: () => [dense_blocks(plan), tile_drawing(plan),
      plan.source.kind === 'planes' ? plane_drawing(plan) : rows_drawing(plan), weights_drawing(plan, geometry)],
    dot: () => [dot_drawing(plan)],
    weight_rows: () => [weight_rows_drawing(plan)],
    depthwise: sliding,
    grouped_nhwc: sliding,
  }[plan.kind]();
  return element('article', {}, element('h2', {}, `Convolution of nest ${index}`, element('small', {}, facts)),
    candidates_table(candidates), element('div', {class: 'figures'}, ...figures));
}
