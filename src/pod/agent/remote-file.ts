import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { FoundFile } from '../../tools/host-files.ts';
import { valueOf } from '../socket/answers.ts';
import type { AgentFrame, SandboxFrame } from '../socket/protocol.ts';

export interface RemoteFileParts {
  id: number;
  send: (frame: AgentFrame) => boolean;
  resolve: (value: Json) => void;
  reject: (error: TemperError) => void;
  /** Asked where a file really lies before it is read; absent for a file tool. */
  refuse?: (found: FoundFile) => string | undefined;
}

/** One piece of work on files in the sandbox container. */
export class RemoteFile {
  readonly #parts: RemoteFileParts;
  #asked = false;

  constructor(parts: RemoteFileParts) {
    this.#parts = parts;
  }

  withdraw(): void {
    const { id, send, reject } = this.#parts;
    send({ type: 'cancel', id });
    reject(new TemperError('TEMPER_CANCELLED', 'the caller withdrew the call'));
  }

  take(frame: SandboxFrame): boolean {
    if (frame.type === 'found') return this.#judge(frame.found);
    if (frame.type !== 'result') return false;
    const { resolve, reject } = this.#parts;
    if (frame.answer.ok) resolve(valueOf(frame.answer));
    else reject(new TemperError(frame.answer.code, frame.answer.message));
    return true;
  }

  gone(reason: string): void {
    const message = `the sandbox container was lost: ${reason}`;
    this.#parts.reject(new TemperError('TEMPER_SANDBOX_UNAVAILABLE', message, { retry: 'backoff' }));
  }

  #judge(found: FoundFile): boolean {
    const { id, send, refuse } = this.#parts;
    if (refuse === undefined || this.#asked) return false;
    this.#asked = true;
    const refusal = refuse(found);
    send({ type: 'verdict', id, ...(refusal === undefined ? {} : { refusal }) });
    return true;
  }
}
