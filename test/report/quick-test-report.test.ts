import { describe, expect, it } from 'vitest';
import type { QuickTest } from '../../src/check/run-quick-test.js';
import { doctorReport } from '../../src/report/doctor-report.js';
import { quickTestReport, traceReport } from '../../src/report/quick-test/quick-test-report.js';
import { renderCsv } from '../../src/report/render/csv.js';
import { renderTable } from '../../src/report/render/table.js';
import { CPU_CHECK, CPU_ENGINE } from './engine.js';

const result = (given: Partial<QuickTest> = {}) => ({
  schema: 'minimind/quick-test@1' as const,
  file: 'model.yaml',
  family: 'hybrid',
  checkpoint: null,
  mode: 'whole' as const,
  parameters: 275_200,
  twin: null,
  weights: 'random' as const,
  quantized: null,
  ids: 'random' as const,
  batch: 1,
  context: 256,
  seed: 0,
  engine: CPU_ENGINE,
  selfCheck: CPU_CHECK,
  passedOver: [],
  memory: {
    need: { weightBytes: 1e6, activationBytes: 5e5, resultBytes: 1e5, totalBytes: 15e5 },
    usableBytes: 2e10,
    predictedBytes: 15e5,
    peakBytes: 2e8,
    startBytes: 16e7,
  },
  checks: [
    {
      check: 'created' as const,
      verdict: 'passed' as const,
      finding: 'the engine received it',
      measure: { what: 'elements', value: 275_200, limit: 275_200 },
      seconds: 0.5,
    },
    {
      check: 'cache' as const,
      verdict: 'skipped' as const,
      finding: 'one token has nothing to continue',
      seconds: 0,
    },
  ],
  passed: true,
  ...given,
});

const TERMINAL = { width: 80, colourLevel: 0, details: true } as const;
const table = (given?: Partial<QuickTest>, more = {}) =>
  renderTable(quickTestReport({ ...result(given), ...more }, { flat: false }), TERMINAL);

