import { Type } from 'typebox';
import { buildResult, MAX_RESULTS } from '../../discovery/result.ts';
import { DISCOVER_TOOL } from '../../discovery/discover-tool.ts';
import { CAPABILITY_KINDS, type DiscoveryEntry, forgedEntry, toolEntry } from '../../discovery/entry.ts';
import { LexicalIndex } from '../../discovery/lexical-index.ts';
import { search } from '../../discovery/search.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { Decider } from '../../policy/types.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { authorizeDelivery } from '../delivery/authorize.ts';
import type { RouteModule } from '../http/routes.ts';
import { closed, DeliveryToken, POD_SECURITY, ERROR_RESPONSES, text } from '../http/schemas.ts';
import type { PromotedTool } from './catalog-entries.ts';
import type { CapabilityCatalog } from './catalog.ts';

export interface DiscoveryRouteDeps {
  catalog: Pick<CapabilityCatalog, 'index' | 'promotedTools'>;
  /** Tools of sessions. */
  registry: Pick<SessionRegistry, 'tools'>;
}

const MAX_BODY_BYTES = 16 * 1_024;
const SearchBody = Type.Object(
  {
    deliveryToken: DeliveryToken,
    query: text(400, 'Search terms.'),
    kind: Type.Optional(text(20, 'Only this kind.')),
    category: Type.Optional(text(64, 'Only this category.')),
  },
  closed,
);
const FoundEntry = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    kind: Type.Enum([...CAPABILITY_KINDS]),
    description: Type.String(),
    relevance: Type.Number({ minimum: 0, maximum: 1 }),
    available: Type.Boolean(),
    note: Type.Optional(Type.String({ description: 'Why it is not available.' })),
  },
  closed,
);
const Answer = Type.Object(
  { capabilities: Type.Array(FoundEntry, { maxItems: MAX_RESULTS }), more: Type.Integer({ minimum: 0 }) },
  closed,
);

/** Full-text search for tools and capabilities the agent may use: built-in tools, forged tools and the catalog of its namespace. */
export function discoveryRoutes({ catalog, registry }: DiscoveryRouteDeps): RouteModule {
  const builtIn = builtInDescriptors()
    .filter(({ name }) => name !== DISCOVER_TOOL.name)
    .map(toolEntry);
  const builtInIndex = LexicalIndex.of(builtIn);
  return (server, deps) => {
    server.post(
      POD_API_PATHS.discoverySearch,
      {
        config: { access: 'pod' },
        bodyLimit: MAX_BODY_BYTES,
        schema: {
          ...POD_SECURITY,
          body: SearchBody,
          summary: 'Searches tools and capabilities the agent may use',
          response: { 200: Answer, ...ERROR_RESPONSES },
        },
      },
      async (request) => {
        const { deliveryToken, ...query } = request.body;
        const { claims, state } = authorizeDelivery(request, deliveryToken, deps);
        const { agentUid, session, namespace, agent } = claims;
        const [tainted, tools] = await Promise.all([
          deps.sessions.tainted(agentUid, session),
          registry.tools(agentUid, session),
        ]);
        const decider = deps.directory.decider(state, tainted);
        const forged = tools.map(({ artifact }) => forgedEntry(artifact, false));
        const visible = (entry: DiscoveryEntry | undefined): boolean =>
          entry !== undefined && isVisible(entry, agent, decider);
        const ranked = search(query, {
          indexes: [builtInIndex, LexicalIndex.of(forged), catalog.index(namespace)],
          permits: visible,
        });
        const callable = new Set([
          ...builtIn.filter(visible).map(({ name }) => name),
          ...tools
            .filter((_, index) => visible(forged[index]))
            .flatMap(({ artifact, digest }) => names(artifact.name, digest)),
          ...catalog
            .promotedTools(namespace, agent)
            .filter(({ entry }) => visible(entry))
            .flatMap(namesOfPromoted),
        ]);
        return buildResult(ranked, callable);
      },
    );
  };
}

function isVisible({ agent: owner, request }: DiscoveryEntry, agent: string, decider: Decider): boolean {
  if (owner !== undefined && owner !== agent) return false;
  return request === undefined || decider.decide(request).effect !== 'Deny';
}

/** The names of a forged tool in calls: its name, and its name pinned to the digest, as composed tools use it. */
function names(name: string, digest: string): string[] {
  return [name, `${name}@${digest}`];
}

function namesOfPromoted({ entry, digest }: PromotedTool): string[] {
  return entry === undefined || digest === undefined ? [] : names(entry.name, digest);
}
