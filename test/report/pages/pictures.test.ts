import { describe, expect, it } from 'vitest';
import { axisText } from '../../../src/report/kit/axis-text.js';
import { layerMap } from '../../../src/report/kit/layer-map.js';
import type { Picture } from '../../../src/report/kit/pictures.js';
import { draw } from '../../../src/report/render/picture/draw.js';
import { inlineSvg, WIDTH } from '../../../src/report/render/picture/svg.js';
import {
  linearScale,
  logScale,
  tightScale,
  valueText,
} from '../../../src/report/render/picture/units.js';
import { valuesTable } from '../../../src/report/render/picture/values-table.js';
import { EVERY_BLOCK } from './any-report.js';
import { parsedElements } from './parsed.js';

const elementsOf = (picture: Picture) =>
  parsedElements(inlineSvg(picture.title, draw(picture)).text).elements;

/** Numbers of an attribute of all elements of a name. */
const numbers = (picture: Picture, name: string, attribute: string) =>
  elementsOf(picture)
    .filter((each) => each.name === name && attribute in each.attributes)
    .map(({ attributes }) => Number(attributes[attribute]));

describe('scales', () => {
  it('have round ticks around the values', () => {
    expect(linearScale([0, 7.3], 5).ticks).toEqual([0, 2, 4, 6, 8]);
    expect(linearScale([5, 5], 5).ticks).toEqual([5, 6]);
    expect(linearScale([], 5).ticks).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(linearScale([0.1, 0.3], 4).ticks).toEqual([0.1, 0.15, 0.2, 0.25, 0.3]);
  });

  it('end at the values where asked', () => {
    const scale = tightScale([3, 31], 6);
    expect([scale.shareOf(3), scale.shareOf(31), scale.ticks]).toEqual([
      0,
      1,
      [5, 10, 15, 20, 25, 30],
    ]);
    expect(tightScale([4], 6).shareOf(4)).toBe(0.5);
  });

  it('have powers of ten on a logarithm, fewer where many do not fit', () => {
    expect(logScale([1, 1000], 6).ticks).toEqual([1, 10, 100, 1000]);
    expect(logScale([1, 1e12], 6).ticks).toEqual([1, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]);
    expect(logScale([3, 60], 6).ticks).toEqual([5, 10, 20, 50]);
    expect(logScale([0, -1], 6).ticks).toEqual([1, 2, 5, 10]);
    expect(logScale([1, 100], 6).shareOf(10)).toBe(0.5);
  });
});

it.each([
  [1.5e9, 'bytes', '1.5 GB'],
  [26e6, 'count', '26M'],
  [0.0312, 'share', '3.12%'],
  [2e12, 'FLOPs', '2.0 TFLOPs'],
  [0.00032, undefined, '3.2e-4'],
  [Number.NaN, 'bytes', 'NaN'],
] as const)('writes %d in %s as %s', (value, unit, text) => {
  expect(valueText(value, unit)).toBe(text);
});

it.each([
  [[0, 5e8, 1e9, 1.5e9], 'bytes', ['0', '0.5 GB', '1 GB', '1.5 GB']],
  [[1e3, 1e6, 1e9], 'bytes', ['1 kB', '1 MB', '1 GB']],
  [[0, 0.25, 0.5], 'share', ['0%', '25%', '50%']],
  [[0.00001, 0.001, 0.1], 'share', ['0.001%', '0.1%', '10%']],
  [[0.000001, 0.1], 'share', ['1e-4%', '1e1%']],
  [[0, 5000, 10_000, 15_000], undefined, ['0', '5k', '10k', '15k']],
  [[256, 1024, 4096], 'count', ['256', '1024', '4096']],
  [[1, 1000, 1e6, 1e9], 'count', ['1', '1k', '1M', '1B']],
  [[100, 10_000, 1e6], undefined, ['100', '10k', '1M']],
  [[20e6, 1e9], 'bytes', ['0.02 GB', '1 GB']],
  [[0.001, 0.01, 1, 1000], undefined, ['0.001', '0.01', '1', '1000']],
  [[0.0006, 0.006], undefined, ['6e-4', '6e-3']],
  [[-2, 0, 2.5], undefined, ['−2', '0', '2.5']],
  [[0], 'bytes', ['0']],
] as const)('writes the values of an axis in one format: %j in %s', (values, unit, texts) => {
  expect(values.map(axisText(values, unit))).toEqual(texts);
});

it('draws bars in proportion', () => {
  const bars = [1, 2, 4].map((value) => ({ label: `b${value}`, value }));
  const [one = 0, two = 0, four = 0] = numbers(
    { kind: 'bars', title: 't', bars, levels: [] },
    'rect',
    'width',
  );
  expect(two / one).toBeCloseTo(2, 1);
  expect(four / one).toBeCloseTo(4, 1);
});

it('draws areas in proportion', () => {
  const children = [1, 3].map((value) => ({ label: `v${value}`, value }));
  const picture: Picture = { kind: 'treemap', title: 't', root: { label: 'r', children } };
  const [widths, heights] = ['width', 'height'].map((name) => numbers(picture, 'rect', name));
  const areas = (widths ?? []).map((width, index) => width * (heights?.[index] ?? 0));
  expect(Math.max(...areas) / Math.min(...areas)).toBeCloseTo(3, 0);
});

it('draws a curve with gaps, and long ones without what nobody sees', () => {
  const curve = (points: [number, number][]): Picture => ({
    kind: 'line plot',
    title: 't',
    x: {},
    y: {},
    curves: [{ label: 'c', tone: 'hue1', points }],
  });
  const paths = (picture: Picture) =>
    elementsOf(picture).flatMap(({ name, attributes }) =>
      name === 'path' ? [attributes.d ?? ''] : [],
    );
  expect(
    paths(
      curve([
        [0, 1],
        [1, 2],
        [2, Number.NaN],
        [3, 1],
      ]),
    ),
  ).toHaveLength(2);
  const long = Array.from({ length: 50_000 }, (_, x): [number, number] => [
    x,
    x === 777 ? 9 : x % 2,
  ]);
  const [path = ''] = paths(curve(long));
  const ups = path.split('L').map((point) => Number(point.split(' ')[1]));
  expect(ups.length).toBeLessThanOrEqual(4 * WIDTH);
  // The single peak is still there.
  expect(ups.filter((up) => up === Math.min(...ups))).toHaveLength(1);
});

it('has a title in each picture, and a table of its values', () => {
  for (const picture of EVERY_BLOCK.pictures?.() ?? []) {
    const [svg, title] = elementsOf(picture).filter(
      ({ name }) => name === 'svg' || name === 'title',
    );
    expect([svg?.attributes.role, title?.text]).toEqual(['img', picture.title]);
    expect(valuesTable(picture).rows.length).toBeGreaterThan(0);
  }
});

it('maps tensors by layer, without those of no layer', () => {
  const names = [
    'm.layers.1.q.weight',
    'm.layers.0.q.weight',
    'm.layers.10.k.weight',
    'head.weight',
  ];
  expect(
    layerMap(
      't',
      'share',
      names.map((name, value) => ({ name, value })),
    ),
  ).toEqual({
    kind: 'heat map',
    title: 't',
    unit: 'share',
    columns: ['q', 'k'],
    rows: [
      { label: 'layer 0', values: [1, null] },
      { label: 'layer 1', values: [0, null] },
      { label: 'layer 10', values: [null, 2] },
    ],
  });
  expect(layerMap('t', undefined, [{ name: 'head.weight', value: 1 }])).toBeNull();
});
