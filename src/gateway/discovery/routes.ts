import { buildResult } from '../../discovery/result.ts';
import { DISCOVER_TOOL } from '../../discovery/discover-tool.ts';
import { type DiscoveryEntry, forgedId, toolEntry } from '../../discovery/entry.ts';
import { deniedHosts } from '../../discovery/fetch-hosts.ts';
import { LexicalIndex } from '../../discovery/lexical/lexical-index.ts';
import type { UsedTogetherLink } from '../../discovery/lexical/visible-entries.ts';
import type { EntryOwner } from '../../discovery/vector/hybrid-search.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { DiscoveryRequest, DiscoveryResponse } from '../../gateway-api/tool-schemas.ts';
import type { Decider } from '../../policy/types.ts';
import type { AgentState } from '../agent-state.ts';
import type { BrokeredTool } from '../brokered/port.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { toolRequest } from '../../tools/authorize.ts';
import type { GatewayDeps } from '../deps.ts';
import { authorizeDelivery } from '../delivery/authorize.ts';
import type { RouteModule } from '../http/routes.ts';
import { type Demotions, inService } from '../cluster/demotions.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import type { PromotedTool } from './catalog-entries.ts';
import type { CapabilityCatalog } from './catalog.ts';
import { EntryVisibility } from './entry-visibility.ts';
import type { RankCapabilities } from './rank-capabilities.ts';
import type { SearchTurns } from './search-turns.ts';
import { ServiceEntries } from './service-entries.ts';
import { SessionIndexes } from './session-indexes.ts';

export interface DiscoveryRouteDeps {
  catalog: Pick<CapabilityCatalog, 'index' | 'promotedTools' | 'lostEntries'>;
  /** Tools of sessions. */
  registry: Pick<SessionRegistry, 'tools'>;
  demotions: Demotions;
  rank: RankCapabilities;
  turns: SearchTurns;
  /** The release runs an egress proxy, which pods connect through. */
  hasEgress: boolean;
}

const MAX_BODY_BYTES = 16 * 1_024;
const WITHOUT_EGRESS = 'it uses fetch, and this release runs no egress proxy; an administrator sets egress.enabled';

const SCHEMA = {
  ...POD_SECURITY,
  body: DiscoveryRequest,
  summary: 'Searches tools and capabilities the agent may use',
  response: { 200: DiscoveryResponse, ...ERROR_RESPONSES },
};

