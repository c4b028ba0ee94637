import { Notifier } from '../../lib/async/notifier.ts';

/** Wakes those who wait for the messages of an agent, and of a thousand agents no others. */
export class AgentChanges {
  readonly #agents = new Map<string, { version: number; readonly notifier: Notifier }>();

  /** Counts the changes of an agent, so that none is missed between a look and the wait after it. */
  version(agent: string): number {
    return this.#of(agent).version;
  }

  /** Resolves at the next change of the agent or when the signal aborts. */
  wait(agent: string, signal: AbortSignal): Promise<void> {
    return this.#of(agent).notifier.wait(signal);
  }

  wake(agent: string): void {
    const found = this.#of(agent);
    found.version += 1;
    found.notifier.notifyAll();
  }

  wakeAll(): void {
    for (const agent of this.#agents.keys()) this.wake(agent);
  }

  #of(agent: string): { version: number; readonly notifier: Notifier } {
    const found = this.#agents.get(agent) ?? { version: 0, notifier: new Notifier() };
    this.#agents.set(agent, found);
    return found;
  }
}
