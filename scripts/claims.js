// Writes docs/claims.md: claims of published texts beside what the commands find. With --check it compares only.
//
// docs/claims.yaml has the claims: `claimed` as printed, the `command`, and in its JSON the `value`, a path with
// `[key=value]` for an entry of a list; `over` divides by another value and `less` subtracts one, of the `other` command
// if there is one.
// `unlike` says that the claim compares different things.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DATA = path.join(ROOT, 'docs/claims.yaml');
export const PAGE = path.join(ROOT, 'docs/claims.md');

/** Units of printed numbers, and their factors. */
const UNITS = {
  '': 1,
  K: 1e3,
  M: 1e6,
  B: 1e9,
  '%': 1e-2,
  '×': 1,
  bytes: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  FLOP: 1,
  GFLOP: 1e9,
  TFLOP: 1e12,
  ms: 1e-3,
};

/** A number as printed: `22.144B`, `about 7B`, `38.8 %`, `70,272 bytes`. */
function printed(text) {
  const [, about, sign, digits, unit] =
    /^(about |~)?([+−])?([\d,]+(?:\.\d+)?(?:e\d+)?) ?(\D*)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (factor === undefined) throw new Error(`docs/claims.yaml: ${text} is no number with a unit`);
  const plain = digits.replaceAll(',', '');
  const [mantissa, exponent = '0'] = plain.split('e');
  const decimals = mantissa.split('.')[1]?.length ?? 0;
  const value = Number(plain) * factor * (sign === '−' ? -1 : 1);
  const lastDigit = 10 ** (Number(exponent) - decimals) * factor;
  // An approximate number is right within a tenth, an integer without unit exactly.
  const isExact = decimals === 0 && factor === 1 && unit !== '×';
  const tolerance = about ? value / 10 : isExact ? 0 : lastDigit / 2;
  return { value, tolerance: tolerance * (1 + 1e-9), unit, factor, decimals };
}

const integers = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** Our value in the unit of the claim. Counts and bytes in full. */
function shown(value, { unit, factor, decimals }) {
  if (['', 'K', 'M', 'B'].includes(unit)) return integers.format(value);
  const digits = unit === 'bytes' ? 0 : Math.max(decimals, value / factor < 10 ? 2 : 1);
  const text = new Intl.NumberFormat('en-US', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: digits,
  }).format(value / factor);
  return unit === '%' ? `${text}%` : `${text} ${unit}`;
}

function verdictOf(claimed, value) {
  if (Math.abs(claimed.value - value) <= claimed.tolerance) return 'right';
  const ratio = claimed.value / value;
  const integer = claimed.tolerance === 0 && Math.abs(ratio - 1) < 1e-3;
  if (integer)
    return `${integers.format(Math.abs(claimed.value - value))} too ${ratio > 1 ? 'high' : 'low'}`;
  if (ratio >= 1.5) return `${ratio.toPrecision(3)} × too high`;
  if (ratio <= 1 / 1.5) return `${(1 / ratio).toPrecision(3)} × too low`;
  return `${Math.abs(100 * (ratio - 1)).toPrecision(2)}% too ${ratio > 1 ? 'high' : 'low'}`;
}

/** The number at a path of an answer: `rows[id=shared].parameters`. */
function at(answer, place, where) {
  let found = answer;
  for (const [, key, listKey, listValue] of place.matchAll(
    /([^.[\]]+)?(?:\[([^=\]]+)=([^\]]+)\])?\.?/g,
  )) {
    if (key !== undefined) found = found?.[key];
    if (listKey !== undefined) found = found?.find((entry) => String(entry[listKey]) === listValue);
  }
  if (typeof found === 'number') return found;
  throw new Error(`docs/claims.yaml: ${where} has no number at ${place}`);
}

const escaped = (text) => text.replaceAll('|', '\\|');

/** @param run Gives the JSON answer of a command line. */
export async function claimsPage(run) {
  const { sections } = parse(readFileSync(DATA, 'utf8'));
  const answers = new Map();
  const answerOf = async (command) => {
    if (!answers.has(command)) answers.set(command, await run([...wordsOf(command), '--json']));
    return answers.get(command);
  };
  let [count, right] = [0, 0];
  const parts = [];
  for (const { title, about, claims } of sections) {
    const rows = [];
    for (const {
      claim,
      claimed,
      command,
      value,
      over,
      less,
      other,
      because = '',
      unlike,
      slow,
    } of claims) {
      const answer = await answerOf(command);
      const second = async (place, without) =>
        place === undefined
          ? without
          : at(other ? await answerOf(other) : answer, place, other ?? command);
      const ours = at(answer, value, command) / (await second(over, 1)) - (await second(less, 0));
      const number = printed(String(claimed));
      const verdict = unlike ? 'not like for like' : verdictOf(number, ours);
      count += 1;
      if (verdict === 'right') right += 1;
      const commands = [command, other]
        .filter(Boolean)
        .map((each) => `\`${each}\``)
        .join(' and ');
      const text = [verdict, because].filter(Boolean).join(': ');
      rows.push(
        `| ${escaped(claim)} | ${escaped(String(claimed))} | ${shown(ours, number)} | ${escaped(text)} | ${escaped(commands)}${slow ? ' (slow)' : ''} |`,
      );
    }
    parts.push(
      [
        `## ${title}`,
        ...(about ? [about.trim()] : []),
        ['| claim | claimed | ours | verdict | command |', '|---|---|---|---|---|', ...rows].join(
          '\n',
        ),
      ].join('\n\n'),
    );
  }
  return `${[
    '# Claims, counted again',
    `${count} claims of published texts, compared with the answers of the commands: ${right} are right. A claim is right if our figure rounds to ` +
      'its digits; “about” allows a tenth. A count without a unit must be equal. Each command is run as shown after ' +
      '`minimind`, and its JSON has the figure. Commands marked as slow take more than two seconds.',
    'This page is written by `npm run docs:claims` from `docs/claims.yaml`, and a test compares them.',
    ...parts,
  ].join('\n\n')}\n`;
}

const wordsOf = (command) => command.split(' ');

function runProcess(args) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [path.join(ROOT, 'bin/run.js'), ...args],
    {
      cwd: ROOT,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    },
  );
  if (status !== 0) throw new Error(`minimind ${args.join(' ')}: ${status}\n${stderr}`);
  return JSON.parse(stdout);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const page = await claimsPage(runProcess);
  if (!process.argv.includes('--check')) writeFileSync(PAGE, page);
  else if (readFileSync(PAGE, 'utf8') !== page) {
    console.error('docs/claims.md is not up to date: run npm run docs:claims');
    process.exitCode = 1;
  }
}
