/** Parameters by component and tensor as areas, drawn as in the page of a report. */
import { useEffect, useState } from 'preact/hooks';
import type { Report } from '../../../report/kit/report.js';
import { inlineSvg } from '../../../report/render/picture/svg.js';
import { drawTreemap } from '../../../report/render/picture/treemap.js';

/** Time after the last change until the map follows, in milliseconds: some models have 100,000 tensors. */
const DELAY = 150;

export function ParameterMap({ report }: { readonly report: Report }) {
  const [drawn, setDrawn] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => {
      const map = report.pictures?.().find(({ kind }) => kind === 'treemap');
      if (map?.kind === 'treemap') setDrawn(inlineSvg(map.title, drawTreemap(map)).text);
    }, DELAY);
    return () => clearTimeout(timer);
  }, [report]);
  // Every name in it is escaped where it is made.
  return (
    // A phone scrolls the map, also with the keyboard: its names would be too small to read.
    <section
      class="map"
      aria-label="Map of the parameters"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to take the focus.
      tabIndex={0}
      dangerouslySetInnerHTML={{ __html: drawn }}
    />
  );
}
