/** A slider over uneven values, with a field for any other number. */
import { useId } from 'preact/hooks';
import { formatInteger } from '../../base/text/units.js';

interface Properties {
  readonly label: string;
  /** Key or flag behind it. */
  readonly hint: string;
  /** Undefined for the default. */
  readonly value: number | undefined;
  /** Growing values that the slider passes through. */
  readonly stops: readonly number[];
  /** Words for the default, where there is one. */
  readonly usual?: string;
  readonly set: (value: number) => void;
}

export function Slider({ label, hint, value, stops, usual, set }: Properties) {
  const id = useId();
  const index = value === undefined ? 0 : nearestIndex(stops, value);
  const change = (text: string) => {
    const number = Number(text);
    if (text !== '' && Number.isSafeInteger(number) && number >= 0) set(number);
  };
  return (
    <div class="slider" title={hint}>
      <label for={id}>{label}</label>
      <input
        class="value"
        type="number"
        min="0"
        step="1"
        aria-label={`${label}, exact`}
        value={value ?? ''}
        placeholder={usual}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
      <input
        id={id}
        type="range"
        min="0"
        max={Math.max(1, stops.length - 1)}
        step="1"
        value={index}
        aria-valuetext={value === undefined ? (usual ?? 'default') : formatInteger(value)}
        onInput={({ currentTarget }) => {
          const stop = stops[Number(currentTarget.value)];
          if (stop !== undefined) set(stop);
        }}
      />
    </div>
  );
}

function nearestIndex(stops: readonly number[], value: number): number {
  const above = stops.findIndex((stop) => stop >= value);
  return above === -1 ? stops.length - 1 : above;
}