describe('the report of a quick test', () => {
  it('begins with the verdict, the model and the engine', () => {
    expect(table().split('\n').slice(0, 6)).toEqual([
      'model: 1 check passed, 1 skipped',
      '  model   hybrid, 275,200 parameters, random weights (seed 0)',
      '  input   1 × 256 random tokens (seed 0)',
      '  engine  ONNX Runtime 1.30.0 (cpu), 2 threads, self-check error 1.1e-7',
      '  memory  peak 200.0 MB, forward pass 40.0 MB (1.5 MB predicted)',
      '',
    ]);
  });

  it('has a line for each check', () => {
    expect(table()).toContain(
      [
        'check    result   finding',
        '───────  ───────  ─────────────────────────────────',
        'created  ok       the engine received it',
        'cache    skipped  one token has nothing to continue',
      ].join('\n'),
    );
  });

  it('shows failures with their remarks', () => {
    const failed = {
      check: 'created',
      verdict: 'failed',
      finding: 'too much',
      remarks: ['copied'],
      seconds: 0,
    } as const;
    const text = table({ passed: false, checks: [failed] });
    expect(text).toMatch(/^model: FAILED created\n/);
    expect(text).toContain('created  FAILED  too much\n');
    expect(text).toContain('Measurements\n  created  copied');
  });

  it('names given weights and ids, without a seed', () => {
    const given = { weights: 'checkpoint', ids: 'given' } as const;
    const text = table(given, { checkpoint: 'model.pt' });
    expect(text).toContain('weights of model.pt\n  input   1 × 256 given tokens\n');
    expect(text).not.toContain('seed');
  });

  it('reports a scaled-down proxy and its reason at the top', () => {
    const text = table(
      {
        mode: 'twin',
        parameters: 22_143_967_232,
        twin: {
          parameters: 9_438_720,
          changes: [{ path: 'model.num_layers', from: 32, to: 4 }],
          reason: 'memory',
        },
      },
      { checkpoint: 'model.pt' },
    );
    expect(text).toMatch(/^model \(scaled-down proxy\): 1 check passed/);
    expect(text.replace(/\s+/g, ' ')).toContain(
      'proxy 9,438,720 parameters, with random weights: the model needs 1.5 MB in float32, 20.0 GB are available; ' +
        '--full runs it layer by layer',
    );
    expect(text).toMatch(/^model\.num_layers +32 +4$/m);
  });

  it('reports a run layer by layer and skipped engines', () => {
    const text = table({
      mode: 'streamed',
      memory: { ...result().memory, predictedBytes: null },
      passedOver: [
        {
          engine: 'onnx',
          backend: 'cpu',
          device: 'cpu',
          why: 'it is absent',
          suggestion: 'npm install it',
        },
        { engine: 'onnx', backend: 'webgpu', device: 'webgpu', why: 'it found no GPU' },
        { engine: 'tfjs', backend: 'node', device: 'cpu', why: 'it is too old' },
      ],
    }).replace(/\s+/g, ' ');
    expect(text).toContain('one layer in memory at a time');
    expect(text).toContain(
      'faster ONNX Runtime (cpu): it is absent; to fix it: npm install it ' +
        'skipped TensorFlow.js (node): it is too old ',
    );
    expect(text).toContain('1.5 MB predicted for the whole model at once');
  });

  const part = { layer: 'layers.0.mamba', component: 'mamba', times: 2, seconds: 0.0015 } as const;
  const timing = {
    loadSeconds: 0.061,
    warmUps: 1,
    repeats: 20,
    meanSeconds: 0.0106,
    deviationSeconds: 0.0006361,
    minSeconds: 0.0102,
    medianSeconds: 0.9999,
    tokensPerSecond: 24_185.4,
    parts: [part, { ...part, layer: 'norm', component: 'norm', times: 1, seconds: 12.34 }],
  } as const;
  const timed = {
    check: 'timing',
    verdict: 'passed',
    finding: '24,185 tokens/s',
    details: { timing },
    seconds: 1,
  } as const;

  it('shows the time of each part', () => {
    const text = table({ checks: [timed] });
    expect(text).toMatch(/^model: 24,185 tokens\/s\n/);
    expect(text).toContain(
      '  time    10.6 ms ± 0.64 ms per forward pass (20 runs, 61.0 ms to load)\n',
    );
    expect(text).not.toMatch(/^timing/m);
    expect(text).toContain(
      [
        'Forward pass: 10.6 ms ± 0.64 ms',
        '1 × 256 tokens; 20 runs, 61.0 ms to load; median 1.00 s, fastest 10.2 ms.',
      ].join('\n'),
    );
    expect(text).toMatch(/^layers\.\*\.mamba +1\.50 ms +2 +3\.00 ms +0\.024%$/m);
    expect(text).toMatch(/^norm +12\.3 s +1 +12\.3 s +>99\.9% +█{16}$/m);
  });

  it('explains when a run on a graphics card ends', () => {
    const onCard = { ...result().engine, deviceKind: 'cuda' } as const;
    const explanation = 'A run ends when the logits are copied to memory';
    const text = (given: Parameters<typeof table>[0]) => table(given).replace(/\n/g, ' ');
    expect(text({ checks: [timed], engine: onCard })).toContain(explanation);
    expect(text({ checks: [timed] })).not.toContain(explanation);
  });

  it('shows the sum of the parts in addition to the total time', () => {
    expect(table({ checks: [timed] }).replace(/\n/g, ' ')).toContain(
      '12.3 s together. Shares are of this sum.',
    );
  });

  it('leaves out checks and deviation where there are none', () => {
    const once = { ...timing, repeats: 1, deviationSeconds: null };
    const text = table({ checks: [{ ...timed, details: { timing: once } }] });
    expect(text).toMatch(/^model: 24,185 tokens\/s\n/);
    expect(text).toContain('Forward pass: 10.6 ms\n');
    expect(table({ checks: [...result().checks, timed] })).toMatch(
      /^model: 1 check passed, 1 skipped, 24,185 tokens\/s\n/,
    );
  });

  it('shows the costs and savings of float16', () => {
    const logits = {
      largestDifference: 1.87e-4,
      meanDifference: 4.04e-5,
      relativeDifference: 3.4e-4,
      klDivergence: 1.28e-9,
      topAgreement: 1,
    };
    const float16 = {
      logits,
      f16: { weightBytes: 51_600_000, meanSeconds: 0.01 },
      f32: { weightBytes: 103_200_000, meanSeconds: 0.02 },
    };
    const checks = [
      {
        ...result().checks[0],
        check: 'float16' as const,
        verdict: 'passed' as const,
        finding: 'the logits are near',
        measure: { what: 'relative difference', value: 3.4e-4, limit: 0.03 },
        details: { float16 },
        seconds: 1,
      },
    ];
    const engine = { ...result().engine, compute: 'f16' as const };
    const text = table({ engine, checks });
    expect(text.replace(/\n/g, ' ')).toContain('2 threads, products in float16, self-check');
    expect(text).toContain('float16 is 2.0 times as fast as float32\n');
    expect(text).toMatch(/^weights +51\.6 MB +103\.2 MB$/m);
    expect(text).toMatch(/^forward pass +10\.0 ms +20\.0 ms$/m);
    expect(text).toMatch(/^relative difference +0\.034%$/m);
    expect(text).toMatch(/^same top token +100\.0%$/m);
    const csv = renderCsv(quickTestReport(result({ engine, checks }), { flat: true }));
    expect(csv).toContain('float16,passed,the logits are near,relative difference,0.00034,0.03,1');
  });

  it('has plain numbers in CSV', () => {
    const csv = renderCsv(
      quickTestReport(result({ checks: [...result().checks, timed] }), { flat: true }),
    );
    expect(csv).toContain('check,verdict,finding,measured,value,limit,seconds\n');
    expect(csv).toContain('created,passed,the engine received it,elements,275200,275200,0.5\n');
    expect(csv).toContain('cache,skipped,one token has nothing to continue,,,,0\n');
    expect(csv).toContain('timing,passed,"24,185 tokens/s",,,,1');
  });
});

