/** Parameters by component: a map of one model, or bars of two, and their numbers. */
import { formatInteger, formatShare, shortCount } from '../../../base/text/units.js';
import type { ProfileResult } from '../../../report/command-results.js';
import type { Answers } from '../use-explorer.js';
import { ParameterMap } from './parameter-map.js';

interface Row {
  readonly label: string;
  readonly values: readonly number[];
}

export function ComponentsChart({ answers }: { readonly answers: readonly Answers[] }) {
  const profiles = answers.flatMap(({ now }) =>
    now?.profile && 'checks' in now.profile ? [now.profile] : [],
  );
  if (profiles.length < answers.length) return null;
  const isCompared = answers.length > 1;
  const report = isCompared ? undefined : answers[0]?.now?.report;
  const rows = rowsOf(profiles);
  const largest = Math.max(1, ...rows.flatMap(({ values }) => values));
  const totals = profiles.map(({ parameters }) => Number(parameters.total.value));
  return (
    <section class="panel" aria-labelledby="components">
      <h2 id="components">Parameters by component</h2>
      {report && <ParameterMap report={report} />}
      <table class="bars">
        <caption class="hidden">Parameters by component</caption>
        <thead class="hidden">
          <tr>
            <th scope="col">Component</th>
            {isCompared && <th scope="col">Share of the largest</th>}
            {totals.map((total, index) => (
              <th key={total} scope="col">
                {totals.length > 1 ? `Parameters of ${'AB'[index]}` : 'Parameters'}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ label, values }) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {isCompared && <Bars label={label} values={values} largest={largest} />}
              {values.map((value, index) => (
                <td key={index} title={`${formatInteger(value)} parameters`}>
                  {shortCount(value)} <small>{formatShare(value, totals[index] ?? 0)}</small>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** A bar for each model. */
function Bars({ label, values, largest }: Row & { readonly largest: number }) {
  return (
    <td class="bar">
      <svg viewBox={`0 0 100 ${8 * values.length}`} preserveAspectRatio="none">
        <title>{label}</title>
        {values.map((value, index) => (
          <rect
            key={index}
            class={`series${index}`}
            x="0"
            y={8 * index + 1}
            width={(100 * value) / largest}
            height="6"
          />
        ))}
      </svg>
    </td>
  );
}

/** A row for each component of any model. */
function rowsOf(profiles: readonly ProfileResult[]): Row[] {
  const labels = new Map<string, string>();
  for (const { parameters } of profiles) {
    for (const { component, parameters: figure } of parameters.components) {
      labels.set(component, figure.label);
    }
  }
  return [...labels].map(([component, label]) => ({
    label,
    values: profiles.map(({ parameters }) =>
      Number(
        parameters.components.find((each) => each.component === component)?.parameters.value ?? 0,
      ),
    ),
  }));
}
