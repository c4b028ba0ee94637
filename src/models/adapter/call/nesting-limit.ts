const NEW_LINE = 0x0a;
const RETURN = 0x0d;
const LIST = 0x5b;
const OBJECT = 0x7b;

/**
 * Counts the lists and objects of a JSON body, or of one server-sent event, before anything parses it: a megabyte of `[],[],` becomes a hundred
 * megabytes of memory. Brackets inside texts count too, so the limit is far above that of any real answer.
 */
export class NestingLimit {
  readonly #maximum: number;
  /** The body is one JSON value, so an empty line in it ends nothing. */
  readonly #isOneValue: boolean;
  #count = 0;
  #lineLength = 0;

  constructor(maximum: number, isOneValue: boolean) {
    this.#maximum = maximum;
    this.#isOneValue = isOneValue;
  }

  /** False when the next bytes of the body exceed the limit. */
  allows(bytes: Uint8Array): boolean {
    for (const byte of bytes) {
      if (byte === NEW_LINE) this.#endLine();
      else if (byte !== RETURN) this.#lineLength += 1;
      if (byte !== LIST && byte !== OBJECT) continue;
      this.#count += 1;
      if (this.#count > this.#maximum) return false;
    }
    return true;
  }

  /** An empty line ends an event. */
  #endLine(): void {
    if (this.#lineLength === 0 && !this.#isOneValue) this.#count = 0;
    this.#lineLength = 0;
  }
}
