import { describe, expect, it } from 'vitest';
import {
  compareProjectors,
  leastRatioText,
  loadTeachers,
} from '../../../src/convert/kv-projector/costs.js';
import {
  adapterParameters,
  hiddenOf,
  moduleName,
  parseTeacher,
  recommendationFor,
  sizeInName,
  sizeOfModel,
} from '../../../src/convert/kv-projector/projector.js';
import type { Figure } from '../../../src/model/budget/figure.js';
import { projectorParamsReport } from '../../../src/report/kv-projector/kv-projector.js';
import { render } from '../../../src/report/render/render.js';
import { evaluateIndependently } from '../../model/budget/independent.js';
import { runHere } from '../../run-here.js';

const params = async (...args: string[]) => {
  const run = await runHere(['kv-projector', 'params', ...args, '--json']);
  return { ...run, answer: JSON.parse(run.stdout) };
};

/** Counts published with the KVDimensionProjector. */
const PUBLISHED = [
  { teacher: 5120, student: 1536, ratio: 1, perAdapter: 34_095_616, perTeacher: 68_191_232 },
  { teacher: 3584, student: 2048, ratio: 0.5, perAdapter: 10_103_552, perTeacher: 20_207_104 },
  { teacher: 8192, student: 2048, ratio: 2, perAdapter: 167_806_976, perTeacher: 335_613_952 },
  { teacher: 5120, student: 1536, ratio: null, perAdapter: 7_864_320, perTeacher: 15_728_640 },
];

describe('parameters', () => {
  it.each(PUBLISHED)(
    '$teacher → $student, ratio $ratio',
    ({ teacher, student, ratio, perAdapter, perTeacher }) => {
      const teachers = [{ name: 'a', width: teacher, size: null }];
      const { projectors } = compareProjectors(teachers, student, [ratio ?? 1]);
      const [costs] = projectors[ratio === null ? 0 : 1]?.teachers ?? [];
      expect(costs?.perAdapter.value).toBe(perAdapter);
      expect(costs?.perTeacher.value).toBe(perTeacher);
    },
  );

  it.each([
    [0.5, 17],
    [2, 68],
  ])('ratio %d of 5120 → 1536 is about %dM', (ratio, millions) => {
    const sizes = { teacherWidth: 5120, studentWidth: 1536, hidden: hiddenOf(5120, ratio) };
    const { value } = adapterParameters({ kind: 'elastic', ...sizes });
    expect(Math.round(Number(value) / 1e6)).toBe(millions);
  });

  it.each([
    [
      5120,
      1536,
      0.5,
      17_053_696,
      /^one adapter \(17,053,696\), published per teacher, which has two/,
    ],
    [5120, 1536, 1, 34_095_616, /^one adapter \(34,095,616\), published per teacher/],
    [5120, 1536, 2, 68_179_456, /^one adapter \(68,179,456\), published per teacher/],
    [3584, 2048, 0.5, 17_053_696, /^one adapter of 5,120 → 1,536, not two of 3,584 → 2,048$/],
    [5120, 1536, null, 7_865_856, /^one adapter with a bias of 1,536; saved ones have none$/],
    [5120, 1024, null, undefined, undefined],
    [5120, 1536, 0.75, undefined, undefined],
  ])('%d → %d, ratio %d: the published figure and the reason for its difference', (...row) => {
    const [width, student, ratio, exact, reason] = row;
    const { projectors } = compareProjectors([{ name: 'a', width, size: null }], student, [
      ratio ?? 1,
    ]);
    const published = projectors[ratio === null ? 0 : 1]?.teachers[0]?.published;
    if (exact === undefined || reason === undefined) expect(published).toBeNull();
    else {
      expect(published?.reason).toMatch(reason);
      // Published to two digits, or exactly.
      expect(Math.abs((published?.parameters ?? 0) / exact - 1)).toBeLessThan(0.004);
    }
  });

  it('of a linear adapter include the bias of the published verification', () => {
    const shape = { kind: 'linear', teacherWidth: 5120, studentWidth: 1536, bias: true } as const;
    expect(adapterParameters(shape).value).toBe(7_865_856);
  });

  it('use a hidden width that is rounded down, like int()', () => {
    expect(hiddenOf(15, 0.5)).toBe(7);
    expect(hiddenOf(10, 0.3)).toBe(3);
  });
});

