import { ANNOTATIONS } from '../../api/cluster.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Cache } from '../kube/cache.ts';
import { type StoredAgent, TYPES } from '../kube/types.ts';
import { parentUidOf } from './child-object.ts';

export interface SpecialistsDeps {
  client: Pick<KubeClient, 'delete'>;
  /** With the ends of specialists. */
  agents: Pick<Cache<StoredAgent>, 'list'>;
  clock: Clock;
  log: Logger;
}

/**
 * Ends specialists that are past their time. Usually the gateway asks for the end of one with its answer; a specialist that never got its
 * task, or never answers, ends here.
 */
export async function endLateSpecialists(deps: SpecialistsDeps, signal: AbortSignal): Promise<void> {
  const { client, agents, clock, log } = deps;
  for (const { metadata } of agents.list().filter((one) => isLate(one, clock))) {
    const { namespace, name, uid } = metadata;
    await client.delete(TYPES.agents, { namespace, name }, { uid }, signal);
    log.info({ namespace, agent: name }, 'ended a specialist that did not answer in its time');
  }
}

/** Only what an agent started: users write annotations too. */
function isLate(agent: StoredAgent, clock: Clock): boolean {
  const { annotations, deletionTimestamp } = agent.metadata;
  const endsAt = Date.parse(annotations?.[ANNOTATIONS.endsAt] ?? '');
  return parentUidOf(agent) !== undefined && deletionTimestamp === undefined && endsAt <= clock.now().getTime();
}
