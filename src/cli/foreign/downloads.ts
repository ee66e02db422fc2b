/** Downloads of models in the words of other tools: `ollama pull`, `hf download`, `git clone`. */
import { downloadLine, isHubName } from '../../base/text/hub-names.js';
import { shellWord } from '../../base/text/shell-words.js';
import { hubRepository } from '../../input/published/published-models.js';

/** Flags of `hf download`: huggingface/huggingface_hub docs, "Command Line Interface". */
const OF_DATA = /(?:^| )--repo[-_]type[ =](?:dataset|space)s?(?= |$)/;
const FOLDER = /(?:^| )--(?:local[-_]dir|output[-_]dir)[ =](\S+)/;

/** Advice for the words after a command that downloads a model. */
export function downloadAdvice(words: readonly string[]): string {
  const plain = words.filter((each) => !each.startsWith('-'));
  const apart = plain.filter((each) => !/^--[\w-]+$/.test(words[words.indexOf(each) - 1] ?? ''));
  // A name can be written in two words; the value of a flag is none of them.
  const named = apart.length > 0 ? apart : plain;
  const line = words.join(' ');
  if (OF_DATA.test(line)) {
    return `minimind reads no data sets of the hub: after the download of ${named.join(' ')} write minimind data FILE`;
  }
  const [name = '', ...files] = named;
  if (isHubName(name) && files.length > 0) {
    const folder = FOLDER.exec(line)?.[1] ?? '.';
    const own = ['hf', 'download', ...named, '--local-dir', folder].map(shellWord).join(' ');
    return `write ${own}, then name the file`;
  }
  // A type after the name: `qwen/qwen3-8b@q4_k_m`.
  const [first = ''] = name.split('@');
  const repository = hubRepository(named.join('-')) ?? hubRepository(first);
  if (repository === undefined) return 'a model of the hub is read as hf:ORG/NAME';
  return `write ${downloadLine(repository)}, or read its config as hf:${repository}`;
}