describe('names and sizes of teachers', () => {
  it('replace "." and "-" by "_"', () => {
    expect(moduleName('Llama-3.1-8B')).toBe('Llama_3_1_8B');
    expect(moduleName('__proto__')).toBe('__proto__');
  });

  it.each([
    ['Qwen2-14B:5120x40', { name: 'Qwen2-14B', width: 5120, layers: 40 }],
    ['a:b:7', { name: 'a:b', width: 7 }],
    ['__proto__:7x1', { name: '__proto__', width: 7, layers: 1 }],
    ['configs/a.yaml', undefined],
    ['a:7x', undefined],
  ])('are read from %s', (text, expected) => {
    expect(parseTeacher(text)).toEqual(expected);
  });

  it.each(['a:0', 'a:7x0', 'a:99999999999999999999'])('are refused: %s', (text) => {
    expect(() => parseTeacher(text)).toThrow('size');
  });

  it.each([
    ['Qwen2-14B', 14e9],
    ['Qwen2.5-0.5B-Instruct', 0.5e9],
    ['Llama-3.1-8B', 8e9],
    ['pythia-160m', 160e6],
    ['llama7b', 7e9],
    ['Mixtral-8x7B-v0.1', 56e9],
    ['Qwen3-30B-A3B', 30e9],
    ['Qwen1.5-MoE-A2.7B', undefined],
    ['teacher', undefined],
    ['Qwen2-14Base', undefined],
  ])('give the parameters of %s', (name, parameters) => {
    expect(sizeInName(name)?.parameters).toBe(parameters);
  });

  // 0.5 under 14B, 1.0 for 14–30B, 2.0 for 30–70B.
  it.each([
    [7e9, 0.5, false],
    [13e9, 0.5, false],
    [13_960_238_080, 0.5, false],
    [13_999_999_999, 0.5, false],
    [14e9, 1, false],
    [29_700_000_000, 1, false],
    [29_999_999_999, 1, false],
    [30e9, 2, false],
    [70_553_706_496, 2, false],
    [405e9, 2, true],
  ])('with %d parameters give ratio %d', (parameters, ratio, isBeyond) => {
    expect(recommendationFor({ parameters, from: 'name' })).toEqual({ ratio, isBeyond });
  });

  it.each([
    // Phi-3-medium has 13,960,238,080 parameters, and is published as a model of 14B.
    ['phi-3-medium-14b', 13_960_238_080, 1, 'name'],
    ['phi-3-medium', 13_960_238_080, 0.5, 'config'],
    ['Qwen2.5-14B', 14_770_033_664, 1, 'config'],
    // The name is that of another model, or states the same size.
    ['distilled-from-14b', 1_000_000_000, 0.5, 'config'],
    ['Llama-3.1-8B', 8_030_261_248, 0.5, 'config'],
  ])('for %s, counted as %d, give ratio %d by the %s', (name, parameters, ratio, from) => {
    const size = sizeOfModel(name, parameters);
    expect(size.from).toBe(from);
    expect(recommendationFor(size).ratio).toBe(ratio);
  });
});

