import { createMemory } from '../nats/memory.ts';
import { openSharedLedger } from '../nats/ledger.ts';
import { documentsIn } from '../nats/ledger-store.ts';
import { modelHealthStore } from '../nats/model-health.ts';
import { BUCKETS } from '../nats/names.ts';
import { openSessionRegistry } from '../nats/session-registry.ts';
import { createSessionStore } from '../nats/session-store.ts';
import { countedLedger } from './counted-ledger.ts';
import { discoveryRoutes } from './discovery/routes.ts';
import { withStandingTools } from './discovery/standing-tools.ts';
import { usageReports } from './ledger-usage.ts';
import { memoryRoutes } from './memory.ts';
import { type GatewayModels, openGatewayModels } from './models/gateway-models.ts';
import { observedModels } from './models/observed-models.ts';
import { modelRoutes } from './models/routes.ts';
import type { OpenParts, PartsContext } from './parts.ts';
import { reviewRoutes } from './review/routes.ts';
import { sessionRoutes } from './sessions.ts';

/** Models, ledger, review, sessions and memory of one gateway. Throws TEMPER_MANIFEST_INVALID for a wrong `models` section. */
export const openModelParts: OpenParts = async (context) => {
  const { clock, ids, log, metrics, bus, directory, demotions, library } = context;
  const models = openGatewayModels(context.models, { clock, random: Math.random });
  const ledger = openSharedLedger({
    store: documentsIn(bus, BUCKETS.ledger),
    clock,
    ids,
    random: Math.random,
    failed: (error) => log.warn({ error }, 'what was spent could not be written down; it is tried again'),
  });
  const ofSessions = openSessionRegistry(bus);
  const registry = withStandingTools(ofSessions, library, directory);
  const stopTelling = tellHealth(models, context);
  const speaking = {
    models: observedModels(models.set, { clock, metrics, labelsOf: models.labelsOf }),
    health: models.health,
    ledger: countedLedger(ledger, metrics),
  };
  return {
    routes: [
      modelRoutes(speaking),
      reviewRoutes({ ...speaking, registry, demotions }),
      sessionRoutes({ sessionsOf: (agentUid) => createSessionStore(bus, agentUid), registry, demotions }),
      memoryRoutes((agentUid) => createMemory(bus, agentUid)),
      discoveryRoutes({ library, registry: ofSessions }),
    ],
    catalog: models.catalog,
    usage: usageReports(ledger, directory),
    async [Symbol.asyncDispose]() {
      await stopTelling();
      await ledger.close();
    },
  };
};

/** Writes each change of a provider's state where conditions are made from it, in order; the answer ends it. */
function tellHealth({ health }: GatewayModels, { bus, log }: PartsContext): () => Promise<void> {
  const store = modelHealthStore(bus);
  let tail: Promise<void> = Promise.resolve();
  const stop = health.changes((changed) => {
    if (changed.state !== 'Available') {
      log.warn({ provider: changed.provider, state: changed.state, code: changed.code }, 'a provider of models fails');
    }
    tail = tail
      .then(() => store.put(changed))
      .catch((error: unknown) => log.warn({ error }, 'the state of a provider could not be told'));
  });
  return async () => {
    stop();
    await tail;
  };
}
