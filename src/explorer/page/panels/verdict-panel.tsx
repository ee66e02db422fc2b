/** The answer: whether a model fits, and its main figures. Two models are a table. */
import { formatChange } from '../../../base/text/units.js';
import { capital, counted } from '../../../base/text/words.js';
import type { Fact, Tone } from '../../../report/kit/report.js';
import type { ExplorerState } from '../../explorer-state.js';
import { factsOf, profileTiles, type Tile } from '../../figures.js';
import type { Update } from '../model-edits.js';
import type { Answers } from '../use-explorer.js';

interface Properties {
  readonly answers: readonly Answers[];
  readonly edited: ExplorerState['edited'];
  readonly update: Update;
}

export function VerdictPanel({ answers, edited, update }: Properties) {
  const tiles = answers.map(tilesOf);
  const [first, second] = tiles;
  const isBusy = answers.some(({ isFitOld }) => isFitOld);
  return (
    <section class="panel verdicts" aria-labelledby="answer" aria-busy={isBusy}>
      <h2 id="answer" class="hidden">
        Answer
      </h2>
      <div class="models">
        {answers.map((each, index) => (
          <VerdictCard
            key={index}
            answers={each}
            choose={
              answers.length === 1
                ? undefined
                : {
                    name: 'AB'[index] ?? '',
                    isEdited: edited === index,
                    edit: () => update((state) => ({ ...state, edited: index as 0 | 1 })),
                  }
            }
          />
        ))}
      </div>
      {second === undefined ? (
        <Tiles tiles={first ?? []} isOld={answers[0]?.isNowOld ?? true} />
      ) : (
        <ComparisonTable first={first ?? []} second={second} />
      )}
      {answers.length === 1 && answers[0] && <Facts answers={answers[0]} />}
    </section>
  );
}

function tilesOf({ now, fit }: Answers): readonly Tile[] {
  const profile = now?.profile;
  if (profile === undefined || !('checks' in profile)) return [];
  return [...profileTiles(profile), ...(fit?.tiles ?? [])];
}

interface CardProperties {
  readonly answers: Answers;
  /** Undefined for the only model. */
  readonly choose:
    | { readonly name: string; readonly isEdited: boolean; readonly edit: () => void }
    | undefined;
}

function VerdictCard({ answers: { model, now, fit, isFitOld }, choose }: CardProperties) {
  const verdict = verdictOf(now, fit, isFitOld);
  return (
    <div class="model" data-edited={choose?.isEdited}>
      {choose && (
        <label class="chosen">
          <input type="radio" name="edited" checked={choose.isEdited} onChange={choose.edit} />
          Edit {choose.name}: {model.name}
        </label>
      )}
      <p class={`verdict ${toneClass(verdict.tone)}`} role="status">
        {verdict.text}
      </p>
      <p class="subject">{now?.report?.verdict?.text ?? model.name}</p>
      {fit &&
        remediesIn(fit.facts).map(({ name, text }) => (
          <p key={name} class="remedy">
            {capital(name)}: <code>{text}</code>
          </p>
        ))}
    </div>
  );
}

function verdictOf(
  now: Answers['now'],
  fit: Answers['fit'],
  isOld: boolean,
): { readonly text: string; readonly tone?: Tone | undefined } {
  if (now === undefined) return { text: 'Computing…' };
  if (now.profile === undefined) {
    const errors = now.problems.filter(({ severity }) => severity === 'error').length;
    return { text: `The config has ${counted(Math.max(1, errors), 'mistake')}`, tone: 'bad' };
  }
  if (!('checks' in now.profile)) return { text: now.profile.message, tone: 'bad' };
  if (fit?.error && !isOld) return { text: fit.error.message, tone: 'bad' };
  return fit?.verdict ?? { text: 'Computing…' };
}

/** Facts that name settings with which it fits. */
const remediesIn = (facts: readonly Fact[]): readonly Fact[] =>
  facts.filter(({ name }) => name.startsWith('to '));

const toneClass = (tone: Tone | undefined): string => (tone === undefined ? 'plain' : tone);

function Tiles({ tiles, isOld }: { tiles: readonly Tile[]; isOld: boolean }) {
  return (
    <dl class="tiles" aria-busy={isOld}>
      {tiles.map(({ label, text, note, verdict }) => (
        <div key={label} class="tile" data-verdict={verdict}>
          <dt>{label}</dt>
          <dd>
            <strong>{text}</strong>
            <span>{verdict === undefined ? note : `${note}: ${verdict}`}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function ComparisonTable({ first, second }: { first: readonly Tile[]; second: readonly Tile[] }) {
  const labels = [...new Set([...first, ...second].map(({ label }) => label))];
  const inBoth = labels.map((label) => ({
    label,
    a: first.find((tile) => tile.label === label),
    b: second.find((tile) => tile.label === label),
  }));
  return (
    <table class="comparison">
      <caption class="hidden">Both models</caption>
      <thead>
        <tr>
          <th scope="col">Figure</th>
          <th scope="col">A</th>
          <th scope="col">B</th>
          <th scope="col">Change</th>
        </tr>
      </thead>
      <tbody>
        {inBoth.map(({ label, a, b }) => (
          <tr key={label}>
            <th scope="row">{label}</th>
            <TileCell tile={a} />
            <TileCell tile={b} />
            <td>{changeText(a?.value, b?.value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function TileCell({ tile }: { tile: Tile | undefined }) {
  return (
    <td data-verdict={tile?.verdict} title={tile?.note}>
      {tile === undefined ? '–' : tile.text}
    </td>
  );
}

function changeText(a: number | undefined, b: number | undefined): string {
  if (a === undefined || b === undefined) return '';
  return formatChange(Math.round(b), Math.round(a)) || '=';
}

/** The facts of both answers, as the commands print them. */
function Facts({ answers: { now, fit, isFitOld } }: { answers: Answers }) {
  const groups = [
    { title: 'Model', facts: factsOf(now?.report), isOld: false },
    { title: 'Hardware', facts: fit?.facts ?? [], isOld: isFitOld },
  ].filter(({ facts }) => facts.length > 0);
  if (groups.length === 0) return null;
  return (
    <details class="facts">
      <summary>All facts</summary>
      {groups.map(({ title, facts, isOld }) => (
        <div key={title} data-old={isOld}>
          <h3>{title}</h3>
          <dl>
            {facts.map(({ name, text }) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
        </div>
      ))}
    </details>
  );
}
