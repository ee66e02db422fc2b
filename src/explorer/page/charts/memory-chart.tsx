/** Serving memory against the context, with the memory of the GPU. */
import { useId } from 'preact/hooks';
import { formatBytes, formatInteger, shortCount } from '../../../base/text/units.js';
import type { MemoryPoint } from '../../answers.js';
import type { Answers } from '../use-explorer.js';

const WIDTH = 560;
const HEIGHT = 240;
/** Room for the texts at the size that they have on a phone. */
const MARGIN = { top: 16, right: 16, bottom: 34, left: 92 };

interface Curve {
  readonly label: string;
  readonly points: readonly MemoryPoint[];
}

export function MemoryChart({ answers }: { readonly answers: readonly Answers[] }) {
  const id = useId();
  const curves = answers.flatMap(({ model, fit }): Curve[] =>
    fit && fit.memory.length > 1 ? [{ label: model.name, points: fit.memory }] : [],
  );
  const capacity = answers.find(({ fit }) => fit?.capacity)?.fit?.capacity;
  if (curves.length === 0 || capacity === undefined) return null;
  const all = curves.flatMap(({ points }) => points);
  const scale = scalesFor(all, capacity);
  return (
    <section class="panel" aria-labelledby={id} data-old={answers.some(({ isFitOld }) => isFitOld)}>
      <h2 id={id}>Memory against context</h2>
      <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-labelledby={id}>
        <title>Serving memory of a GPU against the tokens of a sequence</title>
        {scale.bytes.map((value) => (
          <g key={value}>
            <line
              class="grid"
              x1={MARGIN.left}
              x2={WIDTH - MARGIN.right}
              y1={scale.y(value)}
              y2={scale.y(value)}
            />
            <text class="tick" x={MARGIN.left - 8} y={scale.y(value) + 4} text-anchor="end">
              {axisBytes(value)}
            </text>
          </g>
        ))}
        {scale.contexts.map((value) => (
          <text
            key={value}
            class="tick"
            x={scale.x(value)}
            y={HEIGHT - MARGIN.bottom + 26}
            text-anchor="middle"
          >
            {axisTokens(value)}
          </text>
        ))}
        {curves.map(({ label, points }, index) => (
          <g key={label}>
            <path class={`band series${index}`} d={bandPath(points, scale)} />
            <path class={`line series${index}`} d={linePath(points, scale)} />
          </g>
        ))}
        <line
          class="capacity"
          x1={MARGIN.left}
          x2={WIDTH - MARGIN.right}
          y1={scale.y(capacity)}
          y2={scale.y(capacity)}
        />
        <text
          class="capacity"
          x={WIDTH - MARGIN.right}
          y={Math.max(12, scale.y(capacity) - 5)}
          text-anchor="end"
        >
          {`${formatBytes(Math.round(capacity))} of a GPU`}
        </text>
      </svg>
      {curves.length > 1 && (
        <p class="legend">
          {curves.map(({ label }, index) => (
            <span key={label} class={`series${index}`}>
              {`${'AB'[index]}: ${label}`}
            </span>
          ))}
        </p>
      )}
      <details>
        <summary>Numbers</summary>
        {curves.map(({ label, points }) => (
          <table key={label} class="numbers">
            <caption>{label}</caption>
            <thead>
              <tr>
                <th scope="col">Context</th>
                <th scope="col">Lower</th>
                <th scope="col">Estimate</th>
                <th scope="col">Upper</th>
              </tr>
            </thead>
            <tbody>
              {points.map(({ context, lower, expected, upper }) => (
                <tr key={context}>
                  <th scope="row">{formatInteger(context)}</th>
                  {[lower, expected, upper].map((value, index) => (
                    <td key={index}>{formatBytes(Math.round(value))}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      </details>
    </section>
  );
}

interface Scales {
  readonly x: (context: number) => number;
  readonly y: (bytes: number) => number;
  /** Values with a mark at each axis. */
  readonly contexts: readonly number[];
  readonly bytes: readonly number[];
}

/** A logarithmic axis of contexts, and a linear one of bytes from 0. */
function scalesFor(points: readonly MemoryPoint[], capacity: number): Scales {
  const contexts = points.map(({ context }) => context);
  const [least, most] = [Math.min(...contexts), Math.max(...contexts)];
  const top = 1.08 * Math.max(capacity, ...points.map(({ upper }) => upper));
  const span = Math.max(1e-9, Math.log(most) - Math.log(least));
  const [width, height] = [WIDTH - MARGIN.left - MARGIN.right, HEIGHT - MARGIN.top - MARGIN.bottom];
  return {
    x: (context) => MARGIN.left + (width * (Math.log(context) - Math.log(least))) / span,
    y: (bytes) => MARGIN.top + height * (1 - bytes / top),
    contexts: spreadPowers(least, most),
    bytes: roundMarks(top),
  };
}

/** At most six powers of two of a range. */
function spreadPowers(least: number, most: number): number[] {
  const first = Math.ceil(Math.log2(least));
  const last = Math.floor(Math.log2(most));
  const step = Math.max(1, Math.ceil((last - first + 1) / 6));
  const powers: number[] = [];
  for (let power = first; power <= last; power += step) powers.push(2 ** power);
  return powers;
}

/** Multiples of 1, 2 or 5 times a power of ten, about four. */
function roundMarks(top: number): number[] {
  const rough = top / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10) * power;
  const marks: number[] = [];
  for (let value = 0; value <= top; value += step) marks.push(value);
  return marks;
}

const axisBytes = (value: number): string => formatBytes(Math.round(value)).replace('.0 ', ' ');

/** `32k` for 32,768. */
const axisTokens = (value: number): string =>
  value >= 2 ** 20 ? `${value / 2 ** 20}M` : value >= 1024 ? `${value / 1024}k` : shortCount(value);

const at = ({ x, y }: Scales, context: number, bytes: number): string =>
  `${x(context).toFixed(1)},${y(bytes).toFixed(1)}`;

const linePath = (points: readonly MemoryPoint[], scale: Scales): string =>
  `M${points.map(({ context, expected }) => at(scale, context, expected)).join('L')}`;

function bandPath(points: readonly MemoryPoint[], scale: Scales): string {
  const upper = points.map((point) => at(scale, point.context, point.upper));
  const lower = points.toReversed().map((point) => at(scale, point.context, point.lower));
  return `M${[...upper, ...lower].join('L')}Z`;
}
