import { drawSvgDiagram } from '../../draw/svg-diagram.js';
import type { Picture } from '../../kit/pictures.js';
import { drawBars } from './bars.js';
import { asLinePlot, drawChart } from './chart.js';
import { drawHeatMap } from './heat-map.js';
import type { Drawing } from './svg.js';
import { drawTreemap } from './treemap.js';

/** A picture of any kind. */
export function draw(picture: Picture): Drawing {
  switch (picture.kind) {
    case 'plot':
      return drawChart(asLinePlot(picture));
    case 'line plot':
      return drawChart(picture);
    case 'bars':
      return drawBars(picture);
    case 'treemap':
      return drawTreemap(picture);
    case 'heat map':
      return drawHeatMap(picture);
    case 'diagram':
      return drawSvgDiagram(picture);
  }
}
