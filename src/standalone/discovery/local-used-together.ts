import { type UsedTogether, usedTogether } from '../../discovery/graph/used-together.ts';
import type { ToolTask } from '../../tempering/hygiene/tool-task.ts';

/** The tools that one agent uses together, by its recorded tasks. */
export class LocalUsedTogether {
  #pairs: readonly UsedTogether[] = [];

  get pairs(): readonly UsedTogether[] {
    return this.#pairs;
  }

  /** Call it with all tasks after each new one. */
  count(tasks: readonly ToolTask[]): void {
    this.#pairs = usedTogether(tasks);
  }
}
