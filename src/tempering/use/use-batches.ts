import type { ToolUse } from '../types.ts';
import type { BackgroundTasks } from '../lifecycle/background-tasks.ts';

/** Time for which the uses of one tool are collected before they are written. */
const BATCH_WINDOW_MS = 250;

export interface ToolUseBatcherDeps {
  background: BackgroundTasks;
  /** Waits; ends early when the engine stops. */
  sleep(milliseconds: number): Promise<void>;
  /** Stores the uses of one tool and evaluates promotion and demotion. */
  process(uses: readonly ToolUse[]): Promise<void>;
}

/**
 * Collects the uses of each tool and processes them in batches, asynchronously to the calls, because writing a record costs more than
 * a call. A crash loses the uses of the current batch window; no caller has received them as recorded.
 */
export class ToolUseBatcher {
  readonly #deps: ToolUseBatcherDeps;
  readonly #collecting = new Map<string, ToolUse[]>();

  constructor(deps: ToolUseBatcherDeps) {
    this.#deps = deps;
  }

  add(use: ToolUse): void {
    const batch = this.#collecting.get(use.digest);
    if (batch !== undefined) {
      batch.push(use);
      return;
    }
    const newBatch = [use];
    this.#collecting.set(use.digest, newBatch);
    this.#deps.background.run(async () => {
      await this.#deps.sleep(BATCH_WINDOW_MS);
      this.#collecting.delete(use.digest);
      await this.#deps.process(newBatch);
    });
  }
}
