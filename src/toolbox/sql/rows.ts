import type { Json } from '../../lib/json.ts';
import { SQL_LIMITS } from './database.ts';

/** Rows up to the limits of a result. */
export class Rows {
  readonly values: Json[][] = [];
  truncated = false;
  readonly #maxRows: number;
  #characters = 0;

  constructor(maxRows: number) {
    this.#maxRows = maxRows;
  }

  /** How many rows are needed: one more than fit shows that there are more. */
  get wanted(): number {
    return this.truncated ? 0 : this.#maxRows + 1 - this.values.length;
  }

  add(row: readonly Json[]): void {
    if (this.truncated) return;
    const bounded = row.map((value) => this.#bounded(value));
    this.#characters += JSON.stringify(bounded).length;
    if (this.values.length >= this.#maxRows || this.#characters > SQL_LIMITS.resultCharacters) this.truncated = true;
    else this.values.push(bounded);
  }

  #bounded(value: Json): Json {
    const text = typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
    if (typeof text !== 'string' || text.length <= SQL_LIMITS.valueCharacters) return value;
    this.#isCut = true;
    return `${text.slice(0, SQL_LIMITS.valueCharacters)}…`;
  }

  #isCut = false;

  get isIncomplete(): boolean {
    return this.truncated || this.#isCut;
  }
}
