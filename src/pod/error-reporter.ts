import { isTemperError } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';

/** Logs the first of several consecutive failures with the same code, and the recovery. */
export class ErrorReporter {
  readonly #log: Logger;
  readonly #message: string;
  #reportedCode: string | undefined;

  constructor(log: Logger, message: string) {
    this.#log = log;
    this.#message = message;
  }

  report(error: unknown): void {
    const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
    if (this.#reportedCode !== code) this.#log.warn({ error }, this.#message);
    this.#reportedCode = code;
  }

  clear(): void {
    if (this.#reportedCode !== undefined) this.#log.info({ code: this.#reportedCode }, `recovered: ${this.#message}`);
    this.#reportedCode = undefined;
  }
}
