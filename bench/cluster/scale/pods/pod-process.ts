import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { HostMessage, PodMessage, PodReport, ToPods } from './protocol.ts';

/** What the reports of a process are for. */
export interface PodProcessListeners {
  readonly onReport: (report: PodReport) => void;
  /** A token for the pod of the agent (`namespace/name`). */
  readonly token: (agent: string) => Promise<string>;
}

/** A process of simulated pods. Ends with the benchmark, also when that is killed: its channel closes. */
export class PodProcess implements AsyncDisposable {
  readonly #child: ChildProcess;

  constructor(host: Omit<HostMessage, 'kind'>, { onReport, token }: PodProcessListeners) {
    this.#child = fork(new URL('main.ts', import.meta.url), { stdio: 'inherit' });
    this.#send({ kind: 'host', ...host });
    this.#child.on('message', (report: PodReport) => {
      if (report.kind !== 'token') return onReport(report);
      const agent = report.text;
      token(agent).then(
        (renewed) => this.#send({ kind: 'token', agent, token: renewed }),
        () => this.#send({ kind: 'token', agent }),
      );
    });
  }

  start(pod: Omit<PodMessage, 'kind'>): void {
    this.#send({ kind: 'pod', ...pod });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited =
      this.#child.exitCode === null && this.#child.signalCode === null ? once(this.#child, 'exit') : undefined;
    this.#send({ kind: 'stop' });
    await exited;
  }

  #send(message: ToPods): void {
    if (this.#child.connected) this.#child.send(message);
  }
}
