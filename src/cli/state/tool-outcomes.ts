import { openAudit } from '../../audit/recorded-trail.ts';
import type { Digest } from '../../lib/canonical.ts';
import { systemClock } from '../../lib/clock.ts';
import { type JsonObject, textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { localToolTasks } from '../../standalone/levels/local-tasks.ts';
import { deactivationKey } from '../../tempering/registry/deactivation.ts';
import { foldActivations } from '../../tempering/registry/activation.ts';

/** For each agent of the namespace whose tasks called the tool, or for which it is deactivated: how those tasks ended. */
export async function toolOutcomes(records: RecordStore, digest: Digest, namespace: string): Promise<JsonObject[]> {
  const chain = await openAudit({ records, clock: systemClock });
  const { current } = foldActivations(await chain.records()).deactivations;
  const agents = (await records.list('agents')).filter(
    ({ value }) => textAt(value, ['metadata', 'namespace'], 'default') === namespace,
  );
  const found = await Promise.all(
    agents.map(async ({ name: agent }) => {
      const all = await localToolTasks(records, { name: agent, namespace });
      const own = all.filter(({ tools }) => tools.includes(digest));
      const endedBadly = (tasks: typeof all): number => tasks.filter(({ endedWell }) => !endedWell).length;
      const deactivated = current.get(deactivationKey({ namespace, agent }, digest))?.reason;
      if (own.length === 0 && deactivated === undefined) return [];
      return {
        agent,
        tasks: own.length,
        endedBadly: endedBadly(own),
        otherTasks: all.length - own.length,
        othersEndedBadly: endedBadly(all) - endedBadly(own),
        ...(deactivated === undefined ? {} : { deactivated }),
      };
    }),
  );
  return found.flat();
}
