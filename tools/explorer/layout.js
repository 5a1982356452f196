// SPDX-License-Identifier: Apache-2.0
// Convolutions: drawings of packed input and packed weights.
'use strict';

const group_size = {width: 84, height: 20, step: 89, rows: 34};
const shown_groups = 3;

function hatch() {
  return shape('defs', {}, shape('pattern', {id: 'hatch', width: 5, height: 5, patternUnits: 'userSpaceOnUse',
    patternTransform: 'rotate(45)'}, shape('line', {class: 'hatch', x1: 0, y1: 0, x2: 0, y2: 5})));
}

/** The four bytes of a k group, by name; null: a zero. Values of two bytes have their name twice. */
function group_shapes(names, column, row) {
  const y = 20 + row * group_size.rows;
  const width = group_size.width / 4;
  return names.flatMap((name, at) => {
    const x = column * group_size.step + at * width;
    const byte = shape('rect', {class: name === null ? 'dead' : `byte y${at}`, x, y, width: width - 1, height: group_size.height, rx: 1.5},
      title_of(name ?? 'zero'));
    const size = name === null || name.length < 4 ? '' : ' small';
    return name === null ? [byte] : [byte, label(x + width / 2 - 0.5, y + 13, name, {class: 'byte-name' + size})];
  });
}

function heads(count, word) {
  return Array.from({length: count}, (_, at) => label(at * group_size.step, 14, `${word} ${at}`));
}

function groups_drawing(name, columns, rows, caption, ...shapes) {
  return drawing(name, columns * group_size.step + 58, 20 + rows * group_size.rows, caption, hatch(), ...shapes);
}

// ---- packed input

/** What the four bytes of a k group of pixel `pixel` are. */
function byte_names(plan, pixel) {
  const layout = plan.source.layout;
  const stride = plan.columns.stride;
  if (layout === 'columns4') return [0, 1, 2, 3].map((i) => `x${pixel * stride + i}`);
  if (layout === 'im2col') {
    return [0, 1, 2, 3].map((i) => `${Math.floor(i / plan.columns.kernel)},${pixel * stride + i % plan.columns.kernel * plan.columns.dilation}`);
  }
  return plan.engine === 'i16_pairs' ? ['c0', 'c0', 'c1', 'c1'] : ['c0', 'c1', 'c2', 'c3'];
}

function plane_drawing(plan) {
  const {source, columns} = plan;
  const shapes = heads(shown_groups, 'pixel');
  for (let row = 0; row < 3; ++row) {
    const x = shown_groups * group_size.step;
    const y = 20 + row * group_size.rows;
    for (let pixel = 0; pixel < shown_groups; ++pixel) shapes.push(...group_shapes(byte_names(plan, pixel), pixel, row));
    shapes.push(label(x + 2, y + 13, '…'));
    if (plan.hasDeadLanes) {
      shapes.push(shape('rect', {class: 'dead', x: x + 16, y, width: 28, height: group_size.height, rx: 1.5},
        title_of('dead lanes: computed, not stored')));
    }
  }
  const caption = `${number_text(source.planes)} planes of ${number_text(source.planeSize)} k groups; a row is ` +
    `${source.pitch} k groups after the one before, for ${columns.output} pixels` +
    (plan.hasDeadLanes ? '; hatched: dead lanes' : '') +
    (source.isPackedByKernel ? '; packed by the kernel itself' : '');
  return groups_drawing(`Packed input: ${words_of_name(source.name)}`, shown_groups, 3, caption, ...shapes);
}

function rows_drawing(plan) {
  const {source} = plan;
  const shapes = [];
  for (let row = 0; row < 3; ++row) {
    const y = 20 + row * 34;
    const is_padded = source.kind === 'copies' && plan.columns.padBegin > 0;
    for (let pixel = 0; pixel < 7; ++pixel) {
      const padding = is_padded && pixel === 0;
      shapes.push(shape('rect', {class: padding ? 'dead' : 'byte y' + pixel % 2, x: pixel * 38, y, width: 36, height: 20, rx: 2}));
      shapes.push(label(pixel * 38 + 18, y + 13, padding ? 'pad' : `x${pixel - (is_padded ? 1 : 0)}`, {class: 'byte-name'}));
    }
    shapes.push(label(7 * 38 + 2, y + 13, '…'));
  }
  shapes.push(label(0, 14, `${source.columnBytes} B a column, ${number_text(source.rowBytes)} B a row`));
  const name = source.kind === 'copies' ? 'Copied rows' : 'Input rows';
  return drawing(name, 290, 122, source.kind === 'copies' ?
    `${source.rows} rows of each plane with their padding, which kernels read` :
    'kernels read the input where it is: nothing is packed', hatch(), ...shapes);
}

