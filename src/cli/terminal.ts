import type { RenderOptions } from '../report/kit/report.js';

type Stream = Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'getColorDepth'>;

const COLOUR_LEVELS = { 1: 0, 4: 1, 8: 2, 24: 3 } as const;

/**
 * How to render for `stream`: its width, and colours as the terminal, `--no-color`, `FORCE_COLOR` and
 * `NO_COLOR` say, the earlier of these before the later.
 */
export function renderOptions(
  stream: Stream,
  noColor: boolean,
  env: NodeJS.ProcessEnv = process.env,
): RenderOptions {
  return {
    width: stream.isTTY ? (stream.columns ?? 80) : Number.POSITIVE_INFINITY,
    colourLevel: noColor ? 0 : colourLevel(stream, env),
  };
}

function colourLevel(stream: Stream, env: NodeJS.ProcessEnv): RenderOptions['colourLevel'] {
  const forced = env.FORCE_COLOR;
  if (forced !== undefined) return forcedLevel(forced);
  if (env.NO_COLOR || !stream.isTTY) return 0;
  const depth = stream.getColorDepth(env);
  return COLOUR_LEVELS[depth as keyof typeof COLOUR_LEVELS] ?? 0;
}

function forcedLevel(value: string): RenderOptions['colourLevel'] {
  if (value === '0' || value === 'false') return 0;
  if (value === '2') return 2;
  if (value === '3') return 3;
  return 1;
}
