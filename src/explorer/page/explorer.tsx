/** The whole page: the answer first, then what changes it. */
import { useEffect, useMemo } from 'preact/hooks';
import type { ModelAnswers } from '../answers.js';
import { fitLine, profileLine, validateLine } from '../command-lines.js';
import type { ExploredModel, ExplorerState } from '../explorer-state.js';
import { editedModel } from '../explorer-state.js';
import { ComponentsChart } from './charts/components-chart.js';
import { MemoryChart } from './charts/memory-chart.js';
import { Lines } from './lines.js';
import { DialsPanel } from './panels/dials-panel.js';
import { EditorPanel } from './panels/editor-panel.js';
import { FormPanel } from './panels/form-panel.js';
import { SettingPanel } from './panels/setting-panel.js';
import { Toolbar } from './panels/toolbar.js';
import { VerdictPanel } from './panels/verdict-panel.js';
import { useExplorer } from './use-explorer.js';

interface Properties {
  readonly initial: ExplorerState;
  readonly presets: readonly ExploredModel[];
  /** Source text of the page's script, for the worker. */
  readonly program: string;
}

export function Explorer({ initial, presets, program }: Properties) {
  const control = useExplorer(initial, program);
  const { state, answers, update, undo, redo } = control;
  useUndoKeys(undo, redo);
  const current = answers[state.edited] ?? answers[0];
  const model = editedModel(state);
  const described = useLastDescribed(current?.now?.described);
  useEffect(() => {
    document.title = `${model.name} · minimind explorer`;
  }, [model.name]);
  return (
    <>
      <Toolbar control={control} presets={presets} />
      <main>
        <VerdictPanel answers={answers} edited={state.edited} update={update} />
        <div class="columns">
          <div class="column controls">
            <DialsPanel described={described} model={model} update={update} />
            <SettingPanel
              setting={state.setting}
              positions={described?.positions}
              usualContext={usualContextOf(current?.now?.profile)}
              update={update}
            />
          </div>
          <div class="column charts">
            <ComponentsChart answers={answers} />
            <MemoryChart answers={answers} />
            <Lines
              title="The same on the command line"
              lines={[
                profileLine(model, state.setting),
                fitLine(model, state.setting),
                validateLine(model),
              ]}
            />
          </div>
          <div class="column texts">
            <EditorPanel
              key={state.edited}
              model={model}
              problems={current?.now?.problems ?? []}
              update={update}
            />
            <FormPanel described={described} model={model} update={update} />
          </div>
        </div>
      </main>
    </>
  );
}

/** Tokens of the counted sequence: they are shown only where none are set. */
const usualContextOf = (profile: ModelAnswers['profile']): number | undefined =>
  profile && 'checks' in profile ? profile.setting.inference.context : undefined;

/** The last description, so that the controls stay while a text is wrong. */
function useLastDescribed<Value>(value: Value | undefined): Value | undefined {
  const kept = useMemo(() => ({ last: value }), []);
  if (value !== undefined) kept.last = value;
  return kept.last;
}

/** Ctrl-Z and Ctrl-Y of the whole page: those of a text field would undo only its own changes. */
function useUndoKeys(undo: () => void, redo: () => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
      const key = event.key.toLowerCase();
      const isRedo = key === 'y' || (key === 'z' && event.shiftKey);
      if (!isRedo && key !== 'z') return;
      event.preventDefault();
      if (isRedo) redo();
      else undo();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [undo, redo]);
}
