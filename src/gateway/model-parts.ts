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

/** Opens models, ledger, review, sessions and memory of one gateway. Throws TEMPER_MANIFEST_INVALID for an invalid `models` section. */
export const openModelParts: OpenParts = async (context) => {
  const { clock, ids, log, metrics, bus, directory, demotions, library } = context;
  const models = openGatewayModels(context.models, { clock, random: Math.random });
  const ledger = openSharedLedger({
    store: documentsIn(bus, BUCKETS.ledger),
    clock,
    ids,
    random: Math.random,
    failed: (error) => log.warn({ error }, 'spend could not be stored; it will be retried'),
  });
  const sessionRegistry = openSessionRegistry(bus);
  const registry = withStandingTools(sessionRegistry, library, directory);
  const stopPublishing = publishHealth(models, context);
  const modelDeps = {
    models: observedModels(models.set, { clock, metrics, labelsOf: models.labelsOf }),
    health: models.health,
    ledger: countedLedger(ledger, metrics),
  };
  return {
    routes: [
      modelRoutes(modelDeps),
      reviewRoutes({ ...modelDeps, registry, demotions }),
      sessionRoutes({ sessionsOf: (agentUid) => createSessionStore(bus, agentUid), registry, demotions }),
      memoryRoutes((agentUid) => createMemory(bus, agentUid)),
      discoveryRoutes({ library, registry: sessionRegistry }),
    ],
    catalog: models.catalog,
    usage: usageReports(ledger, directory),
    async [Symbol.asyncDispose]() {
      await stopPublishing();
      await ledger.close();
    },
  };
};

/** Stores each change of a provider's state, in order, for the operator's conditions. Returns the stop function. */
function publishHealth({ health }: GatewayModels, { bus, log }: PartsContext): () => Promise<void> {
  const store = modelHealthStore(bus);
  let tail: Promise<void> = Promise.resolve();
  const stop = health.changes((changed) => {
    if (changed.state !== 'Available') {
      log.warn({ provider: changed.provider, state: changed.state, code: changed.code }, 'a model provider fails');
    }
    tail = tail
      .then(() => store.put(changed))
      .catch((error: unknown) => log.warn({ error }, 'the state of a model provider could not be stored'));
  });
  return async () => {
    stop();
    await tail;
  };
}
