/** Converts the flags of `minimind convert-checkpoint` to a request: places, settings, limits. */
import fs from 'node:fs';
import path from 'node:path';
import { usageError } from '../../base/errors.js';
import { freeName } from '../../base/files/file-system.js';
import { type NextLine, nextCommand } from '../../base/text/setting.js';
import { percentText } from '../../base/text/units.js';
import { containerOf } from '../../checkpoint/formats.js';
import { quote } from '../../config/quote.js';
import {
  CONVERTED_DTYPES,
  QUANTIZATION_GROUPS,
  QUANTIZATIONS,
} from '../../convert/conversion/conversion-choices.js';
import type { ConversionResult } from '../../convert/conversion/conversion-result.js';
import type { Proof } from '../../convert/conversion/execute/check-output.js';
import type { ConversionRequest } from '../../convert/conversion/job.js';
import { onlyOneInFolder } from '../../input/model-input/locate.js';
import { exceedsBound } from '../../report/convert/convert-report.js';
import { LineMistake, pasteable } from '../line/line-mistake.js';
import type { ConvertFlags } from './convert-flags.js';
import { exceededLogits } from './thresholds.js';

/** Paths of input and output. */
interface ConversionPlaces {
  readonly in: string;
  readonly out: string;
  /** Whether the input is that of the working folder. */
  readonly isFound: boolean;
}

/**
 * Input and output. One alone is the output, unless it exists.
 * @param argv Words of the command line, for advice.
 * @throws UserError when one is missing.
 */
export function conversionPlaces(
  first: string | undefined,
  second: string | undefined,
  argv: readonly string[],
): ConversionPlaces {
  if (first !== undefined && second !== undefined) {
    return { in: first, out: second, isFound: false };
  }
  if (first !== undefined && fs.existsSync(first)) {
    const out = outputName(first, argv);
    const words = argv.flatMap((word) => (word === first ? [word, out] : word));
    throw new LineMistake(`expected IN and OUT, found only ${quote(first)}`, [
      { words: ['convert-checkpoint', ...words] },
    ]);
  }
  const out = first ?? freeName('shared.safetensors');
  const rest = first === undefined ? argv : argv.filter((word) => word !== first);
  const line = (found = 'model.pt') => pasteable(['convert-checkpoint', found, out, ...rest]);
  const found = onlyOneInFolder('checkpoint', line);
  if (first === undefined) throw usageError('expected OUT, found nothing', `write ${line(found)}`);
  return { in: found, out: first, isFound: true };
}

/** Flags of a conversion, and names of their outputs. */
const NAMED: readonly (readonly [flag: string, name: string])[] = [
  ['merge-lora', 'merged'],
  ['dequantize', 'plain'],
  ['shard-size', 'shards'],
  ['tie', 'tied'],
];

/** A free name for the output of a conversion: with the type of its weights, and the ending of its container. */
function outputName(input: string, argv: readonly string[]): string {
  const valueIn = (name: string) => {
    const at = argv.findIndex((word) => word.split('=', 1)[0] === `--${name}`);
    const [, inline] = argv[at]?.split(/=(.*)/s) ?? [];
    return at < 0 ? undefined : (inline ?? argv[at + 1])?.toLowerCase();
  };
  const { dir, base } = path.parse(input);
  const ending = path.extname(base);
  const isFile = containerOf(ending) !== undefined;
  const name = isFile ? base.slice(0, -ending.length) : base;
  const type = valueIn('quantize') ?? valueIn('dtype');
  const container = valueIn('container') ?? (/^q\d_/.test(type ?? '') ? 'gguf' : undefined);
  const [, named] =
    NAMED.find(([flag]) => valueIn(flag) !== undefined || argv.includes(`--${flag}`)) ?? [];
  const suffix = type ?? valueIn('to') ?? named ?? (container ? '' : 'shared');
  // Packed weights and shards are those of a folder.
  const isFolder = valueIn('quantize') !== undefined || valueIn('shard-size') !== undefined;
  const own = container ? `.${container}` : isFile && !isFolder ? ending : '';
  return freeName(path.join(dir, `${name}${suffix && `-${suffix}`}${own}`));
}

/** The settings of a conversion, from flags. */
export function conversionSettings(
  flags: ConvertFlags,
): Omit<ConversionRequest, 'checkpoint' | 'out' | 'display' | 'warn'> {
  const { target, merge, rank, extend, tie, dequantize, saturate, dialect, heads } = flags;
  const { container, config, family, set, seed, engine, threads } = flags;
  const { resume, check, prove, device, context, output, force } = flags;
  return {
    ...{ target, merge, rank, extend, tie, dequantize, saturate, dialect, heads },
    ...{ container, config, family, set, seed, engine, threads },
    ...{ resume, check, prove, device, context, output, force },
    layout: flags.to,
    dtype: CONVERTED_DTYPES[flags.dtype],
    quantize: flags.quantize && QUANTIZATIONS[flags.quantize],
    group: flags.group && QUANTIZATION_GROUPS[flags.group],
    maxError: flags['max-error'],
    maxPositions: flags['max-positions'],
    shardSize: flags['shard-size'],
    maxMemory: flags['max-memory'],
    mergeLora: flags['merge-lora'],
    imatrix: flags.imatrix,
    noConfig: flags['no-config'],
    dryRun: flags['dry-run'],
  };
}

/** Lines about the limits that a result exceeds. */
export const exceededLimits = (flags: ConvertFlags, result: ConversionResult): string[] => [
  ...exceededError(result, flags['max-error']),
  ...(result.proof?.against ? exceededLogits(flags, result.proof.against.logits) : []),
];

function exceededError(result: ConversionResult, most: number | undefined): string[] {
  if (!exceedsBound(result)) return [];
  const error = percentText(result.srte?.relativeError ?? null);
  const bound = percentText(most ?? null);
  return [`stored SRTE error ${error} exceeds --max-error ${bound}; use a wider --dtype`];
}

/**
 * The command line of a dry run without `--dry-run`; undefined if it would be refused, which the notes of the plan
 * explain.
 */
export const realRun = (
  out: string,
  { force }: Pick<ConvertFlags, 'force'>,
  argv: readonly string[],
): NextLine | undefined =>
  !force && fs.existsSync(out)
    ? undefined
    : nextCommand(
        'convertCheckpoint',
        argv.filter((word) => word !== '--dry-run'),
      );

/** Exit codes of a requested proof. One that could not be made is not an error of the input. */
export const PROOF_EXIT_CODES = {
  same: 0,
  differs: 0,
  failed: 1,
  skipped: 3,
} as const satisfies Record<Proof['verdict'], number>;
