import { type Json, member, textAt } from '../../lib/json.ts';
import { columnWidths, formatCell, formatRows, printableCells } from '../table.ts';

export interface ServerTableOptions {
  /** Also the columns of lower priority. */
  readonly wide: boolean;
  /** A first column with the namespace of each object. */
  readonly withNamespace: boolean;
  /** Stands before each name. */
  readonly prefix: string;
}

/** Rows of Table responses of the API server, with the columns of the first response. */
export class ServerTable {
  readonly #columns: readonly { index: number; heading: string }[];
  readonly #options: ServerTableOptions;
  readonly #rows: string[][] = [];
  #widths: readonly number[] | undefined;

  constructor(first: Json, options: ServerTableOptions) {
    this.#options = options;
    this.#columns = listAt(first, 'columnDefinitions').flatMap((column, index) =>
      options.wide || member(column, 'priority') === 0
        ? [{ index, heading: textAt(column, ['name']).toUpperCase() }]
        : [],
    );
  }

  get isEmpty(): boolean {
    return this.#rows.length === 0;
  }

  add(response: Json): void {
    this.#rows.push(...this.#cellsOf(response));
  }

  /** Headings and rows. Later rows keep these column widths. */
  text(): string {
    const headings = this.#columns.map(({ heading }) => heading);
    const cells = [this.#options.withNamespace ? ['NAMESPACE', ...headings] : headings, ...this.#rows];
    this.#widths = columnWidths(cells);
    return formatRows(cells, this.#widths);
  }

  /** The rows of a later response; the first ones bring the headings when the list was empty. */
  laterText(response: Json): string {
    if (this.#widths === undefined) {
      this.add(response);
      return this.isEmpty ? '' : this.text();
    }
    return formatRows(this.#cellsOf(response), this.#widths);
  }

  #cellsOf(response: Json): string[][] {
    const { withNamespace, prefix } = this.#options;
    return listAt(response, 'rows').map((row) => {
      const values = listAt(row, 'cells');
      const [name = '', ...rest] = this.#columns.map(({ index }) => formatCell(values[index], ''));
      const namespace = withNamespace ? [textAt(row, ['object', 'metadata', 'namespace'])] : [];
      return printableCells([...namespace, `${prefix}${name}`, ...rest]);
    });
  }
}

function listAt(value: Json, key: string): Json[] {
  const found = member(value, key);
  return Array.isArray(found) ? found : [];
}
