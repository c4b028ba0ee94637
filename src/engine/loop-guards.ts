import type { CallerContext } from '../tools/contract.ts';
import { createLoopGuard, type LoopGuard } from '../tools/loop-guard.ts';

/** One loop guard per root message, for as long as the message is processed. */
export class LoopGuards {
  readonly #guards = new Map<string, LoopGuard>();

  get({ rootMessage }: CallerContext): LoopGuard {
    const guard = this.#guards.get(rootMessage) ?? createLoopGuard();
    this.#guards.set(rootMessage, guard);
    return guard;
  }

  async withGuard<T>(rootMessage: string, work: (rootMessage: string) => Promise<T>): Promise<T> {
    try {
      return await work(rootMessage);
    } finally {
      this.#guards.delete(rootMessage);
    }
  }
}
