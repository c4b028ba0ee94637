import { randomInt } from 'node:crypto';
import type { JudgeSettings } from '../../models/named-models.ts';
import { createNatsJudgeStandings } from '../../nats/judge-standings.ts';
import { type Canaries, createCanaries } from '../../tempering/canary/canaries.ts';
import { parseStanding } from '../../tempering/canary/standing.ts';
import { createJudgeStandings } from '../../tempering/canary/standings.ts';
import type { ModuleContext } from '../modules.ts';

export interface SharedCanaryOptions {
  judges: JudgeSettings | undefined;
  /** Whether the configuration lists this `provider/model`. */
  isListed: (model: string) => boolean;
}

/**
 * Canaries whose outcomes all gateways share. Agents' policies name judges freely, so models that the configuration does not list
 * share one standing per provider: their number is bounded by the configuration.
 */
export function sharedCanaries(context: ModuleContext, { judges, isListed }: SharedCanaryOptions): Canaries {
  const { bus, clock, ids, log, metrics } = context;
  const documents = createNatsJudgeStandings(bus);
  metrics.watchAll('temper_judges_suspended', async () => {
    // A scrape does not wait for NATS: without a connection the last value stays.
    if (!bus.state().connected) throw new Error('NATS is not connected');
    const standings = (await documents.list()).flatMap((value) => parseStanding(value) ?? []);
    const resumed = new Set(judges?.resumed);
    const suspended = standings.filter(({ suspension }) => suspension !== undefined && !resumed.has(suspension.id));
    return [{ labels: {}, value: suspended.length }];
  });
  return createCanaries({
    standings: createJudgeStandings(documents),
    clock,
    random: () => randomInt(2 ** 32) / 2 ** 32,
    percent: judges?.canaryPercent ?? 0,
    standingOf: (model) => (isListed(model) ? model : `${model.slice(0, Math.max(0, model.indexOf('/')))}/*`),
    resumed: judges?.resumed ?? [],
    id: () => ids.next('suspension'),
    report({ standing: { model, suspension }, outcome, role }) {
      metrics.count('temper_judge_canaries_total', { role, outcome: outcome.caught ? 'caught' : 'passed' });
      if (outcome.caught) return;
      const details = { model, role, mutation: outcome.mutation, suspension: suspension?.id };
      log.error(details, 'a judge approved a known-bad tool and is suspended; gateway.judges.resumed lifts it');
    },
  });
}
