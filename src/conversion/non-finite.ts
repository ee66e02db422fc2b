/** Values of tables that are no finite numbers. */
import { SrteFaults } from './srte-faults.js';

/** The values of a table that are not finite. */
export interface NonFinite {
  readonly count: number;
  /** Where the first of them stands. */
  readonly row: number;
  readonly column: number;
  readonly value: 'NaN' | 'Infinity' | '-Infinity';
}

/** What is not finite in tables that are read block by block. */
export class NonFiniteValues {
  /** Null for a table whose values are all finite. */
  readonly found: (NonFinite | null)[];
  readonly #columns: number;

  /** @param tables Their number. @param columns Of each of them. */
  constructor(tables: number, columns: number) {
    this.found = new Array<null>(tables).fill(null);
    this.#columns = columns;
  }

  /** @param values Rows of a table from `firstRow` on. */
  add(table: number, values: Float64Array, firstRow: number): void {
    for (const [index, value] of values.entries()) {
      if (Number.isFinite(value)) continue;
      const known = this.found[table];
      this.found[table] = known
        ? { ...known, count: known.count + 1 }
        : {
            count: 1,
            row: firstRow + Math.floor(index / this.#columns),
            column: index % this.#columns,
            value: String(value) as NonFinite['value'],
          };
    }
  }

  /** @param names Of the tables. @throws UserError when a value is not finite. */
  refuseAny(file: string, names: readonly string[]): void {
    const faults = new SrteFaults(file);
    for (const [table, found] of this.found.entries()) {
      if (found === null) continue;
      const others = found.count > 1 ? `, and ${found.count - 1} more that are not finite` : '';
      faults.add({
        rule: 'srte-finite',
        tensor: names[table] ?? '',
        message: `holds ${found.value} in row ${found.row}, column ${found.column} (layer ${table})${others}`,
        suggestion: 'mend it, or take the table of another layer with --merge layer:N',
      });
    }
    faults.throwAny();
  }
}
