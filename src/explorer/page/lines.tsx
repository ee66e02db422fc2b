/** Command lines to copy. */
import { useState } from 'preact/hooks';
import { copyText } from './browser.js';

export function Lines({ title, lines }: { title: string; lines: readonly string[] }) {
  const [copied, setCopied] = useState<string | undefined>();
  return (
    <section class="panel" aria-labelledby="lines">
      <h2 id="lines">{title}</h2>
      <ul class="lines">
        {lines.map((line) => (
          <li key={line}>
            <code>{line}</code>
            <button
              type="button"
              onClick={async () => setCopied((await copyText(line)) ? line : undefined)}
            >
              {copied === line ? 'Copied' : 'Copy'}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
