import type { ToolUse } from '../tempering/types.ts';
import type { Background } from './background.ts';

/** How long uses of one tool are collected before they are written, in milliseconds. */
const COLLECT_MILLISECONDS = 250;

export interface UseBatchesDeps {
  background: Background;
  /** Ends early when the engine stops. */
  pause(milliseconds: number): Promise<void>;
  /** Keeps the uses of one tool and does what follows from them. */
  process(uses: readonly ToolUse[]): Promise<void>;
}

/**
 * Uses of each tool, collected and handled together off the way of the calls: a record costs more than a call. A crash loses the
 * uses of the last moment, which were reported to nobody.
 */
export class UseBatches {
  readonly #deps: UseBatchesDeps;
  readonly #collecting = new Map<string, ToolUse[]>();

  constructor(deps: UseBatchesDeps) {
    this.#deps = deps;
  }

  add(use: ToolUse): void {
    const batch = this.#collecting.get(use.digest);
    if (batch !== undefined) {
      batch.push(use);
      return;
    }
    const begun = [use];
    this.#collecting.set(use.digest, begun);
    this.#deps.background.run(async () => {
      await this.#deps.pause(COLLECT_MILLISECONDS);
      this.#collecting.delete(use.digest);
      await this.#deps.process(begun);
    });
  }
}
