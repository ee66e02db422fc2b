/**
 * Outputs of conversions as inputs of the next commands of a user. `npm run test:conversions` runs every combination,
 * `npm test` one of each kind.
 */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { inPackage, readJson } from '../../fixtures.js';
import { runHere } from '../../run-here.js';

const INPUTS = ['per-layer-learnable', 'shared-learnable', 'shared-lowrank-tied', 'shared-sincos'];
const LAYOUTS = [[], ['shared'], ['low-rank', '--rank', '3'], ['sincos'], ['per-layer']];
const OUTPUTS = ['out', 'out.safetensors', 'out.pt'];
const DTYPES = ['keep', 'f16', 'bf16'];
const TIES = [undefined, 'embed', 'head', 'mean'];

interface Case {
  readonly input: string;
  readonly output: string;
  readonly flags: readonly string[];
}

const all: Case[] = INPUTS.flatMap((input) =>
  LAYOUTS.flatMap(([to, ...rank]) =>
    OUTPUTS.flatMap((output) =>
      DTYPES.flatMap((dtype) =>
        TIES.map((tie) => ({
          input,
          output,
          flags: [
            ...(to === undefined ? [] : ['--to', to, ...rank]),
            ...(dtype === 'keep' ? [] : ['--dtype', dtype]),
            ...(tie === undefined ? [] : ['--tie', tie]),
          ],
        })),
      ),
    ),
  ),
).filter(({ flags }) => flags.length > 0);

/** Ranks, merges and rows, separate because they would make the product above too large. */
const MORE_FLAGS = [
  ['--to', 'low-rank', '--rank', '1'],
  ['--to', 'low-rank', '--rank', '7'],
  ['--to', 'low-rank', '--max-error', '0.99'],
  ['--to', 'shared', '--merge', 'first'],
  ['--to', 'low-rank', '--rank', '2', '--merge', 'layer:1'],
  ['--to', 'shared', '--max-positions', '24'],
  ['--to', 'low-rank', '--rank', '2', '--max-positions', '80', '--extend', 'repeat'],
];
const MORE_INPUTS = [...INPUTS, 'eps-global-gate-clipped', 'no-alignment-pyramidal'];

for (const flags of MORE_FLAGS) {
  for (const input of MORE_INPUTS) for (const output of OUTPUTS) all.push({ input, output, flags });
}

// 83 has no common factor with the numbers of choices, so the sample covers all of them.
const chosen =
  process.env.MINIMIND_CONVERSIONS === 'all' ? all : all.filter((_, index) => index % 83 === 7);

/** Copy of a fixture with its config next to the weights. */
function inputFolder(name: string): string {
  const { config } = readJson(`fixtures/hybrid/${name}/case.json`) as { config: object };
  const folder = folderOf({ 'config.yaml': Buffer.from(JSON.stringify({ model: config })) });
  const weights = 'model.safetensors';
  fs.copyFileSync(inPackage(`fixtures/hybrid/${name}/${weights}`), path.join(folder, weights));
  return folder;
}

/** Refusals of conversions without a change. */
const NOTHING_TO_DO = /is (\S+) already|tied already/;

describe('the output of a conversion', () => {
  it('is tested for every input, layout and container', () => {
    const used = new Set(chosen.flatMap(({ input, output, flags }) => [input, output, ...flags]));
    const layouts = LAYOUTS.flatMap(([to]) => to ?? []);
    const missing = [...INPUTS, ...OUTPUTS, ...layouts].filter((each) => !used.has(each));
    expect(missing).toEqual([]);
  });

  it.each(chosen)(
    'works in the next commands: $input $flags into $output',
    async ({ input, output, flags }) => {
      const folder = folderOf({});
      const run = async (...args: string[]) => {
        const { code, stdout, stderr } = await runHere([...args, '-q', '--json'], { cwd: folder });
        return { code, stdout, stderr };
      };
      const converted = await run('convert-checkpoint', inputFolder(input), output, ...flags);
      if (converted.code !== 0) {
        expect(converted.code).toBe(2);
        expect(converted.stdout).toMatch(NOTHING_TO_DO);
        return;
      }
      const next = [
        ['verify', output],
        ['quick-test', output, '--context', '12'],
        ['export', output, '--save', 'model.onnx'],
        ['convert-checkpoint', output, 'again', '--dtype', 'f32', '--check'],
        ['verify', 'again'],
      ];
      for (const args of next) expect({ args, ...(await run(...args)) }).toMatchObject({ code: 0 });
    },
  );
});