// ---- packed weights

/** Values of 16 bits take two bytes each. */
const two_bytes_each = (names) => names.slice(0, 2).flatMap((name) => [name, name]);

/** The weights of an output channel that k step `step` multiplies, and at which tap they are. */
function k_step_weights(plan, geometry, step) {
  const is_pairs = plan.engine === 'i16_pairs';
  const listed = plan.kStepWeights[step];
  if (listed !== undefined) {
    const names = listed.map((weight) => weight < 0 ? null : `w${weight}`);
    return {names: is_pairs ? two_bytes_each(names) : names, tap: ''};
  }
  const taps = plan.rows.kernel * plan.columns.kernel;
  const first = Math.floor(step / taps) * (is_pairs ? 2 : 4);
  const names = [0, 1, 2, 3].map((at) => first + at < geometry.channels / geometry.groups ? `c${first + at}` : null);
  const tap = step % taps;
  return {names: is_pairs ? two_bytes_each(names) : names,
    tap: `tap ${Math.floor(tap / plan.columns.kernel)},${tap % plan.columns.kernel}`};
}

/** A tile of output channels: for each k step a k group of each channel. */
function weights_drawing(plan, geometry) {
  const steps = Math.min(plan.kSteps, 3);
  const channels = Math.min(plan.tile.channels, shown_groups);
  const shapes = heads(channels, 'channel');
  for (let step = 0; step < steps; ++step) {
    const {names, tap} = k_step_weights(plan, geometry, step);
    for (let channel = 0; channel < channels; ++channel) shapes.push(...group_shapes(names, channel, step));
    shapes.push(label(channels * group_size.step + 2, 33 + step * group_size.rows, plan.tile.channels > channels ? `… ${tap}` : tap));
  }
  const listed = plan.kStepWeights.length > 0;
  return groups_drawing('Packed weights', channels, steps,
    `${number_text(plan.channelTiles)} × ${plan.tile.channels} output channels` +
    (geometry.groups > 1 ? ` in each of ${number_text(geometry.groups)} groups` : '') +
    `; a row is a k step, of which there are ${number_text(plan.kSteps)}; ` +
    (listed ? 'w: weights of an output channel, in their order' : 'c: input channels'), ...shapes);
}

/** Which bytes of a row of the filter the lanes of a panel have. */
function panel_groups(plan) {
  return plan.rowWeights.flatMap(([first, mask]) => {
    const names = [0, 1, 2, 3].map((at) => (mask >> at & 1) === 0 ? null : `w${first + at * plan.weightStep}`);
    if (plan.engine !== 'i16_pairs') return [names];
    if (plan.weightParts === 1) return [two_bytes_each(names)];
    return [[names[0], names[2]], [names[1], names[3]]].map(two_bytes_each);
  });
}

/** The panel of an output channel, or of a vector of them: row by row of the filter. */
function panel_drawing(plan, geometry) {
  const is_nhwc = plan.kind === 'grouped_nhwc';
  const groups = panel_groups(plan);
  const columns = Math.min(groups.length, shown_groups);
  const rows = Math.min(plan.filterRows, 4);
  const shapes = heads(columns, is_nhwc ? 'vector' : 'lane');
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) shapes.push(...group_shapes(groups[column], column, row));
    const more = groups.length > columns ? '… ' : '';
    shapes.push(label(columns * group_size.step + 2, 33 + row * group_size.rows, `${more}row ${row}`));
  }
  const owner = is_nhwc ? `vectors for ${number_text(plan.panels)} vectors of output channels, in each lane those of its own channel` :
    `32-bit lanes for each of ${number_text(plan.panels)} output channels`;
  return groups_drawing('Packed weights', columns, rows, `a panel of ${plan.panelSize} ${owner}` +
    (plan.filterRows > rows ? `; ${plan.filterRows} rows of the filter` : '') +
    (plan.zeroPoints > 0 ? `; after the weights ${plan.zeroPoints} of zero points` : '') +
    '; w: weights of a row of the filter' + (groups.flat().includes(null) ? '; hatched: zeros' : ''), ...shapes);
}
