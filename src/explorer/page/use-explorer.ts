/** State of the page with its history, its answers and its link. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { bugAnswer, type ModelAnswers, modelAnswers } from '../answers.js';
import type { ExploredModel, ExplorerSetting, ExplorerState } from '../explorer-state.js';
import { extendedHistory, type History, historyOf, redone, undone } from '../history.js';
import { linkedState, linkFragment } from '../link.js';
import { type FitData, FitWorker } from './worker.js';

/** Answers about one model. */
export interface Answers {
  readonly model: ExploredModel;
  /** Undefined until the first ones. */
  readonly now: ModelAnswers | undefined;
  /** Whether `now` is about an earlier state. */
  readonly isNowOld: boolean;
  readonly fit: FitData | undefined;
  /** Whether `fit` is about an earlier state. */
  readonly isFitOld: boolean;
}

export interface ExplorerControl {
  readonly state: ExplorerState;
  readonly answers: readonly Answers[];
  readonly canUndo: boolean;
  readonly canRedo: boolean;
  /** @param change Name of a change that continues, for `extendedHistory`. */
  update(next: (state: ExplorerState) => ExplorerState, change?: string): void;
  undo(): void;
  redo(): void;
}

/** Time after the last change until the link follows, in milliseconds. */
const LINK_DELAY = 300;

export function useExplorer(initial: ExplorerState, program: string): ExplorerControl {
  const [history, setHistory] = useState<History<ExplorerState>>(() => historyOf(initial));
  const state = history.present;
  const update = useCallback(
    (next: (state: ExplorerState) => ExplorerState, change?: string) =>
      setHistory((kept) => extendedHistory(kept, next(kept.present), change)),
    [],
  );
  useLink(state, update);
  return {
    state,
    answers: useAnswers(state, program),
    canUndo: history.past.length > 0,
    canRedo: history.future.length > 0,
    update,
    undo: useCallback(() => setHistory(undone), []),
    redo: useCallback(() => setHistory(redone), []),
  };
}

/** Keeps the fragment of the address and the state alike. */
function useLink(
  state: ExplorerState,
  update: (next: (state: ExplorerState) => ExplorerState) => void,
): void {
  const written = useRef('');
  useEffect(() => {
    const timer = setTimeout(async () => {
      written.current = `#${await linkFragment(state)}`;
      history.replaceState(null, '', written.current);
    }, LINK_DELAY);
    return () => clearTimeout(timer);
  }, [state]);
  useEffect(() => {
    const follow = async () => {
      if (location.hash === written.current) return;
      const linked = await linkedState(location.hash);
      if (linked) update(() => linked);
    };
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, [update]);
}

/** Answers with the question that they are about. */
interface Asked<Answer> {
  readonly key: string;
  readonly answer: Answer;
}

const exploredKey = (model: ExploredModel, setting: ExplorerSetting) =>
  JSON.stringify([model, setting]);

function useAnswers({ models, setting }: ExplorerState, program: string): readonly Answers[] {
  const [first, second] = models;
  const nows = [useModel(first, setting), useModel(second, setting)];
  const fits = useFits(models, setting, program);
  return models.map((model, index): Answers => {
    const key = exploredKey(model, setting);
    const [now, fit] = [nows[index], fits[index]];
    return {
      model,
      now: now?.answer,
      isNowOld: now?.key !== key,
      fit: fit?.answer,
      isFitOld: fit?.key !== key,
    };
  });
}

/** The last answers about a model; those of an earlier state while the next ones are computed. */
function useModel(
  model: ExploredModel | undefined,
  setting: ExplorerSetting,
): Asked<ModelAnswers> | undefined {
  const [known, setKnown] = useState<Asked<ModelAnswers> | undefined>();
  const key = model && exploredKey(model, setting);
  useEffect(() => {
    let isCurrent = model !== undefined;
    if (model === undefined || key === undefined) setKnown(undefined);
    else {
      void modelAnswers(model, setting)
        .catch(failedAnswers)
        .then((answer) => {
          if (isCurrent) setKnown({ key, answer });
        });
    }
    return () => {
      isCurrent = false;
    };
  }, [key]);
  return known;
}

const failedAnswers = (error: unknown): ModelAnswers => ({
  validation: bugAnswer(error),
  problems: [],
  described: undefined,
  profile: bugAnswer(error),
  report: undefined,
});

function useFits(
  models: ExplorerState['models'],
  setting: ExplorerSetting,
  program: string,
): readonly (Asked<FitData | undefined> | undefined)[] {
  const [known, setKnown] = useState<readonly (Asked<FitData | undefined> | undefined)[]>([]);
  const asked = useRef<string[]>([]);
  const worker = useMemo(
    () =>
      new FitWorker(program, (name, answer) => {
        const index = Number(name);
        const key = asked.current[index] ?? '';
        setKnown((all) => Object.assign([...all], { [index]: { key, answer } }));
      }),
    [program],
  );
  const [first, second] = models.map((model) => exploredKey(model, setting));
  useEffect(() => {
    models.forEach((model, index) => {
      const key = exploredKey(model, setting);
      if (asked.current[index] === key) return;
      asked.current[index] = key;
      worker.ask(String(index), model, setting);
    });
    asked.current.length = models.length;
  }, [first, second, worker]);
  return known;
}
