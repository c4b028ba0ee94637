import { MOST_FOUND } from '../discovery/answer.ts';
import { CAPABILITY_KINDS } from '../discovery/entry.ts';
import type { Discovery, FoundCapability } from '../discovery/port.ts';
import { printable } from '../lib/escape.ts';
import type { Json } from '../lib/json.ts';
import type { GatewayClient } from './gateway-client.ts';
import { listIn, malformed, numberIn, objectIn, textIn } from './reading.ts';
import type { RemoteTools } from './tools.ts';
import { type DiscoveryRequest, PATHS } from './wire.ts';

const MAX_TEXT = 2_000;

export interface RemoteDiscoveryOptions {
  client: GatewayClient;
  lease: () => string;
  /** Receives the forged tools that were found, so that the agent can call them at once. */
  tools: Pick<RemoteTools, 'addMissing'>;
}

/** Discovery through the gateway, in the session of the current message. */
export function remoteDiscovery({ client, lease, tools }: RemoteDiscoveryOptions): Discovery {
  return {
    async search(query, _caller, op) {
      const body: DiscoveryRequest = { ...query, lease: lease() };
      const answer = objectIn(
        await client.call({ method: 'POST', path: PATHS.discoverySearch, body, op }),
        'discovery',
      );
      const capabilities = listIn(answer['capabilities'], 'discovery.capabilities').slice(0, MOST_FOUND).map(foundIn);
      const forged = capabilities.filter(({ kind, available }) => kind === 'emergent-tool' && available);
      await tools.addMissing(
        forged.map(({ name }) => name),
        op,
      );
      return { capabilities, more: numberIn(answer, 'more', 'discovery') };
    },
  };
}

function foundIn(value: Json): FoundCapability {
  const found = objectIn(value, 'discovery.capabilities');
  const read = (key: string): string => printable(textIn(found, key, 'discovery.capabilities'), MAX_TEXT);
  const kind = CAPABILITY_KINDS.find((known) => known === found['kind']);
  const { available, note } = found;
  if (kind === undefined || typeof available !== 'boolean') throw malformed('discovery.capabilities');
  return {
    id: read('id'),
    name: read('name'),
    kind,
    description: read('description'),
    relevance: numberIn(found, 'relevance', 'discovery.capabilities'),
    available,
    ...(note === undefined ? {} : { note: read('note') }),
  };
}
