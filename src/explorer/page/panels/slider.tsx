/** A slider over uneven values, with a field for any other number. */
import { useId } from 'preact/hooks';
import { formatInteger } from '../../../base/text/units.js';

interface Properties {
  readonly label: string;
  /** Key or flag behind it. */
  readonly hint: string;
  /** Undefined for the default. */
  readonly value: number | undefined;
  /** Growing values that the slider passes through. */
  readonly stops: readonly number[];
  /** The default, or a word for it; absent for a value that is always there. */
  readonly usual?: number | string;
  /** Undefined sets the default. */
  readonly set: (value: number | undefined) => void;
}

export function Slider({ label, hint, value, stops, usual, set }: Properties) {
  const id = useId();
  const shown = value ?? (typeof usual === 'number' ? usual : undefined);
  const index = shown === undefined ? 0 : nearestIndex(stops, shown);
  const change = (text: string) => {
    const number = Number(text);
    if (text === '' && usual !== undefined) set(undefined);
    else if (text !== '' && Number.isSafeInteger(number) && number >= 0) set(number);
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
        placeholder={usual === undefined ? undefined : String(usual)}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
      <input
        id={id}
        type="range"
        min="0"
        max={Math.max(1, stops.length - 1)}
        step="1"
        value={index}
        aria-valuetext={shown === undefined ? String(usual) : formatInteger(shown)}
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
