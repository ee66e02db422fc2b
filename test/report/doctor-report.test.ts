import { describe, expect, it } from 'vitest';
import type { GraphicsAdapter } from '../../src/engine/adapters/adapters.js';
import type { DoctorResult, SurveyEntry } from '../../src/engine/select/survey.js';
import { doctorReport } from '../../src/report/doctor-report.js';
import { renderCsv } from '../../src/report/render/csv.js';
import { renderTable } from '../../src/report/render/table.js';

const LLVMPIPE: GraphicsAdapter = {
  name: 'llvmpipe (LLVM 15.0.6, 256 bits)',
  vendor: 'Mesa',
  isSoftware: true,
  memoryBytes: null,
  maxBufferBytes: 4_294_967_295,
  maxBindingBytes: 134_217_728,
  hasFloat16: true,
  source: 'webgpu',
};
const H200: GraphicsAdapter = {
  name: 'NVIDIA H200',
  vendor: 'NVIDIA',
  isSoftware: false,
  memoryBytes: 143_771 * 2 ** 20,
  maxBufferBytes: null,
  maxBindingBytes: null,
  hasFloat16: null,
  source: 'nvidia-smi',
};
const INSTALL = {
  message: 'only the package webgpu knows of limits, float16 and software adapters',
  suggestion: 'npm install webgpu@0.6.2',
};

/** A run on the first adapter. */
const RAN: SurveyEntry = {
  engine: 'onnx',
  backend: 'webgpu',
  device: 'webgpu',
  package: 'onnxruntime-node',
  version: '1.30.0',
  problem: null,
  remedy: null,
  info: {
    name: 'onnx',
    version: '1.30.0',
    provider: 'webgpu',
    device: LLVMPIPE.name,
    deviceKind: 'webgpu',
    isSoftware: true,
    memoryBytes: null,
    threads: 1,
    compute: 'f32',
  },
  selfCheck: { difference: 2.1e-7, limit: 1e-4, passed: true },
  productFlops: 5.141e9,
};

const DOCTOR: DoctorResult = {
  schema: 'minimind/doctor@1',
  threads: 1,
  node: '20.20.2',
  platform: 'linux-x64',
  processors: 1,
  availableBytes: 24e9,
  engines: [RAN],
  adapters: null,
  adapterFindings: null,
};

const report = (
  adapters: DoctorResult['adapters'],
  adapterFindings: DoctorResult['adapterFindings'] = [],
) => doctorReport({ ...DOCTOR, adapters, adapterFindings });

/** Output after the engines. */
function text(width: number, ...given: Parameters<typeof report>): string {
  const all = renderTable(report(...given), { width, colourLevel: 0, details: true });
  return /^Graphics cards[\s\S]*/m.exec(all)?.[0] ?? '';
}

describe('the first screen of the doctor', () => {
  const missing: SurveyEntry = {
    ...RAN,
    ...{ backend: 'cpu', device: 'cpu', info: null, selfCheck: null, productFlops: null },
    ...{ version: null, problem: 'it is not installed', remedy: 'npm install it' },
  };
  const screen = (entry: SurveyEntry) => {
    const engines = [{ ...RAN, problem: 'it crashed' }, entry];
    return renderTable(doctorReport({ ...DOCTOR, engines }), { width: 80, colourLevel: 0 });
  };

  it('says how to install the fast engine', () => {
    expect(screen(missing)).toContain(
      '\n  faster   ONNX Runtime (cpu): it is not installed; to fix it: npm install it\n',
    );
  });

  it.each([
    ['is installed', { version: '1.30.0', problem: 'it crashed' }],
    ['is for a card', { device: 'cuda', backend: 'cuda' }],
    ['is another', { engine: 'tfjs', backend: 'node' }],
  ] as const)('says nothing of an engine that %s', (_, changes) => {
    expect(screen({ ...missing, ...changes })).not.toContain('faster');
  });
});

describe('the graphics adapters of the doctor', () => {
  it('have a line each', () => {
    expect(text(120, [LLVMPIPE, H200], [INSTALL])).toBe(
      [
        'Graphics cards',
        'adapter                           vendor  kind         memory   buffer    binding  f16   error  512³ product  source',
        '────────────────────────────────  ──────  ────────  ─────────  ───────  ─────────  ───  ──────  ────────────  ──────────',
        'llvmpipe (LLVM 15.0.6, 256 bits)  Mesa    software          –  4.0 GiB  128.0 MiB  yes  2.1e-7  5.14 GFLOP/s  webgpu',
        'NVIDIA H200                       NVIDIA  card      140.4 GiB        –          –  –         –             –  nvidia-smi',
        '',
        '→ only the package webgpu knows of limits, float16 and software adapters: npm install webgpu@0.6.2',
      ].join('\n'),
    );
  });

  it('fit on a narrow terminal', () => {
    const card = { ...H200, ...{ maxBufferBytes: 2 ** 32 - 1, maxBindingBytes: 2 ** 31 - 4 } };
    const both = { ...card, hasFloat16: true, source: 'webgpu, nvidia-smi' };
    const lines = text(80, [both, LLVMPIPE], [INSTALL]).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(lines[1]).toMatch(/^adapter +vendor +kind +memory +buffer +binding +f16 +source$/);
  });

  it('are reported as missing, with the places searched', () => {
    const message = 'there is no graphics card: no render node of one in /sys/class/drm';
    expect(text(120, [], [{ message }, INSTALL])).toBe(
      ['Graphics cards', `→ ${message}`, `→ ${INSTALL.message}: ${INSTALL.suggestion}`].join('\n'),
    );
  });

  it('are left out when they were not searched', () => {
    expect(text(120, null, null)).toBe('');
  });

  it('are named in the answer', () => {
    const named = (...given: Parameters<typeof report>) =>
      /^ {2}graphics +(.*)$/m.exec(
        renderTable(report(...given), { width: 80, colourLevel: 0 }),
      )?.[1];
    expect(named([LLVMPIPE, H200])).toBe(
      'llvmpipe (LLVM 15.0.6, 256 bits) (software), NVIDIA H200',
    );
    expect(named([])).toBe('no graphics card found');
    expect(named(null, null)).toBeUndefined();
  });
});

describe('the engines of the doctor', () => {
  it('have exact numbers in CSV', () => {
    expect(renderCsv(report([LLVMPIPE]))).toBe(
      [
        'engine,backend,version,verdict,threads,difference,product_flops,problem',
        'onnx,webgpu,1.30.0,usable,1,2.1e-7,5141000000,',
      ].join('\n'),
    );
  });
});
