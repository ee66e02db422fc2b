/** The text of a config with the problems of `minimind validate` at its lines. */
import { useRef } from 'preact/hooks';
import type { Problem, Severity } from '../../../base/errors.js';
import { escapeText } from '../../../config/quote.js';
import { type ExploredModel, withText } from '../../explorer-state.js';
import type { Update } from '../model-edits.js';

interface Properties {
  readonly model: ExploredModel;
  readonly problems: readonly Problem[];
  readonly update: Update;
}

/** Most lines with a number: longer texts are not configs that people write. */
const MOST_LINES = 5000;

export function EditorPanel({ model, problems, update }: Properties) {
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLPreElement>(null);
  const lines = model.text.split('\n').slice(0, MOST_LINES);
  const marks = marksOf(problems);
  const goTo = ({ line = 1, column = 1 }: Problem) => {
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    const at = start + column - 1;
    area.current?.focus();
    area.current?.setSelectionRange(at, at);
  };
  return (
    <section class="panel" aria-labelledby="config">
      <h2 id="config">Config</h2>
      <div class="editor">
        <pre ref={gutter} class="gutter" aria-hidden="true">
          {lines.map((_, index) => (
            <span key={index} data-severity={marks.get(index + 1)}>
              {`${index + 1}\n`}
            </span>
          ))}
        </pre>
        <textarea
          ref={area}
          aria-label={`Text of ${escapeText(model.name, 60)}`}
          aria-describedby="problems"
          aria-invalid={problems.some(({ severity }) => severity === 'error')}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          wrap="off"
          value={model.text}
          onInput={({ currentTarget: { value } }) =>
            update((state) => withText(state, value), 'text')
          }
          onScroll={({ currentTarget }) => {
            if (gutter.current) gutter.current.scrollTop = currentTarget.scrollTop;
          }}
        />
      </div>
      <ol id="problems" class="problems">
        {problems.map((problem) => (
          <li key={problemKey(problem)} data-severity={problem.severity}>
            <button type="button" onClick={() => goTo(problem)}>
              {placeText(problem)}
            </button>
            <span>
              {problem.path !== undefined && <code>{escapeText(problem.path, 80)}</code>}{' '}
              {escapeText(problem.message, 600)}
            </span>
            {problem.suggestion !== undefined && (
              <span class="fix">{`→ ${escapeText(problem.suggestion, 600)}`}</span>
            )}
          </li>
        ))}
        {problems.length === 0 && <li data-severity="none">Valid, without warnings</li>}
      </ol>
    </section>
  );
}

/** The worst severity of each line. */
function marksOf(problems: readonly Problem[]): ReadonlyMap<number, Severity> {
  const marks = new Map<number, Severity>();
  for (const { line, severity } of problems) {
    if (line !== undefined && marks.get(line) !== 'error') marks.set(line, severity);
  }
  return marks;
}

const problemKey = ({ line, column, path, message }: Problem): string =>
  JSON.stringify([line, column, path, message]);

const placeText = ({ severity, line, column }: Problem): string =>
  line === undefined ? severity : `${severity} ${line}:${column ?? 1}`;
