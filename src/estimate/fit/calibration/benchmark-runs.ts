/**
 * Speeds out of the results of llama-bench (llama.cpp, tools/llama-bench, README: json, jsonl, csv, md) and of vLLM
 * (`vllm bench serve --save-result`, `vllm bench throughput --output-json`: vllm/benchmarks).
 */

import { usageError } from '../../../base/errors.js';
import { parseJson } from '../../../base/text/json.js';
import { setting } from '../../../base/text/setting.js';
import { asNumber, asText } from '../../../base/values.js';
import { parseLimit } from '../../../config/parse-number.js';

/** Model of llama-bench. */
export interface BenchmarkedModel {
  readonly name: string;
  /** Bytes of the weights. */
  readonly bytes: number;
  readonly parameters: number;
}

/** Speed of one sequence. */
export interface SequenceRun {
  /** A prompt that is read, or an answer that is generated. */
  readonly kind: 'prompt' | 'answer';
  readonly tokens: number;
  /** Tokens before these. */
  readonly depth: number;
  readonly tokensPerSecond: number;
  readonly model: BenchmarkedModel;
}

/** Throughput of a server. */
export interface ServerRun {
  readonly kind: 'server';
  /** Requests in service at a time. */
  readonly users: number;
  /** Tokens per second of prompts and outputs. */
  readonly tokensPerSecond: number;
  /** Mean tokens of a prompt and an output together. */
  readonly tokens: number;
  /** Mean tokens of an output; undefined where the file does not say. */
  readonly output?: number;
  readonly modelName?: string;
}

export type BenchmarkRun = SequenceRun | ServerRun;

export interface Benchmark {
  readonly program: 'llama-bench' | 'vLLM';
  readonly runs: readonly BenchmarkRun[];
  /** Hardware, where the file names it. */
  readonly hardware?: string;
  /** Results that say nothing about one share, such as prompts and answers together. */
  readonly unused: number;
}

/**
 * Runs in the text of a benchmark's results.
 * @throws UserError for another text, and for a field with another value than it has there.
 */
export function benchmarkIn(text: string, file: string): Benchmark {
  const place = setting('calibrate', file);
  const trimmed = text.trim();
  const isJson = trimmed.startsWith('{') || trimmed.startsWith('[');
  if (!isJson && trimmed.length > MOST_TABLE_CHARACTERS) {
    throw usageError(
      `${place}: found a table of ${(trimmed.length / 1e6).toFixed(1)} million characters; up to 1 million are read`,
      'leave the rows of this model and machine',
    );
  }
  const results = isJson ? jsonResults(trimmed, place) : tableResults(trimmed);
  if (results.length === 0) throw unknownResult(place);
  if (results.every((each) => 'model_n_params' in each)) return llamaBench(results, place);
  const [only] = results;
  if (results.length === 1 && only) return { ...vllmBenchmark(only, place), unused: 0 };
  throw unknownResult(place);
}

/** A row of llama-bench has some hundred characters; only JSON of vLLM holds the times of each request. */
const MOST_TABLE_CHARACTERS = 1_000_000;

type Result = Readonly<Record<string, unknown>>;

const unknownResult = (place: string) =>
  usageError(
    `${place}: expected results of llama-bench or of vllm bench, found another text`,
    'write the file with llama-bench -o json, or with save-result of vllm bench serve',
  );

/** Objects of a JSON text, or of lines of JSON. */
function jsonResults(text: string, place: string): Result[] {
  const values = parsed(text) ?? text.split('\n').map((line) => parsed(line));
  const all = Array.isArray(values) ? values : [values];
  if (all.every((each) => typeof each === 'object' && each !== null)) return all as Result[];
  throw unknownResult(place);
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Rows of a CSV or Markdown table, with the names of the fields in JSON. */
function tableResults(text: string): Result[] {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  const isMarkdown = (line: string) => line.trimStart().startsWith('|');
  const marked = lines.filter(isMarkdown);
  const rows = marked.length > 0 ? marked.map(markdownCells) : lines.map(csvCells);
  const [head = [], ...others] = rows;
  const body = others.filter((cells) => !cells.every((cell) => /^:?-+:?$/.test(cell)));
  const results = body.map((cells) =>
    Object.fromEntries(head.map((name, at) => [name, cells[at] ?? ''])),
  );
  return marked.length > 0 ? results.map(asFields) : results;
}

const markdownCells = (line: string) =>
  line
    .trim()
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());

const csvCells = (line: string) =>
  [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain = '']) =>
    quoted === undefined ? plain : quoted.replaceAll('""', '"'),
  );

