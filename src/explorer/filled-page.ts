/** The page of the build with a state, and with the answer for readers without scripts. */
import { render } from '../report/render/render.js';
import { fitAnswers, modelAnswers } from './answers.js';
import { type ExplorerState, editedModel } from './explorer-state.js';

/** Places that the build leaves in the page. */
const STATE = '%STATE%';
const ANSWER = '%ANSWER%';

export async function filledPage(template: string, state: ExplorerState): Promise<string> {
  const [beforeAnswer = '', afterAnswer = ''] = split(template, ANSWER);
  const [beforeState = '', afterState = ''] = split(afterAnswer, STATE);
  const answer = `<pre>${escapeHtml(await staticAnswer(state))}</pre>`;
  return `${beforeAnswer}${answer}${beforeState}${stateJson(state)}${afterState}`;
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  if (at === -1) throw new Error(`a page without ${mark}`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}

/** JSON within a script element: no text in it can end the element. */
const stateJson = (state: ExplorerState): string =>
  JSON.stringify(state).replaceAll('<', '\\u003c');

const ESCAPES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;' };

const escapeHtml = (text: string): string =>
  text.replaceAll(/[<>&]/g, (character) => ESCAPES[character] ?? character);

/** The reports of the commands as text. */
async function staticAnswer(state: ExplorerState): Promise<string> {
  const model = editedModel(state);
  const { report, validation } = await modelAnswers(model, state.setting);
  const fit = await fitAnswers(model, state.setting);
  const reports = [fit?.report, report].filter((each) => each !== undefined);
  if (reports.length === 0 && 'problems' in validation) {
    const { problemsText } = await import('../report/kit/problems.js');
    return problemsText(validation.problems, { width: WIDTH, colourLevel: 0 });
  }
  const options = { width: WIDTH, colourLevel: 0 } as const;
  const texts = await Promise.all(reports.map((each) => render(each, 'table', options)));
  return texts.join('\n');
}

/** Columns of the static answer. */
const WIDTH = 100;
