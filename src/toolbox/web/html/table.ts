const MAX_CELLS = 50;

/** The rows of one table, of which no cell contains another table. */
export class Table {
  readonly #rows: string[][] = [];
  #row: string[] | undefined;

  startRow(): void {
    this.endRow();
    this.#row = [];
  }

  endRow(): void {
    if (this.#row !== undefined && this.#row.length > 0) this.#rows.push(this.#row);
    this.#row = undefined;
  }

  addCell(text: string): void {
    this.#row ??= [];
    if (this.#row.length < MAX_CELLS) this.#row.push(text);
  }

  /** The lines of the table: of a Markdown table, or of cells with tabs between them. */
  lines(format: 'markdown' | 'text'): string[] {
    this.endRow();
    const columns = this.#rows.reduce((most, row) => Math.max(most, row.length), 0);
    if (columns < 2) return this.#rows.flat().filter((text) => text !== '');
    if (format === 'text') return this.#rows.map((row) => row.join('\t'));
    const lines = this.#rows.map((row) => markdownRow(row, columns));
    return [...lines.slice(0, 1), `|${' --- |'.repeat(columns)}`, ...lines.slice(1)];
  }
}

function markdownRow(row: readonly string[], columns: number): string {
  const cells = Array.from({ length: columns }, (_, index) => (row[index] ?? '').replaceAll('|', String.raw`\|`));
  return `| ${cells.join(' | ')} |`;
}
