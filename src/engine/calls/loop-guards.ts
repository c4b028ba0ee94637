import type { CallerContext } from '../../tools/contract.ts';
import { createLoopGuard, type LoopGuard } from '../../tools/loop-guard.ts';

/** One loop guard per root message, for as long as a message of its chain is processed. */
export class LoopGuards {
  readonly #guards = new Map<string, { guard: LoopGuard; messages: number }>();

  get({ rootMessage }: CallerContext): LoopGuard {
    return this.#guardOf(rootMessage).guard;
  }

  async withGuard<T>(rootMessage: string, work: (rootMessage: string) => Promise<T>): Promise<T> {
    const counted = this.#guardOf(rootMessage);
    counted.messages += 1;
    try {
      return await work(rootMessage);
    } finally {
      counted.messages -= 1;
      if (counted.messages === 0) this.#guards.delete(rootMessage);
    }
  }

  #guardOf(rootMessage: string): { guard: LoopGuard; messages: number } {
    const found = this.#guards.get(rootMessage) ?? { guard: createLoopGuard(), messages: 0 };
    this.#guards.set(rootMessage, found);
    return found;
  }
}