/** Fields of the JSON for a row of the Markdown table, whose test is `pp 512`, `tg128` or `tg128 @ d4096`. */
function asFields(row: Readonly<Record<string, string>>): Result {
  if (row.test === undefined || row.params === undefined) return row;
  const [, kind, tokens = 0, depth = 0] =
    /^(pp|tg)\s*(\d+)(?:\s*@\s*d\s*(\d+))?$/.exec(row.test) ?? [];
  const isMixed = kind === undefined;
  return {
    ...(row.backend && { backends: row.backend }),
    model_type: row.model,
    model_size: parseLimit(row.size ?? '', 'bytes'),
    model_n_params: parseLimit(row.params, 'count'),
    n_prompt: kind === 'pp' || isMixed ? tokens || 1 : 0,
    n_gen: kind === 'tg' || isMixed ? tokens || 1 : 0,
    n_depth: depth,
    avg_ts: row['t/s']?.split('±')[0]?.trim(),
  };
}

/** @throws UserError for a field that is not a positive number. */
function positiveIn(result: Result, field: string, place: string): number {
  const value = asNumber(result[field] ?? Number.NaN);
  if (Number.isFinite(value) && value > 0) return value;
  throw usageError(
    `${place}: expected ${field} to be a positive number, found ${asText(result[field]).slice(0, 40)}`,
    'write the file again with the benchmark program',
  );
}

/** Longest sequence of a benchmark, in tokens; no model takes more. */
const MOST_TOKENS = 1e8;

/** @throws UserError for a field that is not a number of tokens; absent ones are 0. */
function tokensIn(result: Result, field: string, place: string): number {
  const value = asNumber(result[field] ?? 0);
  if (Number.isInteger(value) && value >= 0 && value <= MOST_TOKENS) return value;
  throw usageError(
    `${place}: expected ${field} to be a number of tokens, found ${asText(result[field]).slice(0, 40)}`,
    'write the file again with the benchmark program',
  );
}

function llamaBench(results: readonly Result[], place: string): Benchmark {
  if (results.some(({ backends }) => backends === 'CPU')) {
    throw usageError(
      `${place}: the runs are of a processor (backend CPU)`,
      `run llama-bench on the GPU, or measure the processor with ${setting('thisMachine')}`,
    );
  }
  const runs = results.flatMap((result) => {
    const [prompt = 0, answer = 0, depth = 0] = ['n_prompt', 'n_gen', 'n_depth'].map((field) =>
      tokensIn(result, field, place),
    );
    const isMixed = prompt > 0 === answer > 0;
    if (isMixed) return [];
    const run: SequenceRun = {
      kind: prompt > 0 ? 'prompt' : 'answer',
      tokens: prompt || answer,
      depth,
      tokensPerSecond: positiveIn(result, 'avg_ts', place),
      model: {
        name: asText(result.model_type),
        bytes: positiveIn(result, 'model_size', place),
        parameters: positiveIn(result, 'model_n_params', place),
      },
    };
    return [run];
  });
  if (runs.length === 0) {
    throw usageError(
      `${place}: no run of prompts alone or of answers alone`,
      'run llama-bench with -p 512 -n 128',
    );
  }
  const hardware = results[0]?.gpu_info;
  return {
    program: 'llama-bench',
    runs,
    ...(typeof hardware === 'string' && hardware !== '' && { hardware }),
    unused: results.length - runs.length,
  };
}

function vllmBenchmark(result: Result, place: string): Omit<Benchmark, 'unused'> {
  const program = 'vLLM' as const;
  if ('avg_latency' in result) {
    throw usageError(
      `${place}: results of vllm bench latency do not have the lengths of prompts and outputs`,
      'run vllm bench serve with save-result',
    );
  }
  if ('elapsed_time' in result) {
    const requests = positiveIn(result, 'num_requests', place);
    const tokens = positiveIn(result, 'total_num_tokens', place) / requests;
    const tokensPerSecond = positiveIn(result, 'tokens_per_second', place);
    return { program, runs: [{ kind: 'server', users: requests, tokensPerSecond, tokens }] };
  }
  if (!('total_token_throughput' in result)) throw unknownResult(place);
  const { request_rate: rate, max_concurrency: most, model_id: name } = result;
  if (rate !== undefined && rate !== 'inf' && rate !== Number.POSITIVE_INFINITY) {
    throw usageError(
      `${place}: the server waited for requests (request_rate ${asText(rate).slice(0, 20)}), so its speed is not in the file`,
      'run vllm bench serve with a request rate of inf',
    );
  }
  const requests = positiveIn(result, 'completed', place);
  const output = positiveIn(result, 'total_output_tokens', place) / requests;
  const run: ServerRun = {
    kind: 'server',
    users:
      most === null || most === undefined
        ? requests
        : Math.min(requests, positiveIn(result, 'max_concurrency', place)),
    tokensPerSecond: positiveIn(result, 'total_token_throughput', place),
    tokens: positiveIn(result, 'total_input_tokens', place) / requests + output,
    output,
    ...(typeof name === 'string' && { modelName: name }),
  };
  return { program, runs: [run] };
}
