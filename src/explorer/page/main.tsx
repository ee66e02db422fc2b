/** Entry of the page, and of its worker, which runs the same script. */
import '../../config/without-eval.js';
import { render } from 'preact';
import { spellAsFlags } from '../../cli/flag-spelling.js';
import { linkedState } from '../link.js';
import { answerTexts } from './answer-texts.js';
import { Explorer } from './explorer.js';
import { readPage } from './page-data.js';
import { answerRequests } from './worker.js';

spellAsFlags();
if (typeof document === 'undefined') answerRequests();
else void start();

async function start(): Promise<void> {
  const root = document.getElementById('explorer');
  const script = document.getElementById('program');
  if (root === null || script === null) throw new Error('a page without its parts');
  const { presets, state } = readPage();
  const linked = location.hash === '' ? undefined : await linkedState(location.hash);
  const program = script.textContent ?? '';
  Object.assign(globalThis, { explorer: { answers: answerTexts } });
  root.replaceChildren();
  render(<Explorer initial={linked ?? state} presets={presets} program={program} />, root);
}
