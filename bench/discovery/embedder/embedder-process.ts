import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** The process of `server.py`. It ends when this one closes its standard input. */
export class EmbedderProcess implements AsyncDisposable {
  readonly #process: ChildProcess;
  /** Of its interface, with `/v1`. */
  readonly url: string;

  private constructor(process: ChildProcess, url: string) {
    this.#process = process;
    this.url = url;
  }

  /** `python`: an interpreter with the packages of `requirements.txt`. */
  static async start(python: string): Promise<EmbedderProcess> {
    const child = spawn(python, [join(import.meta.dirname, 'server.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
    await Promise.race([once(child, 'spawn'), once(child, 'error').then(([error]) => Promise.reject(error as Error))]);
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.startsWith('http://')) return new EmbedderProcess(child, line);
    }
    throw new Error(`${python} ended before it served; make bench-embedder installs its packages`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode, stdin } = this.#process;
    if (exitCode !== null || signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    stdin?.end();
    await ended;
  }
}
