/** Command lines with the numbers of the page. */
import { commandText, type SettingValues } from '../base/text/setting.js';
import { USUAL_GPU } from '../estimate/hardware/gpu.js';
import { type ExploredModel, type ExplorerSetting, profileDtype } from './explorer-state.js';

/** `minimind validate my-model.yaml` */
export const validateLine = ({ name }: ExploredModel): string => commandText('validate', [name]);

/** `minimind profile my-model.yaml --context 8192` */
export const profileLine = ({ name }: ExploredModel, setting: ExplorerSetting): string =>
  commandText('profile', [name], {
    context: setting.context,
    batch: setting.batch,
    dtype: profileDtype(setting) && setting.dtype,
    cacheDtype: setting.cacheDtype,
  });

/** `minimind fit my-model.yaml --gpu h100-80gb` */
export const fitLine = ({ name }: ExploredModel, setting: ExplorerSetting): string =>
  commandText('fit', [name], fitSettings(setting));

/** Settings of `fit` by their names in texts. */
const fitSettings = (setting: ExplorerSetting): SettingValues => ({
  gpu: setting.gpu ?? USUAL_GPU,
  gpus: setting.gpus,
  context: setting.context,
  batch: setting.batch,
  users: setting.users,
  dtype: setting.dtype,
  cacheDtype: setting.cacheDtype,
  microBatch: setting.microBatch,
  trainTokens: setting.trainTokens,
});
