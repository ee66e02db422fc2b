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
else void start(document.currentScript?.textContent ?? '');

/** @param program Text of this script, which its worker runs too. */
async function start(program: string): Promise<void> {
  const root = document.getElementById('explorer');
  if (root === null) throw new Error('a page without its root');
  Object.assign(globalThis, { explorer: { answers: answerTexts } });
  const { presets, state } = await readPage();
  const linked = location.hash === '' ? undefined : await linkedState(location.hash);
  root.replaceChildren();
  render(<Explorer initial={linked ?? state} presets={presets} program={program} />, root);
}
