/** A text that is read as a whole, from plain or packed files. */
import { UserError } from '../../base/errors.js';
import { decodedText, readStreamAtMost } from '../../base/files/read-file.js';
import { parseJson } from '../../base/text/json.js';
import { joined, shortened } from '../../base/text/words.js';
import { isRecord } from '../../base/values.js';
import { openSource } from './files/source.js';

/** Text between two rows of a table. Perplexity is usually measured so: huggingface.co/docs/transformers/perplexity. */
const BETWEEN_ROWS = '\n\n';

/**
 * Text of a file. gzip and Zstandard are unpacked; of Parquet, the texts of the column `text` are joined by an empty
 * line.
 * @param most Maximum bytes, unpacked.
 * @throws UserError if the file cannot be read, is too large, or is not UTF-8, or has no column `text`.
 */
export async function readWholeText(
  file: string,
  { most, suggestion }: { readonly most: number; readonly suggestion: string },
): Promise<string> {
  const { name, chunks, stored } = openSource(file, () => {}, 'text');
  const bytes = await readStreamAtMost(chunks, most);
  const text = decodedText(name, bytes, { most, suggestion });
  return stored.packing === 'parquet' ? joinedRows(name, text) : text;
}

function joinedRows(name: string, lines: string): string {
  const rows = lines.split('\n').slice(0, -1);
  return rows.map((line) => textOfRow(name, parseJson(line))).join(BETWEEN_ROWS);
}

function textOfRow(name: string, row: unknown): string {
  if (!isRecord(row)) return '';
  if (typeof row.text === 'string') return row.text;
  const columns = Object.keys(row).filter((key) => key !== 'text');
  // A row without its text has a null there.
  if (columns.length === 0) return '';
  throw new UserError(
    'refused-file',
    `${name}: expected a column text, found ${joined(columns.slice(0, 6).map((each) => shortened(each, 40)))}`,
    { suggestion: 'write the texts as a text file' },
  );
}
