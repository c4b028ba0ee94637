import type { RankByMeaning, RankedId } from '../agent/disclosure/tool-search.ts';
import { MAX_RESULTS } from '../discovery/result.ts';
import { CAPABILITY_KINDS } from '../discovery/entry.ts';
import type { Discovery, FoundCapability } from '../discovery/port.ts';
import { type CallOptions, withTimeout } from '../lib/call-options.ts';
import type { Clock } from '../lib/clock.ts';
import { printable } from '../lib/printable.ts';
import type { Json } from '../lib/json.ts';
import type { GatewayClient } from './gateway-client.ts';
import {
  requireList,
  malformedResponse,
  requireNumber,
  requireObject,
  requireText,
} from '../gateway-api/response-parsing.ts';
import type { RemoteTools } from './tools.ts';
import { type DiscoveryRequest, POD_API_PATHS } from '../gateway-api/pod-api.ts';

const MAX_TEXT = 2_000;

export interface RemoteDiscoveryOptions {
  client: GatewayClient;
  deliveryToken: () => string;
  /** Receives the forged tools that were found, so that the agent can call them at once. */
  tools: Pick<RemoteTools, 'addMissing'>;
}

/** Discovery through the gateway, in the session of the current message. */
export function remoteDiscovery({ client, deliveryToken, tools }: RemoteDiscoveryOptions): Discovery {
  return {
    async search(query, _caller, op) {
      const body: DiscoveryRequest = { ...query, deliveryToken: deliveryToken() };
      const answer = requireObject(
        await client.call({ method: 'POST', path: POD_API_PATHS.discoverySearch, body, op }),
        'discovery',
      );
      const capabilities = requireList(answer['capabilities'], 'discovery.capabilities')
        .slice(0, MAX_RESULTS)
        .map(foundIn);
      const forged = capabilities.filter(({ kind, available }) => kind === 'emergent-tool' && available);
      await tools.addMissing(
        forged.map(({ name }) => name),
        op,
      );
      return { capabilities, more: requireNumber(answer, 'more', 'discovery') };
    },
  };
}

/** The gateway ends its own search by meaning before. */
const RANKING_TIMEOUT_MS = 3_000;
const MAX_MESSAGE = 2_048;

/** Ranks the tools of the session by the words and the meaning of a message, in the gateway. When it does not answer, the words alone count. */
export function remoteRanking({
  client,
  clock,
  deliveryToken,
}: Omit<RemoteDiscoveryOptions, 'tools'> & { clock: Clock }): RankByMeaning {
  const ask = async (query: string, op: CallOptions): Promise<RankedId[]> => {
    const body: DiscoveryRequest = { query, forMessage: true, deliveryToken: deliveryToken() };
    const answer = requireObject(
      await client.call({ method: 'POST', path: POD_API_PATHS.discoverySearch, body, op }),
      'discovery',
    );
    return requireList(answer['capabilities'], 'discovery.capabilities').slice(0, MAX_RESULTS).map(foundIn);
  };
  return async ({ query }, _scope, _caller, op) => {
    const text = query.trim().slice(0, MAX_MESSAGE);
    if (text === '') return undefined;
    return withTimeout(op, clock, RANKING_TIMEOUT_MS, (during) => ask(text, during)).catch(() => undefined);
  };
}

function foundIn(value: Json): FoundCapability {
  const found = requireObject(value, 'discovery.capabilities');
  const read = (key: string): string => printable(requireText(found, key, 'discovery.capabilities'), MAX_TEXT);
  const kind = CAPABILITY_KINDS.find((known) => known === found['kind']);
  const { available, note, displayName } = found;
  if (kind === undefined || typeof available !== 'boolean') throw malformedResponse('discovery.capabilities');
  return {
    id: read('id'),
    name: read('name'),
    ...(displayName === undefined ? {} : { displayName: read('displayName') }),
    kind,
    description: read('description'),
    relevance: requireNumber(found, 'relevance', 'discovery.capabilities'),
    available,
    ...(note === undefined ? {} : { note: read('note') }),
  };
}
