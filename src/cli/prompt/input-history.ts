import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasErrno } from '../../lib/errors.ts';

/** The inputs of a user at the prompt of `temper run`, in a file of the state folder that only its owner may read. */
export interface InputHistory {
  /** Newest first. */
  load(): string[];
  save(inputs: readonly string[]): void;
}

/** The prompt shows an input as it is stored. A user types and pastes no control characters, so another program wrote such an input. */
function isTyped(input: unknown): input is string {
  return typeof input === 'string' && !Array.from(input).some((character) => isControl(character.charCodeAt(0)));
}

function isControl(code: number): boolean {
  const isLayout = code === 0x09 || code === 0x0a;
  return (code < 0x20 && !isLayout) || (code >= 0x7f && code <= 0x9f);
}

export function inputHistory(state: string): InputHistory {
  const file = join(state, 'input-history.json');
  return {
    load() {
      try {
        const stored: unknown = JSON.parse(readFileSync(file, 'utf8'));
        return Array.isArray(stored) ? stored.filter(isTyped) : [];
      } catch (error) {
        // The history is a convenience: a damaged file starts a new one.
        if (error instanceof SyntaxError || hasErrno(error, 'ENOENT')) return [];
        throw error;
      }
    },
    save(inputs) {
      writeFileSync(file, `${JSON.stringify(inputs, null, 1)}\n`, { mode: 0o600 });
      chmodSync(file, 0o600);
    },
  };
}