describe('minimind kv-projector params', () => {
  it('sums over teachers, each with the ratio for its size', async () => {
    const { answer } = await params(
      '--teacher',
      'Qwen2-7B:3584x28',
      '--teacher',
      'Llama-3-70B:8192x80',
      '--student',
      '2048',
      '--ratio',
      'recommended',
    );
    const [, elastic] = answer.projectors;
    expect(elastic.total.parameters.value).toBe(20_207_104 + 335_613_952);
    expect(elastic.total.bytes.bf16.value).toBe(2 * (20_207_104 + 335_613_952));
    // Two FLOPs for each of K and V, layer and weight of the two matrices.
    const first = 2 * 2 * 28 * (3584 * 1792 + 1792 * 2048);
    expect(elastic.teachers[0].flopsPerToken.value).toBe(first);
    expect(elastic.total.flopsPerToken.value).toBe(first + 4 * 80 * (8192 * 16384 + 16384 * 2048));
  });

  it('takes width, blocks and size from a config', async () => {
    const { answer } = await params(
      '--teacher',
      'fixtures/hf-configs/llama-3.1-8b/config.json',
      '--student',
      '1536',
    );
    expect(answer.teachers).toEqual([
      {
        name: 'llama-3.1-8b',
        width: 4096,
        layers: 32,
        size: { parameters: 8_030_261_248, from: 'config' },
        recommended: { ratio: 0.5, isBeyond: false },
      },
    ]);
  });

  it('has figures that follow from their formulas', async () => {
    const { answer } = await params('--teacher', 'a-20B:100x3', '--student', '7');
    const figures: Figure[] = [];
    JSON.stringify(answer, (_, value) => {
      if (value?.formula) figures.push(value);
      return value;
    });
    expect(figures.length).toBeGreaterThan(30);
    for (const { formula, inputs, value } of figures) {
      expect(evaluateIndependently(formula, inputs)).toBe(BigInt(value));
    }
  });

  it('recommends no ratio for an unknown size', async () => {
    const { answer } = await params('--teacher', 'a:64', '--teacher', 'b-7B:64', '--student', '8');
    expect(answer.withoutSize).toEqual(['a']);
    expect(answer.projectors.map(({ ratio }: { ratio: unknown }) => ratio)).toEqual([
      null,
      0.5,
      1,
      2,
    ]);
  });

  it('calls a folder by its name', async () => {
    const { teachers } = await loadTeachers(['fixtures/hf-configs/qwen2.5-32b']);
    expect(teachers[0]).toMatchObject({ name: 'qwen2.5-32b', width: 5120, layers: 64 });
  });

  it('knows the presets', async () => {
    const { teachers } = await loadTeachers(['MiniMind2-Small']);
    // https://github.com/jingyaogong/minimind: 8 layers of 512
    expect(teachers[0]).toMatchObject({ name: 'minimind2-small', width: 512, layers: 8 });
  });

  it.each([
    [['Qwen2-14B'], 'has no sizes and is not a file'],
    [['a:1', 'a:2'], 'occurs twice'],
    [['a.b:1', 'a-b:2'], '"a.b" and "a-b" are both called "a_b"'],
  ])('refuses the teachers %j', async (written, message) => {
    await expect(loadTeachers(written)).rejects.toThrow(message);
  });

  it('refuses a ratio that leaves no width', () => {
    const teachers = [{ name: 'a', width: 1, size: null }];
    expect(() => compareProjectors(teachers, 8, [0.5])).toThrow(
      'expected a ratio with a hidden width of at least 1',
    );
  });

  it('suggests a ratio that leaves a width for every teacher', () => {
    const teachers = [98, 49].map((width) => ({ name: `${width}`, width, size: null }));
    const refused = () => compareProjectors(teachers, 8, [0.001]);
    expect(refused).toThrow(
      expect.objectContaining({ suggestion: 'write a ratio of 0.021 or more' }),
    );
    expect(compareProjectors(teachers, 8, [0.021]).projectors[1]?.teachers[1]?.hidden).toBe(1);
    for (let width = 1; width < 5000; width++) {
      const text = leastRatioText(width);
      expect(text).toMatch(/^\d*\.?\d+$/);
      expect(hiddenOf(width, Number(text))).toBe(1);
    }
    expect(hiddenOf(2 ** 31, Number(leastRatioText(2 ** 31)))).toBe(1);
  });

  it('explains the omitted f32 at 80 columns', async () => {
    const { teachers } = await loadTeachers(['Qwen2-7B:3584x28']);
    const report = projectorParamsReport(compareProjectors(teachers, 2048, [0.5]), {
      explain: false,
    });
    const text = await render(report, 'table', {
      width: 80,
      colourLevel: 0,
      details: true,
    });
    // The column of f32 does not fit.
    expect(text.replace(/\s+/g, ' ')).toContain('f32 takes twice the bytes');
  });

  it.each([
    [['--teacher', 'a:8', '--student', '8', '--ratio', '-1'], 'expected a number or recommended'],
    [['--student', '8'], '--teacher is required'],
  ])('refuses %j', async (args, message) => {
    const { code, answer } = await params(...args);
    expect(code).toBe(2);
    expect(answer.message).toContain(message);
  });

  it.each([
    [120, 'elastic, ratio 0.5', ['hidden', 'f32', 'per adapter']],
    [80, 'elastic 0.5', ['per adapter', '20,207,104']],
    [64, 'recommended', ['20,207,104']],
  ])('fits %d columns', async (width, label, parts) => {
    const { teachers } = await loadTeachers(['Qwen2-7B:3584x28', 'Llama-3-70B:8192x80']);
    const comparison = compareProjectors(teachers, 2048, [0.5, 'recommended']);
    const report = projectorParamsReport(comparison, { explain: false });
    const text = await render(report, 'table', { width, colourLevel: 0 });
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(width);
    for (const part of [label, ...parts]) expect(text).toContain(part);
    // The table is not split into lines of `title: value`.
    expect(text).not.toMatch(/^projector: /m);
  });

  it('escapes the name of a teacher', async () => {
    const teacher = '\u001b[31mx\u202e:8';
    const { stdout } = await runHere([
      ...['kv-projector', 'params', '--teacher', teacher, '--student', '4'],
    ]);
    expect(stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(stdout).toContain('\\x1b[31mx\\u{202e}');
  });
});