/** Search for tools and capabilities the agent may use: built-in tools, forged tools, tools of services and the catalog of its namespace. */
export function discoveryRoutes(options: DiscoveryRouteDeps): RouteModule {
  const { catalog, registry, demotions, rank, turns, hasEgress } = options;
  const builtIn = builtInDescriptors()
    .filter(({ name }) => name !== DISCOVER_TOOL.name)
    .map(toolEntry);
  const builtInIndex = LexicalIndex.of(builtIn);
  const everyones = builtIn.map((entry): [DiscoveryEntry, EntryOwner] => [entry, 'Everyone']);
  const visibility = new EntryVisibility();
  const services = new ServiceEntries();
  const sessions = new SessionIndexes();
  return (server, deps) => {
    server.post(
      POD_API_PATHS.discoverySearch,
      { config: { access: 'pod' }, bodyLimit: MAX_BODY_BYTES, schema: SCHEMA },
      async (request) => {
        const { deliveryToken, forMessage, ...query } = request.body;
        const { claims, state } = authorizeDelivery(request, deliveryToken, deps);
        const { agentUid, session, namespace, agent } = claims;
        const [tainted, sessionTools] = await Promise.all([
          deps.sessions.tainted(agentUid, session),
          registry.tools(agentUid, session),
        ]);
        const tools = inService(sessionTools, (digest) => demotions.reason(claims, digest) !== undefined);
        const ofSession = await sessions.of(claims, tools, (steps) => turns.run(claims, steps, request.disconnected));
        const forged = ofSession.entries;
        const decider = deps.directory.decider(state, tainted);
        await visibility.decide(agent, decider, catalog.index(namespace).entries());
        const lost = catalog.lostEntries(namespace, agent);
        const permits = visibility.of(agent, decider);
        const visible = (entry: DiscoveryEntry | undefined): boolean =>
          entry !== undefined && !lost.has(entry) && permits(entry);
        const callable = (): Set<string> =>
          new Set([
            ...builtIn.filter(visible).map(({ name }) => name),
            ...sessionNames(tools, (index) => visible(forged[index])),
            ...promotedNames(catalog.promotedTools(namespace, agent), visible),
            ...brokeredNames(deps.brokered.list(namespace), decider),
          ]);
        const started = deps.clock.monotonic();
        // A tool of a service stands before a Capability with its name, which no gateway executes.
        const ofServices = services.index(deps.brokered.services(namespace));
        const indexes = [builtInIndex, ofSession.index, ofServices, catalog.index(namespace)];
        const permitted = forMessage === true ? callableTools(visible, callable()) : visible;
        const scope = { indexes, permits: permitted, usedTogether: usedTogether(state) };
        const owners = new Map<DiscoveryEntry, EntryOwner>([...everyones, ...forged.map(ofAgent)]);
        const ranked = await rank({ query, scope, owners, claims, state, request });
        countSearch(ranked.length, started, deps);
        if (forMessage !== true) await deps.recorder.used(claims, DISCOVER_TOOL.category);
        return buildResult(ranked, {
          callable: callable(),
          hasConnection: (name) => deps.brokered.hasConnection(namespace, name),
          fetchProblem: hasEgress ? (hosts) => deniedHosts(hosts, decider) : () => WITHOUT_EGRESS,
        });
      },
    );
  };
}

function countSearch(found: number, started: number, { clock, metrics }: Pick<GatewayDeps, 'clock' | 'metrics'>): void {
  metrics.observe('temper_discovery_search_duration_seconds', {}, (clock.monotonic() - started) / 1_000);
  metrics.count('temper_discovery_searches_total', { outcome: found === 0 ? 'empty' : 'found' });
}

/** Other entries have no place among the tools that fit a message. */
function callableTools(
  visible: (entry: DiscoveryEntry) => boolean,
  callable: ReadonlySet<string>,
): (entry: DiscoveryEntry) => boolean {
  return (entry) =>
    (entry.kind === 'tool' || entry.kind === 'emergent-tool') && callable.has(entry.name) && visible(entry);
}

function brokeredNames(tools: readonly BrokeredTool[], decider: Decider): string[] {
  return tools
    .filter(({ descriptor }) => decider.decide(toolRequest(descriptor)).effect !== 'Deny')
    .map(({ descriptor }) => descriptor.name);
}

function sessionNames(tools: readonly RegisteredTool[], isVisible: (index: number) => boolean): string[] {
  return tools.filter((_, index) => isVisible(index)).flatMap(({ artifact, digest }) => names(artifact.name, digest));
}

function promotedNames(tools: readonly PromotedTool[], visible: (entry: PromotedTool['entry']) => boolean): string[] {
  return tools.filter(({ entry }) => visible(entry)).flatMap(namesOfPromoted);
}

function ofAgent(entry: DiscoveryEntry): [DiscoveryEntry, EntryOwner] {
  return [entry, 'Agent'];
}

function usedTogether({ agent }: AgentState): UsedTogetherLink[] {
  return (agent.status?.toolsUsedTogether ?? []).flatMap(({ tools, percent }) => {
    const [one, other] = tools.map(forgedId);
    return one === undefined || other === undefined ? [] : [{ ids: [one, other], weight: percent / 100 }];
  });
}

/** The names of a forged tool in calls: its name, and its name pinned to the digest, as composed tools use it. */
function names(name: string, digest: string): string[] {
  return [name, `${name}@${digest}`];
}

function namesOfPromoted({ entry, digest }: PromotedTool): string[] {
  return entry === undefined || digest === undefined ? [] : names(entry.name, digest);
}
