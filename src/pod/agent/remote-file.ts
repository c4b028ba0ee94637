import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { ResolvedFile } from '../../tools/host/host-files.ts';
import { valueOrThrow } from '../socket/results.ts';
import type { AgentFrame, SandboxFrame } from '../socket/protocol.ts';

export interface RemoteFileDeps {
  id: number;
  send: (frame: AgentFrame) => boolean;
  resolve: (value: Json) => void;
  reject: (error: TemperError) => void;
  /** Called with the real location of a file before it is read; returns the reason for a refusal. Absent for a file tool. */
  refuse?: (found: ResolvedFile) => string | undefined;
}

/** One file request to the sandbox container: a file tool call or a file read. */
export class RemoteFile {
  readonly #deps: RemoteFileDeps;
  #locationChecked = false;

  constructor(deps: RemoteFileDeps) {
    this.#deps = deps;
  }

  cancel(): void {
    const { id, send, reject } = this.#deps;
    send({ type: 'cancel', id });
    reject(new TemperError('TEMPER_CANCELLED', 'the caller cancelled the call'));
  }

  handleFrame(frame: SandboxFrame): boolean {
    if (frame.type === 'found') return this.#checkLocation(frame.found);
    if (frame.type !== 'result') return false;
    const { resolve, reject } = this.#deps;
    if (frame.answer.ok) resolve(valueOrThrow(frame.answer));
    else reject(new TemperError(frame.answer.code, frame.answer.message));
    return true;
  }

  connectionLost(reason: string): void {
    const message = `the connection to the sandbox container was lost: ${reason}`;
    this.#deps.reject(new TemperError('TEMPER_SANDBOX_UNAVAILABLE', message, { retry: 'backoff' }));
  }

  #checkLocation(found: ResolvedFile): boolean {
    const { id, send, refuse } = this.#deps;
    if (refuse === undefined || this.#locationChecked) return false;
    this.#locationChecked = true;
    const refusal = refuse(found);
    send({ type: 'verdict', id, ...(refusal === undefined ? {} : { refusal }) });
    return true;
  }
}
