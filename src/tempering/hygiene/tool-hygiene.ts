import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { STRATEGY_DEFAULTS } from '../../api/v1alpha1/trust/strategy.ts';
import type { EventSink } from '../../tools/events.ts';
import type { Registry } from '../registry/registry.ts';
import { type ToolOwner, widestActive } from '../registry/visibility.ts';
import { assessTools, describeAssessment } from './assess-tools.ts';
import type { ToolTask } from './tool-task.ts';

export interface ToolHygieneDeps {
  readonly registry: Registry;
  readonly events: EventSink;
  readonly owner: ToolOwner;
  readonly policy: TrustPolicySpec;
}

/** Deactivates the tools of one agent that its tasks show to be harmful. Call it with the latest tasks after each one. */
export async function deactivateHarmfulTools(deps: ToolHygieneDeps, tasks: readonly ToolTask[]): Promise<void> {
  const { registry, events, owner } = deps;
  const counted = tasks.map((task) => ({
    ...task,
    tools: task.tools.filter((digest) => task.endedAt > registry.reactivatedAt(digest, owner)),
  }));
  for (const assessment of assessTools(counted, maxHarmPercent(deps.policy))) {
    const { digest, isHarmful } = assessment;
    if (!isHarmful || registry.deactivation(digest, owner) !== undefined) continue;
    const tool = widestActive(registry, { digest, ...owner })?.artifact.name;
    if (tool === undefined) continue;
    const reason = `${describeAssessment(assessment)}; forge a corrected version, or verify this one again with temper reactivate ${tool}`;
    const done = registry.deactivate(digest, owner, reason);
    events({ type: 'demotion', tool, digest, reason: `deactivated for this agent: ${reason}` });
    await done;
  }
}

/** The limit of a policy, or the default. */
export function maxHarmPercent({ decay }: Pick<TrustPolicySpec, 'decay'>): number {
  return decay?.maxHarmPercent ?? STRATEGY_DEFAULTS.maxHarmPercent;
}
