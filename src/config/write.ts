import { stringify } from 'yaml';

/** A document as YAML text. Numbers stay numbers to readers of YAML 1.1 too: `1.0e-5`, not `1e-5`. */
export function documentText(value: Record<string, unknown>): string {
  // Such readers take an exponent without a dot before it for a text.
  return stringify(value, { lineWidth: 100 }).replace(
    /^(\s*(?:- )*(?:[^:\n"']+: )?-?\d+)(e[-+]?\d+)$/gim,
    '$1.0$2',
  );
}
