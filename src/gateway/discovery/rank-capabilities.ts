import { searchSteps } from '../../discovery/lexical/search.ts';
import type { SearchScope } from '../../discovery/lexical/visible-entries.ts';
import type { DiscoveryEntry } from '../../discovery/entry.ts';
import type { DiscoveryQuery } from '../../discovery/port.ts';
import type { RankedEntry } from '../../discovery/ranked-entry.ts';
import type { AgentState } from '../agent-state.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import { type EntryOwner, HybridSearch } from '../../discovery/vector/hybrid-search.ts';
import type { VectorObserver } from '../../discovery/vector/embed-texts.ts';
import { openVectorIndex } from '../../discovery/qdrant/open-vector-index.ts';
import type { Ledger } from '../../ledger/port.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { calledBy, compose, withNames } from '../../models/pipeline.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import type { GatewayMetrics } from '../../telemetry/temper-metrics.ts';
import type { SearchTurns } from './search-turns.ts';
import { modelAccessFor, type ModelAccessDeps } from '../models/agent-model-access.ts';

interface RankDeps extends ModelAccessDeps {
  turns: SearchTurns;
  clock: Clock;
  metrics: GatewayMetrics;
  closing: AbortSignal;
}

/** A search of an agent for a message. */
interface AgentSearch {
  query: DiscoveryQuery;
  scope: SearchScope;
  /** Absent: the namespace has the entry. */
  owners: ReadonlyMap<DiscoveryEntry, EntryOwner>;
  claims: DeliveryTokenClaims;
  state: AgentState;
  request: { id: string; disconnected: AbortSignal };
}

/** The results of a search, best first. Throws TEMPER_RATE_LIMITED when the agent or its namespace used its share of time. */
export type RankCapabilities = (asked: AgentSearch) => Promise<RankedEntry[]>;

/** An earlier deadline of the message applies. */
const SEARCH_TIMEOUT_MS = 10_000;

/**
 * By words alone without `discovery.embedder`. Vectors of queries are charged to their agent; those of the catalog, which no agent asked for, to
 * no account.
 */
export function rankCapabilities(deps: RankDeps): RankCapabilities {
  const { models, clock, metrics, closing, turns } = deps;
  if (models.discovery === undefined)
    return ({ query, scope, claims, request }) => turns.run(claims, searchSteps(query, scope), request.disconnected);
  const { pipeline, resolve } = models;
  const platform = withNames(compose(pipeline, [calledBy({ id: 'discovery', ledger: UNLIMITED })]), resolve);
  const hybrid = new HybridSearch({
    index: openVectorIndex(models.discovery, clock),
    embedEntries: (texts, op) => platform.embed(texts, op),
    clock,
    redact: createSecretRedactor().redact,
    observer: observerOf(metrics),
    closing,
  });
  return async ({ query, scope, owners, claims, state, request }) => {
    const { agentUid: id, namespace, root, deadline } = claims;
    const remaining = Math.min(SEARCH_TIMEOUT_MS, Date.parse(deadline) - clock.now().getTime());
    const op = {
      signal: request.disconnected,
      deadline: clock.monotonic() + Math.max(0, remaining),
      key: request.id,
    };
    const { ledger } = modelAccessFor(deps, state, false, { root });
    // A caller of its own: failures of the embedder must not open the circuit of the agent's model.
    const caller = { id: `${id} discovery`, ledger, onCharged: deps.usageRecorder.of(state, root) };
    const charged = withNames(compose(pipeline, [calledBy(caller)]), resolve);
    const embed = (texts: string[], during: CallOptions) => charged.embed(texts, during);
    const ownerOf = (entry: DiscoveryEntry): EntryOwner => owners.get(entry) ?? 'Namespace';
    const { similarities } = await hybrid.compare(query, scope, { id, namespace, embed, ownerOf }, op);
    // The catalog may have changed while the vectors were read.
    return turns.run(claims, searchSteps(query, scope, similarities), request.disconnected);
  };
}

/** The metrics of model calls count its tokens. */
const UNLIMITED: Ledger = {
  reserve: async (_maximum, { key }) => ({ granted: true, id: key }),
  commit: async () => undefined,
  usage: async () => ({ hour: NOTHING, day: NOTHING, month: NOTHING }),
};
const NOTHING = { inputTokens: 0, outputTokens: 0, costMicros: 0, toolCalls: 0, networkBytes: 0 };

function observerOf(metrics: GatewayMetrics): VectorObserver {
  return {
    embedded(part, outcome, seconds) {
      metrics.count('temper_discovery_embeddings_total', { part, outcome });
      metrics.observe('temper_discovery_step_duration_seconds', { step: `embed-${part}` }, seconds);
    },
    cached(hits, misses) {
      metrics.count('temper_discovery_embedding_cache_total', { outcome: 'hit' }, hits);
      metrics.count('temper_discovery_embedding_cache_total', { outcome: 'miss' }, misses);
    },
    queried(outcome, seconds) {
      metrics.count('temper_discovery_vector_queries_total', { outcome });
      metrics.observe('temper_discovery_step_duration_seconds', { step: 'vectors' }, seconds);
    },
  };
}
