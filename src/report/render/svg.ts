/** The main picture of a report as an SVG file. */
import { mainPictures, type RenderOptions, type Report } from '../kit/report.js';
import { draw } from './picture/draw.js';
import { svgFile } from './picture/svg.js';

/**
 * The picture, without a final newline.
 * @throws Error for a report without a picture; see `mainPictures`.
 */
export function renderSvg(report: Report, _options?: RenderOptions): string {
  const [picture] = mainPictures(report);
  if (picture === undefined) throw new Error('a report without a picture');
  return svgFile(picture.title, draw(picture));
}
