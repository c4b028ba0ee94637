import { SerialQueue } from '../lib/async/serial-queue.ts';
import { createNatsMemory } from '../nats/memory.ts';
import { openSharedLedger } from '../nats/ledger/ledger.ts';
import { createDocumentStore } from '../nats/jetstream/document-store.ts';
import { createModelHealthStore } from '../nats/model-health.ts';
import { BUCKETS } from '../nats/jetstream/names.ts';
import { createToolEvidence } from '../nats/promotion/evidence.ts';
import { createUsageParts } from '../nats/tasks/usage-parts.ts';
import { openSessionRegistry } from '../nats/sessions/session-registry.ts';
import { countLedgerWrites, withLedgerMetrics } from './ledger/instrumented-ledger.ts';
import { rankCapabilities } from './discovery/rank-capabilities.ts';
import { SearchTurns } from './discovery/search-turns.ts';
import { withPromotedTools } from './discovery/promoted-tools.ts';
import { createUsageReports } from './ledger/usage.ts';
import { createUsageRecorder } from './ledger/usage-recorder.ts';
import { type GatewayModels, openGatewayModels } from './models/gateway-models.ts';
import { moduleRoutes } from './routes.ts';
import { serveReviewJobs } from './promotion/review-jobs.ts';
import type { OpenModule, ModuleContext } from './modules.ts';
import { sharedCanaries } from './review/shared-canaries.ts';
import { ScanThreads } from './memory-scan/scan-threads.ts';
import { startScanThread } from './memory-scan/program.ts';
import { VettingPool } from './review/vetting/pool.ts';
import { startVettingThread } from './review/vetting/program.ts';

/** Opens models, ledger, review, sessions and memory of one gateway. Throws TEMPER_MANIFEST_INVALID for an invalid `models` section. */
export const openModelModule: OpenModule = async (context) => {
  const { clock, ids, log, metrics, bus, storage, sources, sessionsOf, directory, demotions, catalog } = context;
  const closing = new AbortController();
  const models = openGatewayModels(context.models, {
    clock,
    ids,
    random: Math.random,
    metrics,
    closing: closing.signal,
  });
  const ledger = openSharedLedger({
    store: createDocumentStore(bus, BUCKETS.ledger),
    clock,
    ids,
    random: Math.random,
    onError: (error) => log.warn({ error }, 'spend could not be stored; it will be retried'),
    onWritten: countLedgerWrites(metrics),
  });
  const quotaOf = (agentUid: string) => storage.of(agentUid);
  const sessionRegistry = openSessionRegistry(bus, { quotaOf, sources: sources.tools });
  const registry = withPromotedTools(sessionRegistry, catalog, directory);
  const evidence = createToolEvidence(bus, quotaOf);
  const canaries = sharedCanaries(context, models);
  const vetter = new VettingPool({ clock, startThread: startVettingThread });
  const memory = openMemory(context);
  const stopPublishing = publishHealth(models, context);
  const usage = openUsage(context);
  const modelDeps = {
    usageRecorder: usage.recorder,
    models: models.set,
    health: models.health,
    ledger: withLedgerMetrics(ledger, metrics, clock),
  };
  const turns = new SearchTurns({ clock });
  const rank = rankCapabilities({ ...modelDeps, turns, directory, clock, metrics, closing: closing.signal });
  const reviews = serveReviewJobs(
    { ...context, ...modelDeps, registry: sessionRegistry, vetter, canaries },
    closing.signal,
  );
  return {
    routes: moduleRoutes({
      models: modelDeps,
      review: { ...modelDeps, registry, evidence, demotions, vetter, canaries },
      sessions: { sessionsOf, registry, demotions },
      memory: memory.of,
      discovery: { catalog, registry: sessionRegistry, demotions, rank, turns, hasEgress: context.hasEgress },
    }),
    catalog: models.catalog,
    usage: createUsageReports({ ledger, directory, ...usage }),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await reviews;
      await vetter[Symbol.asyncDispose]();
      await memory.scans[Symbol.asyncDispose]();
      await stopPublishing();
      await ledger.close();
      await usage.recorder[Symbol.asyncDispose]();
    },
  };
};

/** The memory of each agent; what searches it ends with the signal. */
function openMemory({ bus, storage, clock }: ModuleContext) {
  const scans = new ScanThreads({ clock, startThread: startScanThread });
  const of = (agent: { uid: string; namespace: string }, signal: AbortSignal) => {
    const scan = scans.of({ agentUid: agent.uid, namespace: agent.namespace }, signal);
    return createNatsMemory(bus, agent, storage.of(agent.uid), scan);
  };
  return { of, scans };
}

function openUsage({ bus, storage, clock, ids, log }: ModuleContext) {
  const parts = createUsageParts(bus, (agentUid) => storage.of(agentUid));
  const onError = (error: unknown): void =>
    log.warn({ error }, 'the usage of models could not be stored; it will be retried');
  return { parts, recorder: createUsageRecorder({ parts, clock, ids, onError }) };
}

/** Stores each change of a provider's state, in order, for the operator's conditions. Returns the stop function. */
function publishHealth({ health }: GatewayModels, { bus, log }: ModuleContext): () => Promise<void> {
  const store = createModelHealthStore(bus);
  const writes = new SerialQueue();
  const stop = health.changes((changed) => {
    if (changed.state !== 'Available') {
      log.warn({ provider: changed.provider, state: changed.state, code: changed.code }, 'a model provider fails');
    }
    writes
      .run(() => store.put(changed))
      .catch((error: unknown) => log.warn({ error }, 'the state of a model provider could not be stored'));
  });
  return async () => {
    stop();
    await writes.idle();
  };
}
