import { expect, it } from 'vitest';
import { fit as fitModel } from '../../../src/library/fit.js';
import { loadModel } from '../../../src/library/models/load-model.js';
import { profile } from '../../../src/library/profile.js';
import { fitPictures } from '../../../src/report/fit/fit-pictures.js';
import type { Picture } from '../../../src/report/kit/pictures.js';
import { profileReport } from '../../../src/report/profile/profile-report.js';

const rooflinesIn = (pictures: readonly Picture[] = []) =>
  pictures.filter(({ title }) => title.startsWith('Roofline'));

it('is the same in the pictures of profile and of fit', async () => {
  const model = await loadModel('minimind2-small');
  const result = fitModel(model, { gpu: 'h100-80gb', batch: 1, context: 2048 });
  const asked = { explain: false, flat: false, modelWords: [], allTensors: () => [] };
  const report = profileReport(profile(model), { ...asked, serving: result.serving });
  const [roofline] = rooflinesIn(fitPictures(result));
  expect(roofline).toMatchObject({ kind: 'line plot' });
  expect(rooflinesIn(report.pictures?.())).toEqual([roofline]);
  expect(rooflinesIn(profileReport(profile(model), asked).pictures?.())).toEqual([]);
});