describe('the report of a trace', () => {
  const trace = [
    { name: 'ids', depth: 0, operation: 'token ids', shape: [1, 8], parameters: 0 },
    { name: 'layers.0', depth: 0, operation: 'block', shape: [1, 8, 4], parameters: 0 },
    { name: 'layers.0.ln', depth: 1, operation: 'LayerNorm', shape: [1, 8, 4], parameters: 8 },
    { name: 'shared_srte', depth: 1, operation: 'rows', shape: [1, 8, 4], parameters: 1000 },
  ];
  const loss = [{ name: 'loss', depth: 0, operation: 'mean', shape: [], parameters: 0 }];
  const given = {
    schema: 'minimind/quick-test@1' as const,
    file: 'model.yaml',
    family: 'hybrid',
    batch: 1,
    context: 8,
    trace,
    loss,
  };

  it('is a tree', () => {
    expect(renderTable(traceReport(given, { flat: false, modelWords: [] }), TERMINAL)).toBe(
      [
        'model: 4 steps from ids to logits for 1 × 8 tokens, 1,008 parameters',
        '',
        'step           operation  shape      parameters',
        '─────────────  ─────────  ─────────  ──────────',
        'ids            token ids  [1, 8]',
        'layers.0       block      [1, 8, 4]',
        '  ln           LayerNorm  [1, 8, 4]           8',
        '  shared_srte  rows       [1, 8, 4]       1,000',
        '',
        'Loss of a training',
        'step  operation  shape',
        '────  ─────────  ─────',
        'loss  mean       []',
        '',
        'Next: minimind draw model.yaml',
      ].join('\n'),
    );
  });

  it('has full names in CSV', () => {
    const csv = renderCsv(traceReport(given, { flat: true, modelWords: [] }));
    expect(csv.split('\n')[3]).toBe('layers.0.ln,LayerNorm,"[1, 8, 4]",8,1');
    expect(csv.split('\n')[5]).toBe('loss,mean,[],0,0');
  });
});

describe('the report of the doctor', () => {
  const usable = {
    engine: 'onnx',
    backend: 'cpu',
    device: 'cpu',
    package: 'onnxruntime-node',
    version: '1.30.0',
    problem: null,
    remedy: null,
    info: result().engine,
    selfCheck: result().selfCheck,
    productFlops: 189e9,
  } as const;
  const missing = {
    ...usable,
    engine: 'tfjs',
    backend: 'node',
    version: null,
    problem: 'it is not installed',
    remedy: 'npm install it',
    info: null,
    selfCheck: null,
    productFlops: null,
  } as const;
  const machine = {
    schema: 'minimind/doctor@1' as const,
    node: '20.20.2',
    platform: 'linux-x64',
    processors: 1,
    availableBytes: 24e9,
    threads: 1,
  };
  const adapters = { adapters: null, adapterFindings: null };
  const text = (engines: readonly (typeof usable | typeof missing)[]) =>
    renderTable(doctorReport({ ...machine, ...adapters, engines }), { ...TERMINAL, width: 120 });

  it('has a line for each engine, and suggestions for unusable ones', () => {
    expect(text([usable, missing])).toBe(
      [
        'Models run here on ONNX Runtime (cpu), the fastest of 1 usable engine',
        '  machine  linux-x64, 1 processor, 24.0 GB of free memory, Node.js 20.20.2',
        '',
        'engine         backend  version  result   threads   error  512³ product',
        '─────────────  ───────  ───────  ───────  ───────  ──────  ────────────',
        'ONNX Runtime   cpu      1.30.0   usable         2  1.1e-7   189 GFLOP/s',
        'TensorFlow.js  node     –        missing        –       –             –',
        '',
        'Unusable engines',
        '  TensorFlow.js (node)  it is not installed; to fix it: npm install it',
      ].join('\n'),
    );
  });

  it('reports that no engine runs', () => {
    expect(text([{ ...missing, version: null }])).toMatch(/^No engine can run models here\n/);
  });
});
