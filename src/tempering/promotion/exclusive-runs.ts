import { isTemperError, messageOf } from '../../lib/errors.ts';
import type { PromotionState } from '../types.ts';
import type { PromotionSubject } from './promotion-state-store.ts';

interface InProgress {
  state: PromotionState;
  done: PromiseWithResolvers<void>;
}

/** Runs at most one promotion per tool, owner and tier. */
export class ExclusiveRuns {
  readonly #inProgress = new Map<string, InProgress>();

  /** A concurrent call returns the state of the running one, or waits for its turn with `wait`. */
  async run(subject: PromotionSubject, work: () => Promise<PromotionState>, wait = false): Promise<PromotionState> {
    const key = keyOf(subject);
    for (let running = this.#inProgress.get(key); running !== undefined; running = this.#inProgress.get(key)) {
      if (!wait) return running.state;
      await running.done.promise;
    }
    const mine: InProgress = { state: { state: 'Verifying' }, done: Promise.withResolvers() };
    this.#inProgress.set(key, mine);
    try {
      return await work();
    } catch (error) {
      // The sandbox, the models or the approvals are unavailable: no verdict about the tool; the next use retries.
      if (isTemperError(error)) return { state: 'Candidate', missing: [`${error.code}: ${messageOf(error, 300)}`] };
      throw error;
    } finally {
      this.#inProgress.delete(key);
      mine.done.resolve();
    }
  }

  /** The state that concurrent calls get while the promotion runs. */
  setState(subject: PromotionSubject, state: PromotionState): void {
    const running = this.#inProgress.get(keyOf(subject));
    if (running !== undefined) running.state = state;
  }
}

function keyOf({ digest, agent, namespace, to }: PromotionSubject): string {
  return `${namespace}/${agent} ${digest} ${to}`;
}
