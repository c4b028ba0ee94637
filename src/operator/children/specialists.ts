import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import { TYPES } from '../kube/types.ts';
import { parentUidOf, type StoredChild } from './child-object.ts';

export interface SpecialistsDeps {
  client: Pick<KubeClient, 'list' | 'delete'>;
  clock: Clock;
  log: Logger;
  /** Undefined: all namespaces. */
  namespaces: readonly string[] | undefined;
}

/**
 * Ends specialists that are past their time. Usually the gateway asks for the end of one with its answer; a specialist that never got its
 * task, or never answers, ends here.
 */
export async function endLateSpecialists(deps: SpecialistsDeps, signal: AbortSignal): Promise<void> {
  const { client, clock, log, namespaces } = deps;
  const places = namespaces === undefined ? [{}] : namespaces.map((namespace) => ({ namespace }));
  for (const place of places) {
    const selector = { ...place, labelSelector: LABELS.specialist };
    const late = (await client.list<StoredChild>(TYPES.agents, selector, signal)).filter((one) => isLate(one, clock));
    for (const { metadata } of late) {
      const { namespace = '', name, uid = '' } = metadata;
      await client.delete(TYPES.agents, { namespace, name }, { uid }, signal);
      log.info({ namespace, agent: name }, 'ended a specialist that did not answer in its time');
    }
  }
}

/** Only what an agent started: users write annotations too. */
function isLate(object: StoredChild, clock: Clock): boolean {
  const endsAt = Date.parse(object.metadata.annotations?.[ANNOTATIONS.endsAt] ?? '');
  const { deletionTimestamp } = object.metadata;
  return parentUidOf(object) !== undefined && deletionTimestamp === undefined && endsAt <= clock.now().getTime();
}
