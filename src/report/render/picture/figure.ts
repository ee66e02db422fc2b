/** A picture in a page, with its values as a table, or the blocks of a diagram to unfold. */
import { diagramOutline } from '../../draw/diagram-outline.js';
import type { Picture } from '../../kit/pictures.js';
import { htmlTable, scrolling } from '../html-table.js';
import { element, type Markup } from '../markup.js';
import { draw } from './draw.js';
import { inlineSvg } from './svg.js';
import { valuesTable } from './values-table.js';

export const figure = (picture: Picture): Markup =>
  element(
    'figure',
    {},
    // The title of a diagram is that of its page.
    picture.kind !== 'diagram' && element('figcaption', {}, picture.title),
    scrolling(picture.title, inlineSvg(picture.title, draw(picture))),
    picture.kind === 'diagram'
      ? diagramOutline(picture)
      : element(
          'details',
          {},
          element('summary', {}, 'Values of the picture'),
          htmlTable(valuesTable(picture), `Values: ${picture.title}`),
        ),
  );
